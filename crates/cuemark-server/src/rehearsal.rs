//! A conversation without a network: what the server would answer to bytes of a client.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use cuemark_search::Index;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::service::TowerToHyperService;

use crate::app::{App, router};
use crate::{Limits, ServerOptions, connections};

/// The whole server but its sockets, for tests and fuzzing.
pub struct Rehearsal {
    runtime: tokio::runtime::Runtime,
    router: Router,
    limits: Limits,
}

impl Rehearsal {
    /// Over an index.
    ///
    /// # Errors
    /// When the machinery under it cannot be started.
    pub fn new(index: Index, options: ServerOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let limits = options.limits.clone();
        Ok(Self { runtime, router: router(Arc::new(App::new(Arc::new(index), options))), limits })
    }

    /// Everything that is answered to a client that sends `bytes`, however many requests they are, and then goes away.
    pub fn answer(&self, bytes: &[u8]) -> Vec<u8> {
        let mut client = Client { says: bytes.to_vec(), said: 0, hears: Vec::new() };
        let service = TowerToHyperService::new(self.router.clone());
        self.runtime.block_on(async {
            // What a client says may be nonsense; what it heard until then counts.
            let _ = connections::protocol(&self.limits).half_close(true).serve_connection(&mut client, service).await;
        });
        client.hears
    }
}

/// Says what it has to say and keeps what it hears.
struct Client {
    says: Vec<u8>,
    said: usize,
    hears: Vec<u8>,
}

impl Read for &mut Client {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<Result<()>> {
        let rest = self.says.get(self.said..).unwrap_or_default();
        let take = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..take).unwrap_or_default());
        self.said += take;
        Poll::Ready(Ok(()))
    }
}

impl Write for &mut Client {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        // More than any rehearsed answer needs; an answer without end would be a find.
        if self.hears.len() > 64 << 20 {
            return Poll::Ready(Err(Error::new(ErrorKind::WriteZero, "the answer has no end")));
        }
        self.hears.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}
