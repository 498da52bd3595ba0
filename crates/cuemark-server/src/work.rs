//! Work for a request, off the threads that serve: so much at a time, and stopped when nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use cuemark_core::Progress;
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// Requests that may wait for each turn there is. Whoever comes later is sent away at once: a queue that takes everybody in grows
/// until all of it waits in vain, and the machine works for clients that have long gone.
const WAITING: usize = 64;

/// One kind of work: how much of it at a time, and how long a request waits for its turn.
pub(crate) struct Work {
    turns: Arc<Semaphore>,
    patience: Duration,
    waiting: AtomicUsize,
    most_waiting: usize,
}

/// A request that waits, counted until it does no more.
struct Waiting<'w>(&'w AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Stops work when the request that wanted it is gone: its client has hung up, or it took too long.
struct HungUp(Arc<Progress>);

impl Drop for HungUp {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Work {
    pub(crate) fn new(at_a_time: usize, patience: Duration) -> Self {
        let turns = Arc::new(Semaphore::new(at_a_time));
        Self { turns, patience, waiting: AtomicUsize::new(0), most_waiting: WAITING * at_a_time }
    }

    /// The same with another number of requests that may wait for each turn.
    pub(crate) fn with_waiting(self, for_each_turn: usize) -> Self {
        let most_waiting = self.most_waiting / WAITING * for_each_turn;
        Self { most_waiting, ..self }
    }

    /// Joins those that wait, unless there are too many.
    fn wait(&self) -> Result<Waiting<'_>, Problem> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) < self.most_waiting {
            return Ok(waiting);
        }
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wait already").hint("try again in a moment"))
    }

    /// Does `work` when its turn has come. The turn belongs to the work and not to the request: a client that hangs up
    /// stops its work, and the next begins when that has ended.
    pub(crate) async fn run<T, E>(
        &self,
        work: impl FnOnce(&Progress) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let waiting = self.wait()?;
        let Ok(Ok(turn)) = tokio::time::timeout(self.patience, Arc::clone(&self.turns).acquire_owned()).await else {
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too much is asked for at a time")
                .hint("try again in a moment"));
        };
        drop(waiting);
        let progress = Arc::new(Progress::new());
        let _hung_up = HungUp(Arc::clone(&progress));
        let done = tokio::task::spawn_blocking(move || {
            let done = progress.check().ok().map(|()| work(&progress));
            drop(turn);
            done
        });
        match done.await {
            Ok(Some(done)) => done.map_err(Into::into),
            // Nobody hears it.
            Ok(None) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the request was called off")),
            // A panic: a fault of ours, of which clients need to know no more.
            Err(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be finished")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
    }

    #[derive(Default)]
    struct Count {
        now: AtomicUsize,
        most: AtomicUsize,
        begun: AtomicUsize,
        stopped: AtomicUsize,
    }

    /// Work that goes on until it is stopped, and then takes a moment to end, as a process does.
    fn until_stopped(count: &Count, progress: &Progress) -> Result<(), Problem> {
        count.begun.fetch_add(1, Ordering::SeqCst);
        count.most.fetch_max(count.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let began = Instant::now();
        while progress.check().is_ok() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        count.stopped.fetch_add(usize::from(progress.is_stopped()), Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        count.now.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    #[test]
    fn forty_clients_that_hang_up_never_have_more_work_going_on_than_there_are_turns() {
        let count = Arc::new(Count::default());
        runtime().block_on(async {
            let work = Arc::new(Work::new(2, Duration::from_secs(5)));
            for _ in 0..40 {
                let (work, count) = (Arc::clone(&work), Arc::clone(&count));
                let request = tokio::spawn(async move { work.run(move |told| until_stopped(&count, told)).await });
                tokio::time::sleep(Duration::from_millis(10)).await;
                request.abort();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            // Turns are given back: somebody who waits is served.
            assert!(work.run(|_| Ok::<_, Problem>(())).await.is_ok());
        });
        assert!(count.most.load(Ordering::SeqCst) <= 2, "{} at a time", count.most.load(Ordering::SeqCst));
        let begun = count.begun.load(Ordering::SeqCst);
        assert!(begun >= 5 && begun == count.stopped.load(Ordering::SeqCst), "{begun} begun");
    }

    #[test]
    fn who_waits_too_long_for_a_turn_is_told_to_come_back_and_a_panic_gives_the_turn_back() {
        runtime().block_on(async {
            let work = Arc::new(Work::new(1, Duration::from_millis(50)));
            let panicked = work.run(|_| -> Result<(), Problem> { panic!("a fault of ours") }).await;
            assert_eq!(panicked.unwrap_err().status(), 500);
            let (busy, count) = (Arc::clone(&work), Arc::new(Count::default()));
            let long = tokio::spawn(async move { busy.run(move |told| until_stopped(&count, told)).await });
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(work.run(|_| Ok::<_, Problem>(())).await.unwrap_err().status(), 503);
            long.abort();
        });
    }

    #[test]
    fn who_finds_too_many_waiting_is_sent_away_at_once_and_places_in_the_queue_come_back() {
        runtime().block_on(async {
            let work = Arc::new(Work::new(1, Duration::from_secs(30)));
            let (busy, count) = (Arc::clone(&work), Arc::new(Count::default()));
            let long = tokio::spawn(async move { busy.run(move |told| until_stopped(&count, told)).await });
            tokio::time::sleep(Duration::from_millis(50)).await;
            let queue: Vec<_> = (0..WAITING)
                .map(|_| {
                    let work = Arc::clone(&work);
                    tokio::spawn(async move { work.run(|_| Ok::<_, Problem>(())).await })
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(50)).await;
            let began = Instant::now();
            assert_eq!(work.run(|_| Ok::<_, Problem>(())).await.unwrap_err().status(), 429);
            assert!(began.elapsed() < Duration::from_secs(5), "it waited {:?}", began.elapsed());
            long.abort();
            for waited in queue {
                assert!(waited.await.unwrap().is_ok(), "who was in time is served");
            }
            assert_eq!(work.waiting.load(Ordering::Relaxed), 0);
        });
    }
}
