//! Accepting connections: many, slow ones cut off, and an orderly end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at a time; more wait to be accepted.
const CONNECTIONS: usize = 8192;
/// How long a client may take to say what it wants.
const HEADERS: Duration = Duration::from_secs(5);
/// Bytes of a request's head at most.
const LARGEST_HEAD: usize = 16 << 10;
/// How long running requests get once the server is asked to stop.
const FINISHING: Duration = Duration::from_secs(10);

/// Lets this process hold as many connections as there may be, as far as the system allows: the usual limit is 1024 files.
/// Where it stays lower, connections wait to be accepted.
pub(crate) fn make_room() {
    // Videos, thumbnails' pipes and the index need a few besides.
    let _ = rlimit::increase_nofile_limit(CONNECTIONS as u64 + 512);
}

/// Answers until `stop` is over.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let (room, graceful) = (Arc::new(Semaphore::new(CONNECTIONS)), GracefulShutdown::new());
    let mut stop = std::pin::pin!(stop);
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, most likely: some will be free in a moment.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Small answers should not wait for more to send.
        let _ = stream.set_nodelay(true);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(LARGEST_HEAD).half_close(false);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A client that goes away or talks nonsense is its own problem.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(FINISHING, graceful.shutdown()).await;
}
