//! Standard input, and noticing that nobody is there any more.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// What a client says. Its end is told at once, while the protocol's own machinery still waits for answers to be finished; a
/// message too long to be read is told too, since nobody could answer it.
pub(crate) struct Hearing<R> {
    inner: R,
    longest: usize,
    /// Bytes of the message that is being said.
    said: usize,
    gone: CancellationToken,
    complain: fn(&str),
}

impl<R> Hearing<R> {
    pub(crate) fn new(inner: R, longest: usize, gone: CancellationToken, complain: fn(&str)) -> Self {
        Self { inner, longest, said: 0, gone, complain }
    }

    fn heard(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let before = self.said;
            self.said += piece.len();
            if before <= self.longest && self.said > self.longest {
                (self.complain)(&format!("a message of more than {} bytes was left out", self.longest));
            }
            if piece.ends_with(b"\n") {
                self.said = 0;
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Hearing<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(context, buffer));
        let new = buffer.filled().get(before..).unwrap_or_default();
        if read.is_err() || new.is_empty() {
            self.gone.cancel();
        } else {
            self.heard(new);
        }
        Poll::Ready(read)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncReadExt as _;

    use super::*;

    static COMPLAINTS: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn the_end_is_told_and_so_is_every_message_that_is_too_long() {
        let said = format!("{}\n{}\n{}\n", "a".repeat(9), "b".repeat(30), "c".repeat(30));
        let gone = CancellationToken::new();
        let count = |_: &str| {
            COMPLAINTS.fetch_add(1, Ordering::Relaxed);
        };
        let mut hearing = Hearing::new(said.as_bytes(), 10, gone.clone(), count);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut piece = [0; 7];
            while hearing.read(&mut piece).await.unwrap() > 0 {
                assert!(!gone.is_cancelled());
            }
        });
        assert!(gone.is_cancelled());
        assert_eq!(COMPLAINTS.load(Ordering::Relaxed), 2);
    }
}
