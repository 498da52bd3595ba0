//! Counters in the text form that Prometheus reads.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;

/// Upper ends of the buckets of search times, in milliseconds.
const BUCKETS: [u64; 9] = [1, 2, 5, 10, 20, 50, 100, 500, 2000];

/// What has happened since the server began.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by the hundreds of their status: 1xx to 5xx.
    answers: [AtomicU64; 5],
    searches: [AtomicU64; BUCKETS.len() + 1],
    microseconds: AtomicU64,
}

impl Metrics {
    /// Counts an answer and, for searches, how long it took.
    pub(crate) fn count(&self, status: StatusCode, search: Option<Duration>) {
        if let Some(counter) = self.answers.get(usize::from(status.as_u16() / 100).wrapping_sub(1)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let Some(took) = search else { return };
        let bucket =
            BUCKETS.iter().position(|limit| took.as_micros() <= u128::from(1000 * limit)).unwrap_or(BUCKETS.len());
        if let Some(counter) = self.searches.get(bucket) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.microseconds.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }

    fn text(&self) -> String {
        let mut text = String::from("# TYPE cuemark_http_responses_total counter\n");
        for (place, counter) in self.answers.iter().enumerate() {
            let _ = writeln!(
                text,
                "cuemark_http_responses_total{{code=\"{}xx\"}} {}",
                place + 1,
                counter.load(Ordering::Relaxed)
            );
        }
        text += "# TYPE cuemark_search_seconds histogram\n";
        let mut sum = 0;
        for (place, counter) in self.searches.iter().enumerate() {
            sum += counter.load(Ordering::Relaxed);
            let limit = BUCKETS.get(place).map_or("+Inf".to_owned(), |limit| (*limit as f64 / 1000.0).to_string());
            let _ = writeln!(text, "cuemark_search_seconds_bucket{{le=\"{limit}\"}} {sum}");
        }
        let seconds = self.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "cuemark_search_seconds_sum {seconds}\ncuemark_search_seconds_count {sum}");
        text
    }
}

/// `/metrics`
pub(crate) async fn show(State(app): State<Arc<App>>) -> impl IntoResponse {
    let mut text = app.metrics.text();
    let index = Arc::clone(&app.index);
    if let Ok(status) = app.lookups.run(move |_| index.engine().status()).await {
        let _ = writeln!(text, "# TYPE cuemark_videos gauge\ncuemark_videos {}", status.videos);
        let _ = writeln!(text, "# TYPE cuemark_moments gauge\ncuemark_moments {}", status.moments);
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up() {
        let metrics = Metrics::default();
        for micros in [500, 1500, 30_000, 9_000_000] {
            metrics.count(StatusCode::OK, Some(Duration::from_micros(micros)));
        }
        metrics.count(StatusCode::NOT_FOUND, None);
        let text = metrics.text();
        assert!(text.contains("le=\"0.001\"} 1\n") && text.contains("le=\"0.002\"} 2\n"), "{text}");
        assert!(text.contains("le=\"0.05\"} 3\n") && text.contains("le=\"+Inf\"} 4\n"), "{text}");
        assert!(text.contains("code=\"4xx\"} 1\n") && text.contains("code=\"2xx\"} 4\n"), "{text}");
    }
}
