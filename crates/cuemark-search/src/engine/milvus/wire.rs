//! One connection to a Milvus server: time limits, patience, and what its answers say about themselves.
//!
//! Calls go through the client that `milvus-sdk-rust` generates from Milvus' own protocol rather than through its two
//! convenient ones: those take answers of at most 4 MB, panic on some that do not fit, and the newer asks for calls that a
//! 2.3 server does not know.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cuemark_core::Advice;
use milvus::proto::common;
use milvus::proto::milvus as rpc;
use milvus::proto::milvus::milvus_service_client::MilvusServiceClient;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response};

use crate::{Result, SearchError};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(30);
/// How long a server that was never reached is waited for.
const FIRST_PATIENCE: Duration = Duration::from_secs(3);
/// How long one that took a call before is waited for: it may be starting, or restarting.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two attempts, at first and at most.
const PAUSE: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// The largest answer: what a server sends at most, and a little more.
const LARGEST: usize = 128 << 20;

/// The generated client.
pub(super) type Client = MilvusServiceClient<Channel>;

/// One connection, which comes back by itself. Safe to share between threads.
pub(super) struct Wire {
    url: String,
    client: Client,
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
    reached: AtomicBool,
}

/// Why a call came to nothing.
#[derive(Debug)]
pub(super) struct Failure {
    /// Whether the same call may do better a little later.
    pub(super) transient: bool,
    /// What the server said.
    pub(super) problem: String,
}

impl Wire {
    /// Prepares a connection; the first call makes it.
    pub(super) fn new(url: &str, host: &str) -> Result<Self> {
        let failed = |problem: String| SearchError::Server {
            url: url.to_owned(),
            problem,
            advice: Advice::say("an address is `milvus://HOST:PORT/COLLECTION`"),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("milvus")
            .enable_all()
            .build()
            .map_err(|error| failed(format!("no thread for the connection: {error}")))?;
        let endpoint = Endpoint::from_shared(format!("http://{host}"))
            .map_err(|error| failed(format!("`{host}` is no address: {error}")))?
            .connect_timeout(Duration::from_secs(3))
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(5))
            .keep_alive_while_idle(true);
        let channel = {
            let _entered = runtime.enter();
            endpoint.connect_lazy()
        };
        let client =
            MilvusServiceClient::new(channel).max_decoding_message_size(LARGEST).max_encoding_message_size(LARGEST);
        Ok(Self { url: url.to_owned(), client, runtime: Some(runtime), reached: AtomicBool::new(false) })
    }

    /// Tries once.
    pub(super) fn attempt<T, F>(&self, send: impl FnOnce(Client) -> F) -> Result<T, Failure>
    where
        T: Judged + Send + 'static,
        F: Future<Output = Result<Response<T>, tonic::Status>> + Send + 'static,
    {
        let Some(runtime) = &self.runtime else {
            return Err(Failure { transient: false, problem: "the connection was closed".to_owned() });
        };
        let (told, heard) = mpsc::sync_channel(1);
        let answer = send(self.client.clone());
        // Not `block_on`, which panics where a caller happens to serve asynchronously.
        runtime.spawn(async move {
            // Nobody listening means that nobody needs the answer.
            let _ = told.send(tokio::time::timeout(ATTEMPT, answer).await);
        });
        match heard.recv() {
            Ok(Ok(Ok(response))) => {
                self.reached.store(true, Ordering::Relaxed);
                let answer = response.into_inner();
                judge(answer.status())?;
                Ok(answer)
            }
            Ok(Ok(Err(status))) => Err(of_transport(&status)),
            Ok(Err(_)) => {
                // Connecting has a shorter limit of its own: somebody took the connection and is slow, as one that starts.
                self.reached.store(true, Ordering::Relaxed);
                Err(Failure { transient: true, problem: format!("no answer within {} s", ATTEMPT.as_secs()) })
            }
            Err(_) => Err(Failure { transient: true, problem: "the call was dropped".to_owned() }),
        }
    }

