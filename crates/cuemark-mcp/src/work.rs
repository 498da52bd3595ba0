//! The work of one call: when its turn has come, no longer than it may take, stopped when nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cuemark_core::{Progress, Seen, Stopped};
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::McpError;
use crate::error::Result;

/// Calls that are carried out at a time; each may use every core.
const AT_A_TIME: usize = 2;
/// Calls that may wait for their turn.
const WAITING: usize = 32;
/// How long a client that has said its last may wait for answers, so that `printf … | cuemark mcp` gets quick ones.
const AFTER_THE_END: Duration = Duration::from_secs(1);
/// How often somebody who asked for it hears how far the work is.
const TELLING: Duration = Duration::from_millis(500);

pub(crate) struct Work {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    time: Duration,
    gone: CancellationToken,
}

/// Stops work that nobody waits for any more, however that came.
struct Abandoned(Progress);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// One of those that wait.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Work {
    /// Work that may take `time`, of a client that has left once `gone` says so.
    pub(crate) fn new(time: Duration, gone: CancellationToken) -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_A_TIME)), waiting: AtomicUsize::new(0), time, gone }
    }

    /// Does `work` for a call. The turn belongs to the work and not to the call: work that was stopped keeps it until it has
    /// ended.
    ///
    /// # Errors
    /// Those of the work; and when it takes too long, is called off, or too many wait already.
    pub(crate) async fn run(
        &self,
        call: &RequestContext<RoleServer>,
        work: impl FnOnce(&Progress) -> Result<Value> + Send + 'static,
    ) -> Result<Value> {
        let progress = Progress::new();
        let _abandoned = Abandoned(progress.clone());
        let done = async {
            let turn = self.turn().await?;
            let progress = progress.clone();
            let work = tokio::task::spawn_blocking(move || {
                let done = work(&progress);
                drop(turn);
                done
            });
            // A panic is a fault of ours, of which clients need to know no more.
            work.await.unwrap_or_else(|_| Err(McpError::argument("arguments", "the call could not be finished")))
        };
        let stopped = || -> Result<Value> { Err(cuemark::Error::from(Stopped).into()) };
        tokio::select! {
            done = done => done,
            () = call.ct.cancelled() => stopped(),
            () = self.hung_up() => stopped(),
            () = tokio::time::sleep(self.time) => Err(McpError::TimeOver { seconds: self.time.as_secs() }),
            () = tell(call, &progress) => stopped(),
        }
    }

    async fn turn(&self) -> Result<tokio::sync::OwnedSemaphorePermit> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= WAITING {
            return Err(McpError::Busy);
        }
        Arc::clone(&self.turns).acquire_owned().await.map_err(|_| McpError::Busy)
    }

    async fn hung_up(&self) {
        self.gone.cancelled().await;
        tokio::time::sleep(AFTER_THE_END).await;
    }
}

/// Tells a client that asked for it how far the work is, for ever. Clients want a number that only grows: it is seconds; the
/// words say the rest.
async fn tell(call: &RequestContext<RoleServer>, progress: &Progress) {
    let Some(token) = call.meta.get_progress_token() else { return std::future::pending().await };
    let began = Instant::now();
    loop {
        tokio::time::sleep(TELLING).await;
        let seconds = began.elapsed().as_secs_f64();
        let told = ProgressNotificationParam::new(token.clone(), seconds).with_message(words(progress));
        // Who does not listen any more is noticed elsewhere.
        let _ = call.peer.notify_progress(told).await;
    }
}

/// `reading: film.mp4 looking 12/60`
fn words(progress: &Progress) -> String {
    let count = |seen: &Seen| match seen.total {
        0 => seen.phase.to_string(),
        total => format!("{} {}/{total}", seen.phase, seen.done),
    };
    let parts = progress.parts().into_iter().map(|(name, seen)| format!("{name} {}", count(&seen)));
    let parts: Vec<String> = parts.collect();
    let whole = count(&progress.look());
    if parts.is_empty() { whole } else { format!("{whole}: {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_done_and_how_far() {
        let progress = Progress::new();
        progress.phase("adding", 2);
        assert_eq!(words(&progress), "adding 0/2");
        let film = progress.part("a.mp4");
        film.phase("listening", 60);
        film.advance(12).unwrap();
        assert_eq!(words(&progress), "adding 0/2: a.mp4 listening 12/60");
    }
}
