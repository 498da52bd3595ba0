//! How much of the server clients may take, in one place.

use std::num::NonZeroUsize;
use std::time::Duration;

/// Reads of films at a time; see [`Limits::threads`].
pub(crate) const READS: usize = 16;
/// Threads for what is done once or by one at a time: a job, its film, judgements, the end.
const OTHERS: usize = 8;

/// What clients may take of a server. Every limit holds at any load; the defaults are what `docs/search.md` states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more wait to be accepted. Default: 8192
    pub connections: usize,
    /// How long a client may take to say what it wants, and how long a connection may idle. Default: 5 s
    pub head: Duration,
    /// Bytes of a request's head at most. Default: 16 KiB
    pub head_bytes: usize,
    /// Bytes of a request's body at most. Default: 64 KiB
    pub body_bytes: usize,
    /// How long a request may take until its answer begins. Default: 30 s
    pub request: Duration,
    /// How long a client may leave [`Limits::AT_LEAST`] bytes of an answer unread before it is cut off. Default: 20 s
    pub unread: Duration,
    /// How long running requests get once the server is asked to stop. Default: 3 s
    pub finishing: Duration,
    /// Searches at a time. Default: two per core
    pub searches: usize,
    /// Pictures decoded at a time, each by a process of its own. Default: one per core
    pub decoders: usize,
    /// Looks into the catalogue at a time, each a moment's. Default: 16
    pub lookups: usize,
    /// Bytes of thumbnails kept in memory. Default: 64 MiB
    pub thumbnail_bytes: usize,
}

impl Limits {
    /// What a client must read of an answer within [`Limits::unread`], in bytes: some 800 a second.
    pub const AT_LEAST: usize = 16 << 10;

    /// Threads that may be busy for clients at a time, beside those that serve.
    ///
    /// Turns alone do not bound them: on a busy machine a thread whose work is done is not free yet when the next turn is taken,
    /// another is started beside it, and each that ever existed keeps some megabytes of the allocator's. A soak under load came
    /// to 300 threads and two and a half gigabytes that way.
    pub(crate) fn threads(&self) -> usize {
        self.searches + self.decoders + self.lookups + READS + OTHERS
    }
}

impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self {
            connections: 8192,
            head: Duration::from_secs(5),
            head_bytes: 16 << 10,
            body_bytes: 64 << 10,
            request: Duration::from_secs(30),
            unread: Duration::from_secs(20),
            finishing: Duration::from_secs(3),
            searches: 2 * cores,
            decoders: cores,
            lookups: 16,
            thumbnail_bytes: 64 << 20,
        }
    }
}
