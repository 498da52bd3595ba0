//! Work done ahead of whoever needs it, in order.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Does jobs on threads of its own and hands the results out in the order of the jobs, whichever is done first.
///
/// At most `ahead` finished results (rounded up to whole ones per worker) wait to be taken, so that memory is bounded however
/// slow the taker is. Dropping it stops the workers after the job each of them is at.
#[derive(Debug)]
pub struct Prefetch<T> {
    /// Worker `w` does jobs `w`, `w + n`, `w + 2n` …, so taking turns gives the order of the jobs.
    workers: Vec<Worker<T>>,
    next: usize,
    left: usize,
    waited: Duration,
}

#[derive(Debug)]
struct Worker<T> {
    results: Option<Receiver<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Prefetch<T> {
    /// Starts `workers` threads (at least one) on `jobs`.
    ///
    /// ```
    /// use cuemark_features::Prefetch;
    /// let squares: Vec<u32> = Prefetch::new(vec![1, 2, 3], 2, 4, |job| job * job).collect();
    /// assert_eq!(squares, [1, 4, 9]);
    /// ```
    pub fn new<J: Send + Sync + 'static>(
        jobs: Vec<J>,
        workers: usize,
        ahead: usize,
        work: impl Fn(&J) -> T + Send + Sync + 'static,
    ) -> Self {
        let (jobs, work) = (Arc::new(jobs), Arc::new(work));
        let left = jobs.len();
        let count = workers.clamp(1, left.max(1));
        let workers = (0..count).map(|first| {
            let (sender, results) = sync_channel(ahead.div_ceil(count).max(1));
            let (jobs, work) = (Arc::clone(&jobs), Arc::clone(&work));
            let thread = thread::spawn(move || {
                for job in jobs.iter().skip(first).step_by(count) {
                    // Nobody is listening any more.
                    if sender.send(work(job)).is_err() {
                        break;
                    }
                }
            });
            Worker { results: Some(results), thread: Some(thread) }
        });
        Self { workers: workers.collect(), next: 0, left, waited: Duration::ZERO }
    }
}

impl<T> Prefetch<T> {
    /// How long the taker has stood waiting, all in all.
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

impl<T> Iterator for Prefetch<T> {
    type Item = T;

    /// # Panics
    /// When the work on this job did.
    fn next(&mut self) -> Option<T> {
        if self.left == 0 {
            return None;
        }
        let count = self.workers.len();
        let worker = self.workers.get_mut(self.next)?;
        let since = Instant::now();
        let result = worker.results.as_ref()?.recv();
        self.waited += since.elapsed();
        let Ok(result) = result else {
            // A worker hangs up early only by a panic, which belongs to whoever takes the result.
            self.left = 0;
            if let Some(Err(panic)) = worker.thread.take().map(JoinHandle::join) {
                resume_unwind(panic);
            }
            return None;
        };
        self.next = (self.next + 1) % count;
        self.left -= 1;
        Some(result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        // Hanging up first, so that no worker waits for room while we wait for it.
        self.workers.iter_mut().for_each(|worker| worker.results = None);
        for thread in self.workers.iter_mut().filter_map(|worker| worker.thread.take()) {
            // A panic that nobody asked the result of changes nothing for anybody.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_whoever_is_first() {
        let slow_first = |job: &u64| {
            thread::sleep(Duration::from_micros(if job.is_multiple_of(3) { 900 } else { 10 }));
            *job
        };
        for workers in [0, 1, 3, 8] {
            let done: Vec<u64> = Prefetch::new((0..50).collect(), workers, 4, slow_first).collect();
            assert_eq!(done, (0..50).collect::<Vec<_>>());
        }
        assert_eq!(Prefetch::new(Vec::<u64>::new(), 3, 4, slow_first).count(), 0);
    }

    #[test]
    fn workers_stay_within_their_bound_and_stop_when_dropped() {
        let started = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&started);
        let mut prefetch = Prefetch::new((0..10_000).collect(), 2, 4, move |job: &u32| {
            count.fetch_add(1, Ordering::Relaxed);
            *job
        });
        assert_eq!(prefetch.next(), Some(0));
        thread::sleep(Duration::from_millis(50));
        // One taken, two per worker waiting, one more per worker made and held.
        assert!(started.load(Ordering::Relaxed) <= 1 + 4 + 2 + 1, "{started:?}");
        drop(prefetch);
        let stopped = started.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(10));
        assert_eq!(started.load(Ordering::Relaxed), stopped);
    }

    #[test]
    fn waiting_is_measured() {
        let mut prefetch = Prefetch::new(vec![()], 1, 1, |()| thread::sleep(Duration::from_millis(20)));
        prefetch.next();
        assert!(prefetch.waited() >= Duration::from_millis(10));
    }

    #[test]
    #[should_panic(expected = "job 3")]
    fn a_panic_reaches_whoever_takes_the_result() {
        let results = Prefetch::new((0..8).collect(), 2, 2, |job: &u32| assert!(*job != 3, "job {job}"));
        results.for_each(drop);
    }
}
