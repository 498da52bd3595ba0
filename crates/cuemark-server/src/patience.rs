//! A connection whose client must read (write timeout).

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::Limits;

/// Passes everything on, and is an error once the client has left too much unread for too long.
pub(crate) struct Patient<S> {
    stream: S,
    unread: Duration,
    /// Runs while the client owes us reading.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Bytes that it took since `waiting` began.
    taken: usize,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, unread: Duration) -> Self {
        Self { stream, unread, waiting: None, taken: 0 }
    }

    /// What a write came to, with the clock started, reset or run out.
    fn judge(&mut self, context: &mut Context<'_>, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match &written {
            Poll::Pending => {
                let unread = self.unread;
                let waiting = self.waiting.get_or_insert_with(|| {
                    self.taken = 0;
                    Box::pin(sleep_until(Instant::now() + unread))
                });
                if waiting.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read")));
                }
            }
            Poll::Ready(Ok(bytes)) => {
                // A byte now and then is no reading: the clock goes on until enough was taken.
                self.taken = self.taken.saturating_add(*bytes);
                if self.taken >= Limits::AT_LEAST {
                    self.waiting = None;
                }
            }
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl<S: Read + Unpin> Read for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        // hyper flushes once its own buffer is empty: nothing is owed any more.
        self.waiting = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(context, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what it is told to take.
    struct Client(Poll<usize>);

    impl Write for Client {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<Result<usize>> {
            self.0.map(Ok)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn write(connection: &mut Patient<Client>) -> Poll<Result<usize>> {
        Pin::new(connection).poll_write(&mut Context::from_waker(std::task::Waker::noop()), &[0; 1 << 16])
    }

    fn in_a_runtime(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    const UNREAD: Duration = Duration::from_millis(40);

    #[test]
    fn a_client_that_takes_a_byte_now_and_then_is_cut_off_all_the_same() {
        in_a_runtime(async {
            let mut connection = Patient::new(Client(Poll::Pending), UNREAD);
            assert!(write(&mut connection).is_pending());
            for _ in 0..6 {
                tokio::time::sleep(UNREAD / 4).await;
                connection.stream.0 = Poll::Ready(1);
                assert!(matches!(write(&mut connection), Poll::Ready(Ok(1))));
                connection.stream.0 = Poll::Pending;
                if let Poll::Ready(cut) = write(&mut connection) {
                    assert_eq!(cut.unwrap_err().kind(), ErrorKind::TimedOut);
                    return;
                }
            }
            panic!("never cut off");
        });
    }

    #[test]
    fn a_slow_client_that_reads_steadily_is_kept() {
        in_a_runtime(async {
            let mut connection = Patient::new(Client(Poll::Pending), UNREAD);
            for _ in 0..6 {
                assert!(write(&mut connection).is_pending());
                tokio::time::sleep(UNREAD / 2).await;
                connection.stream.0 = Poll::Ready(Limits::AT_LEAST);
                assert!(write(&mut connection).is_ready());
                connection.stream.0 = Poll::Pending;
            }
        });
    }

    #[test]
    fn what_was_waited_for_in_one_answer_does_not_count_in_the_next() {
        in_a_runtime(async {
            let mut connection = Patient::new(Client(Poll::Pending), UNREAD);
            assert!(write(&mut connection).is_pending());
            connection.stream.0 = Poll::Ready(100);
            assert!(write(&mut connection).is_ready());
            let mut context = Context::from_waker(std::task::Waker::noop());
            assert!(Pin::new(&mut connection).poll_flush(&mut context).is_ready());
            tokio::time::sleep(2 * UNREAD).await;
            connection.stream.0 = Poll::Pending;
            assert!(write(&mut connection).is_pending());
        });
    }
}
