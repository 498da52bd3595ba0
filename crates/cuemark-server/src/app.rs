//! What the server shares between requests, and which path goes where.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::get;
use cuemark_search::Index;
use tower_http::timeout::TimeoutLayer;

use crate::api::about::Recognised;
use crate::jobs::Jobs;
use crate::metrics::Metrics;
use crate::stream::Readers;
use crate::thumbnails::Thumbnails;
use crate::work::Work;
use crate::{ServerOptions, api, guard, metrics, page};

/// How long a search waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);
/// Searches that may wait for each turn: fewer than of other work, since they come by the thousand a second, and an answer that has
/// waited behind sixteen others is still one that somebody waits for.
const SEARCHES_WAITING: usize = 16;
/// How long a picture waits: a page wants a dozen at once.
const PICTURE_PATIENCE: Duration = Duration::from_secs(20);

/// What the server shares between requests.
pub(crate) struct App {
    pub(crate) index: Arc<Index>,
    pub(crate) options: ServerOptions,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) metrics: Metrics,
    /// Searches.
    pub(crate) searches: Work,
    /// Pictures.
    pub(crate) decoders: Work,
    /// Short looks into the catalogue.
    pub(crate) lookups: Work,
    pub(crate) thumbnails: Thumbnails,
    pub(crate) readers: Readers,
    /// What is recognised most often in the index.
    pub(crate) recognised: Recognised,
}

impl App {
    pub(crate) fn new(index: Arc<Index>, options: ServerOptions) -> Self {
        let limits = &options.limits;
        Self {
            index,
            jobs: Arc::default(),
            metrics: Metrics::default(),
            searches: Work::new(limits.searches, PATIENCE).with_waiting(SEARCHES_WAITING),
            decoders: Work::new(limits.decoders, PICTURE_PATIENCE),
            lookups: Work::new(limits.lookups, PATIENCE),
            thumbnails: Thumbnails::new(limits.thumbnail_bytes),
            readers: Readers::default(),
            recognised: Recognised::default(),
            options,
        }
    }
}

/// Every path.
pub(crate) fn router(app: Arc<App>) -> Router {
    let limits = &app.options.limits;
    let api = Router::new()
        .route("/about", get(api::about::about))
        .route("/offers", get(api::about::offers))
        .route("/judged", get(api::judged::list).post(api::judged::add))
        .route("/search", get(api::search::search))
        .route("/moments/like", get(api::search::like))
        .route("/videos", get(api::videos::list))
        .route("/videos/{id}", get(api::videos::one))
        .route("/videos/{id}/lines", get(api::videos::lines))
        .route("/videos/{id}/strip", get(api::search::strip))
        .route("/videos/{id}/thumbnail", get(api::videos::thumbnail))
        .route("/videos/{id}/clip", get(api::clip::clip))
        .route("/videos/{id}/media", get(api::videos::media))
        .route("/jobs", get(api::jobs::list).post(api::jobs::start))
        .route("/jobs/{id}", get(api::jobs::one).delete(api::jobs::stop))
        .route("/jobs/{id}/events", get(api::jobs::events))
        .route("/openapi.json", get(api::openapi))
        .layer(DefaultBodyLimit::max(limits.body_bytes));
    Router::new()
        .nest("/api/v1", api)
        .route("/metrics", get(metrics::show))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::token))
        .route("/api/v1/health", get(api::health))
        .merge(page::routes())
        .fallback(api::nowhere)
        // Until an answer begins: what streams may go on for as long as its client reads.
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limits.request))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::everything))
        .with_state(app)
}
