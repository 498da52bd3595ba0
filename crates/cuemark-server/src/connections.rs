//! Accepting connections: many, slow ones cut off, and an orderly end at any load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;

use crate::Limits;
use crate::patience::Patient;

/// Bytes that the system keeps of an answer for each connection; Linux takes twice as much, for its own accounts.
const SEND_BUFFER: u32 = 128 << 10;

/// Lets this process hold as many connections as there may be, as far as the system allows: the usual limit is 1024 files.
/// Where it stays lower, connections wait to be accepted.
pub(crate) fn make_room(limits: &Limits) {
    // A video is open beside each connection that plays it; thumbnails' pipes and the index need a few besides.
    let _ = rlimit::increase_nofile_limit(2 * limits.connections as u64 + 512);
}

/// Listens. What the system keeps of an answer for a client that does not read is limited too: thousands of connections could
/// otherwise take all the memory that it has for sending.
pub(crate) fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As `TcpListener::bind` does it: a server that is started again need not wait for old connections.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    // Connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    // As many as most systems allow: those that find no room here come back seconds later.
    socket.listen(4096)
}

/// What a connection speaks, and how much of it.
pub(crate) fn protocol(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(limits.head_bytes).half_close(false);
    builder
}

/// Answers until `stop` is over.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: &Limits, stop: impl Future<Output = ()>) {
    let (room, graceful) = (Arc::new(Semaphore::new(limits.connections)), GracefulShutdown::new());
    let mut stop = std::pin::pin!(stop);
    loop {
        // Whoever holds the last place must not keep the end from being heard.
        let place = tokio::select! {
            place = Arc::clone(&room).acquire_owned() => place,
            () = &mut stop => break,
        };
        let Ok(place) = place else { return };
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
        let stream = Patient::new(TokioIo::new(stream), limits.unread);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(protocol(limits).serve_connection(stream, service));
        tokio::spawn(async move {
            // A client that goes away or talks nonsense is its own problem.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(limits.finishing, graceful.shutdown()).await;
}
