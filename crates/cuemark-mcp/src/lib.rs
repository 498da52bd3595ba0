//! Moment search as tools for assistants: the Model Context Protocol over standard input and output.
//!
//! A tool's arguments are the fields of a request of crate `cuemark`; its answer is the one that `--json` prints. What holds for
//! every tool:
//! - it opens files inside the folders that were allowed, wherever a link says they are, and no index on another machine;
//! - it writes nothing, except clips: into a temporary folder of ours, or, once that was allowed, into an allowed folder; nothing
//!   is ever replaced;
//! - it has so long by the clock, answers so many bytes at most, and stops when the client calls it off or hangs up;
//! - what goes wrong is an answer that says so and what to do about it.

mod allowed;
mod arguments;
mod clips;
mod error;
mod hearing;
mod service;
mod tools;
mod work;

use std::time::Duration;

use camino::Utf8PathBuf;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use tokio_util::sync::CancellationToken;

pub use allowed::Writing;
pub use error::McpError;

use crate::allowed::Allowed;
use crate::hearing::Hearing;
use crate::service::Assistant;

/// The most bytes of one message; longer ones are left out.
const MESSAGE: usize = 1 << 20;
/// How long work that was stopped gets to end.
const LETTING_GO: Duration = Duration::from_secs(3);

/// What assistants may do.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// Folders whose films, indexes and files may be read.
    pub roots: Vec<Utf8PathBuf>,
    /// Whether clips may be written into them.
    pub writing: Writing,
    /// What to compute on: cpu, cuda, cuda:N.
    pub device: String,
    /// How long one call may take.
    pub time: Duration,
}

/// Answers a client on standard input and output until it hangs up or the process is asked to stop. `complain` is told what a
/// person might want to know; standard output belongs to the protocol.
///
/// # Errors
/// When a folder is not there, or the machinery cannot be started. A client that leaves, however, is no error.
pub fn serve(options: McpOptions, complain: fn(&str)) -> Result<(), McpError> {
    let allowed = Allowed::new(&options.roots, options.writing)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let gone = CancellationToken::new();
        let (input, output) = stdio_pipes();
        let hearing = Hearing::new(input, MESSAGE, gone.clone(), complain);
        let transport = AsyncRwTransport::new_server(hearing, output).with_max_line_length(MESSAGE);
        let assistant = Assistant::new(allowed, options, gone.clone())?;
        let stop = CancellationToken::new();
        let answered = async {
            match assistant.serve_with_ct(transport, stop.clone()).await {
                // A panic of the protocol's own machinery ends it like a client that leaves.
                Ok(running) => {
                    let _ = running.waiting().await;
                }
                Err(ServerInitializeError::ConnectionClosed(_)) => {}
                Err(error) => complain(&format!("the client did not begin as the protocol asks: {error}")),
            }
        };
        tokio::pin!(answered);
        tokio::select! {
            () = &mut answered => {}
            () = asked_to_stop() => {
                gone.cancel();
                stop.cancel();
                (&mut answered).await;
            }
        }
        gone.cancel();
        Ok(())
    });
    // Work that was stopped ends its programs first; what hangs in the system must not keep the process.
    runtime.shutdown_timeout(LETTING_GO);
    served
}

/// Ctrl-C, or the signal that clients send to a server that is slow to leave.
async fn asked_to_stop() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminated) = signal(SignalKind::terminate()) else {
            let _ = interrupted.await;
            return;
        };
        tokio::select! {
            _ = interrupted => {}
            _ = terminated.recv() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = interrupted.await;
}