    /// Tries until it works, the server says no, or patience ends. For calls that may be made twice.
    pub(super) fn call<T, F>(&self, send: impl Fn(Client) -> F) -> Result<T>
    where
        T: Judged + Send + 'static,
        F: Future<Output = Result<Response<T>, tonic::Status>> + Send + 'static,
    {
        self.patiently(|| self.attempt(&send))
    }

    /// Tries anything until it works, the server says no, or patience ends.
    pub(super) fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T> {
        let began = Instant::now();
        let mut pause = PAUSE[0];
        loop {
            let failure = match attempt() {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let reached = self.reached.load(Ordering::Relaxed);
            let patience = if reached { PATIENCE } else { FIRST_PATIENCE };
            if !failure.transient || began.elapsed() + pause > patience {
                return Err(self.failed(failure));
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSE[1]);
        }
    }

    /// The failure as users see it.
    pub(super) fn failed(&self, failure: Failure) -> SearchError {
        let advice = if !self.reached.load(Ordering::Relaxed) {
            "is the server running, and is the address right? `milvus-server` of `pip install milvus==2.3.5` starts one"
        } else if failure.transient {
            "the server was there before: is it still running? what was acknowledged is safe; try again"
        } else {
            "the server's log says more"
        };
        SearchError::Server { url: self.url.clone(), problem: failure.problem, advice: Advice::say(advice) }
    }

    /// An answer that does not fit the question.
    pub(super) fn malformed(&self, problem: impl Into<String>) -> SearchError {
        SearchError::Server {
            url: self.url.clone(),
            problem: problem.into(),
            advice: Advice::say("was the collection made by ")
                .run("index create")
                .and(", and is the server's version 2.3 or later?"),
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it would panic where the last owner serves asynchronously.
            runtime.shutdown_background();
        }
    }
}

/// What went wrong between here and the server.
fn of_transport(status: &tonic::Status) -> Failure {
    let transient = matches!(
        status.code(),
        Code::Unavailable | Code::DeadlineExceeded | Code::Unknown | Code::Cancelled | Code::ResourceExhausted
    );
    let mut problem = status.message().to_owned();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        // The innermost cause is the one that says something: "connection refused".
        problem = error.to_string();
        cause = error.source();
    }
    Failure { transient, problem: problem.to_lowercase() }
}

/// Whether the server is content.
#[allow(deprecated)] // 2.3 fills the old code too, and earlier ones that alone
fn judge(status: Option<&common::Status>) -> Result<(), Failure> {
    let Some(status) = status else { return Ok(()) };
    if status.code == 0 && status.error_code == 0 {
        return Ok(());
    }
    Err(Failure { transient: is_transient(status), problem: status.reason.clone() })
}

/// Whether a server that says so is starting, recovering or too busy. By Milvus' `merr` numbers, and for older answers by
/// the protocol's `ErrorCode`.
#[allow(deprecated)]
fn is_transient(status: &common::Status) -> bool {
    // Service not ready, unavailable, rate limit; collection not loaded (yet, after a restart) or not fully; replica,
    // channel and node not found or not available; segment not loaded.
    let numbers =
        matches!(status.code, 1 | 2 | 8 | 9 | 101 | 103 | 104 | 400..=402 | 500..=504 | 600..=604 | 901..=905);
    let old = matches!(status.error_code, 45 | 46 | 47 | 49 | 50 | 55 | 56 | 57 | 100);
    status.retriable || numbers || old
}

/// An answer that carries the server's verdict.
pub(super) trait Judged {
    /// The verdict.
    fn status(&self) -> Option<&common::Status>;
}

impl Judged for common::Status {
    fn status(&self) -> Option<&common::Status> {
        Some(self)
    }
}

macro_rules! judged {
    ($($answer:ident),*) => {$(
        impl Judged for rpc::$answer {
            fn status(&self) -> Option<&common::Status> {
                self.status.as_ref()
            }
        }
    )*};
}

judged!(
    BoolResponse,
    DescribeCollectionResponse,
    DescribeIndexResponse,
    FlushResponse,
    GetFlushStateResponse,
    GetLoadStateResponse,
    MutationResult,
    QueryResults,
    SearchResults
);
