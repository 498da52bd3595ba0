//! What the server shares between requests, and which path goes where.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::get;
use cuemark_search::Index;
use rustc_hash::FxHashMap;
use tokio::sync::Semaphore;
use tower_http::timeout::TimeoutLayer;

use crate::jobs::Jobs;
use crate::metrics::Metrics;
use crate::{ServerOptions, api, guard, metrics, page};

/// Bytes of a request's body at most.
const LARGEST_BODY: usize = 64 << 10;
/// How long a request may take, answers that stream apart.
const LONGEST: Duration = Duration::from_secs(30);
/// Thumbnails that are kept in memory.
pub(crate) const KEPT_THUMBNAILS: usize = 512;

/// Pictures by video, place in **milliseconds** and width.
type Thumbnails = FxHashMap<(String, u64, usize), Arc<Vec<u8>>>;

/// What the server shares between requests.
pub(crate) struct App {
    pub(crate) index: Arc<Index>,
    pub(crate) options: ServerOptions,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) metrics: Metrics,
    /// Searches at a time.
    pub(crate) searches: Semaphore,
    /// Pictures decoded at a time.
    pub(crate) decoders: Semaphore,
    pub(crate) thumbnails: Mutex<Thumbnails>,
}

impl App {
    pub(crate) fn new(index: Arc<Index>, options: ServerOptions) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self {
            index,
            options,
            jobs: Arc::default(),
            metrics: Metrics::default(),
            searches: Semaphore::new(2 * cores),
            decoders: Semaphore::new(cores),
            thumbnails: Mutex::default(),
        }
    }
}

/// Every path.
pub(crate) fn router(app: Arc<App>) -> Router {
    let api = Router::new()
        .route("/search", get(api::search::search))
        .route("/moments/like", get(api::search::like))
        .route("/videos", get(api::videos::list))
        .route("/videos/{id}", get(api::videos::one))
        .route("/videos/{id}/strip", get(api::search::strip))
        .route("/videos/{id}/thumbnail", get(api::videos::thumbnail))
        .route("/jobs", get(api::jobs::list).post(api::jobs::start))
        .route("/jobs/{id}", get(api::jobs::one).delete(api::jobs::stop))
        .route("/openapi.json", get(api::openapi))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, LONGEST))
        .route("/videos/{id}/media", get(api::videos::media))
        .route("/jobs/{id}/events", get(api::jobs::events))
        .layer(DefaultBodyLimit::max(LARGEST_BODY));
    Router::new()
        .nest("/api/v1", api)
        .route("/metrics", get(metrics::show))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::token))
        .route("/api/v1/health", get(api::health))
        .merge(page::routes())
        .fallback(api::nowhere)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::everything))
        .with_state(app)
}
