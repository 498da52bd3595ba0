//! Sentences of several questions, encoded together.
//!
//! Whoever finds a turn free encodes at once; whoever comes while all turns are taken waits, and the next batch is everybody who
//! waits by then. So a lone question never waits for company, and the more are asked the larger batches grow, by themselves.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::{Embedding, Encoder, Result};

/// Sentences of a batch, unless one question has more.
const MOST: usize = 64;
/// Cores for each batch that is encoded at a time: the others search.
const CORES_A_BATCH: usize = 4;

/// Sentences of several questions on their way through one encoder.
pub(crate) struct Together {
    queue: Mutex<Queue>,
    /// Told whenever a batch is done.
    done: Condvar,
    turns: usize,
}

#[derive(Default)]
struct Queue {
    /// Who waits, in the order in which they came.
    waiting: Vec<(Ticket, Vec<String>)>,
    /// What became of batches; `None` of one that failed.
    encoded: FxHashMap<Ticket, Option<Vec<Embedding>>>,
    encoding: usize,
    next: Ticket,
}

type Ticket = u64;

impl Default for Together {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self::with_turns((cores / CORES_A_BATCH).max(1))
    }
}

impl Together {
    fn with_turns(turns: usize) -> Self {
        Self { queue: Mutex::default(), done: Condvar::new(), turns }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The embeddings of `texts` in their order.
    ///
    /// # Errors
    /// Those of the encoder about these texts.
    pub(crate) fn encode(&self, encoder: &dyn Encoder, texts: &[&str]) -> Result<Vec<Embedding>> {
        let mut queue = self.queue();
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.push((ticket, texts.iter().map(|text| (*text).to_owned()).collect()));
        loop {
            match queue.encoded.remove(&ticket) {
                Some(Some(embeddings)) => return Ok(embeddings),
                // Of several one was at fault, and each is to hear of its own only.
                Some(None) => {
                    drop(queue);
                    return encoder.sentences(texts);
                }
                None => {}
            }
            queue = if queue.encoding < self.turns && !queue.waiting.is_empty() {
                let batch = queue.take();
                drop(queue);
                Turn { together: self, batch, embeddings: None }.encode(encoder);
                self.queue()
            } else {
                self.done.wait(queue).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}

impl Queue {
    /// The first who wait, as many as make a batch, for the one that calls this to encode.
    fn take(&mut self) -> Vec<(Ticket, Vec<String>)> {
        let mut sentences = 0;
        let fits = |(_, texts): &&(Ticket, Vec<String>)| {
            sentences += texts.len();
            sentences <= MOST
        };
        let count = self.waiting.iter().take_while(fits).count().max(1).min(self.waiting.len());
        self.encoding += 1;
        self.waiting.drain(..count).collect()
    }
}

/// A batch being encoded. Whatever happens to the one who does it, the others hear of it.
struct Turn<'a> {
    together: &'a Together,
    batch: Vec<(Ticket, Vec<String>)>,
    embeddings: Option<Vec<Embedding>>,
}

impl Turn<'_> {
    fn encode(mut self, encoder: &dyn Encoder) {
        let texts: Vec<&str> = self.batch.iter().flat_map(|(_, texts)| texts.iter().map(String::as_str)).collect();
        let encoded = encoder.sentences(&texts).ok().filter(|embeddings| embeddings.len() == texts.len());
        self.embeddings = encoded;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.together.queue();
        let mut embeddings = self.embeddings.take().map(Vec::into_iter);
        for (ticket, texts) in self.batch.drain(..) {
            let own = embeddings.as_mut().map(|all| all.by_ref().take(texts.len()).collect());
            queue.encoded.insert(ticket, own);
        }
        queue.encoding -= 1;
        drop(queue);
        self.together.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use camino::Utf8Path;
    use cuemark_core::{Progress, VideoId};

    use super::*;
    use crate::{EmbeddedVideo, SearchError};

    /// Says the length of a sentence in one number, slowly; `bad` means nothing to it, and `worse` makes it panic.
    #[derive(Default)]
    struct Slow {
        calls: AtomicUsize,
    }

    impl Encoder for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn width(&self) -> usize {
            2
        }

        fn sentences(&self, sentences: &[&str]) -> Result<Vec<Embedding>> {
            self.calls.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            assert!(!sentences.contains(&"worse") || sentences.len() > 1, "a fault of the encoder's");
            let of = |text: &&str| {
                let numbers = vec![1.0, text.len() as f32];
                Embedding::unit(numbers).filter(|_| !text.contains("bad") && *text != "worse")
            };
            let nothing = || SearchError::Question { problem: "nothing".to_owned(), advice: "say more".into() };
            sentences.iter().map(|text| of(text).ok_or_else(nothing)).collect()
        }

        fn video(&self, _: &VideoId, _: Option<&Utf8Path>, _: &Progress) -> Result<EmbeddedVideo> {
            Ok(EmbeddedVideo { duration: 0.0, moments: Vec::new(), partial: None })
        }
    }

    #[test]
    fn whoever_waits_together_is_encoded_together_and_gets_its_own() {
        let (together, encoder) = (Together::with_turns(1), Slow::default());
        std::thread::scope(|scope| {
            for asker in 0..40 {
                let (together, encoder) = (&together, &encoder);
                scope.spawn(move || {
                    let texts = ["x".repeat(asker + 1), "x".repeat(asker + 2)];
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    let found = together.encode(encoder, &texts).unwrap();
                    assert_eq!(found, Slow::default().sentences(&texts).unwrap());
                });
            }
        });
        // One begins alone, and 78 sentences wait in batches of 64 at the most; a late thread may make another.
        let calls = encoder.calls.load(Ordering::SeqCst);
        assert!(calls <= 8, "{calls} batches for 40 questions");
        let queue = together.queue();
        assert_eq!((queue.encoded.len(), queue.waiting.len()), (0, 0), "nothing stays behind");
    }

    #[test]
    fn who_asks_nonsense_hears_of_it_alone_and_a_panic_leaves_nobody_waiting() {
        let (together, encoder) = (Together::with_turns(1), Slow::default());
        std::thread::scope(|scope| {
            let ask = |text: &'static str| {
                let (together, encoder) = (&together, &encoder);
                scope.spawn(move || together.encode(encoder, &[text]))
            };
            let all: Vec<_> = ["a", "bad one", "bb", "worse", "ccc", "worse", "d"].map(ask).into_iter().collect();
            let told: Vec<Option<bool>> = all.into_iter().map(|one| one.join().ok().map(|told| told.is_ok())).collect();
            let (yes, no) = (Some(true), Some(false));
            assert_eq!((told[0], told[1], told[2], told[4], told[6]), (yes, no, yes, yes, yes), "{told:?}");
            assert!(told[3] != yes && told[5] != yes);
        });
        assert_eq!(together.queue().encoding, 0, "turns come back");
    }
}
