//! Moment search over HTTP.
//!
//! [`Server::bind`] takes an [`Index`] and an address; [`Server::run`] answers until it is told to
//! stop, then lets running requests finish. Everything under `/api/v1` is described at `/api/v1/openapi.json`; `/` is a
//! page that uses it and nothing else.
//!
//! Only files of the index are served, by the video's name and never by a path, and only as they were indexed. Without a
//! token the server answers only requests that were sent to it by a loopback name; with or without, it answers no page of
//! another origin. [`Limits`] says how much of it clients may take.

mod api;
mod app;
mod connections;
mod film;
mod guard;
mod jobs;
mod limits;
mod metrics;
mod page;
mod patience;
mod problem;
mod range;
mod rehearsal;
mod stream;
mod thumbnails;
mod work;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Advise};
use cuemark_search::Index;
use tokio::net::TcpListener;

use app::{App, router};
pub use limits::Limits;
pub use range::Wanted;
pub use rehearsal::Rehearsal;

/// How long work that no request waits for any more gets to notice that the server ends.
const LETTING_GO: Duration = Duration::from_secs(1);

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to listen. Default: 127.0.0.1:7878
    pub listen: SocketAddr,
    /// What every request must bring; `None` asks for nothing and is for loopback addresses only.
    pub token: Option<String>,
    /// Folders whose videos may be added through the API; none when empty.
    pub addable: Vec<Utf8PathBuf>,
    /// What clients may leave behind besides videos. Default: judgements
    pub keeping: Keeping,
    /// How much of it clients may take.
    pub limits: Limits,
}

/// What clients may leave behind in the folder of the index, besides videos from [`ServerOptions::addable`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keeping {
    /// What they say of answers: one file of limited size. Default.
    #[default]
    Judgements,
    /// Nothing.
    Nothing,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 7878));
        Self { listen, token: None, addable: Vec::new(), keeping: Keeping::default(), limits: Limits::default() }
    }
}

/// What can go wrong with a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Others could reach it and nothing would keep them out.
    #[error("{listen} can be reached from other machines and there is no token")]
    Open {
        /// The address.
        listen: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The machinery under it cannot be started.
    #[error("cannot start")]
    Start(#[from] std::io::Error),
}

impl Advise for ServerError {
    fn advice(&self) -> Option<Advice> {
        match self {
            Self::Open { .. } => {
                Some(Advice::say("put a token into the variable CUEMARK_TOKEN, or listen on 127.0.0.1"))
            }
            Self::Listen { .. } => Some(
                Advice::say("is another server running there? choose a port with ").set_any("listen", "ADDRESS:PORT"),
            ),
            Self::Start(_) => None,
        }
    }
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
}

impl Server {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the address is taken, or can be reached from elsewhere while there is no token.
    pub async fn bind(index: Arc<Index>, options: ServerOptions) -> Result<Self, ServerError> {
        let listen = options.listen;
        if options.token.is_none() && !listen.ip().is_loopback() {
            return Err(ServerError::Open { listen });
        }
        connections::make_room(&options.limits);
        let listener = connections::listen(listen).map_err(|source| ServerError::Listen { listen, source })?;
        Ok(Self { listener, app: Arc::new(App::new(index, options)) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is over; then jobs are stopped and running requests get [`Limits::finishing`] to finish.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let app = Arc::clone(&self.app);
        let stop = async {
            stop.await;
            app.jobs.stop();
        };
        connections::serve(self.listener, router(Arc::clone(&self.app)), &self.app.options.limits, stop).await;
    }
}

/// Serves `index` until Ctrl-C or a termination signal, telling `listening` the address once it answers.
///
/// # Errors
/// As [`Server::bind`].
pub fn serve(index: Index, options: ServerOptions, listening: impl FnOnce(SocketAddr)) -> Result<(), ServerError> {
    let threads = options.limits.threads();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(threads).build()?;
    let served = runtime.block_on(async {
        let server = Server::bind(Arc::new(index), options).await?;
        listening(server.address()?);
        server.run(asked_to_stop()).await;
        Ok(())
    });
    // Threads that hang in the system must not keep the process; what they were writing is safe or not there.
    runtime.shutdown_timeout(LETTING_GO);
    served
}

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
