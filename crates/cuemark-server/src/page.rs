//! The page: plain files, in the program.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file: where it is asked for, what it is, what is in it.
const FILES: [(&str, &str, &str); 15] = [
    ("/", HTML, include_str!("assets/index.html")),
    ("/app.css", CSS, include_str!("assets/app.css")),
    ("/app.js", SCRIPT, include_str!("assets/app.js")),
    ("/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("/page/player.css", CSS, include_str!("assets/page/player.css")),
    ("/page/adding.js", SCRIPT, include_str!("assets/page/adding.js")),
    ("/page/api.js", SCRIPT, include_str!("assets/page/api.js")),
    ("/page/cards.js", SCRIPT, include_str!("assets/page/cards.js")),
    ("/page/ends.js", SCRIPT, include_str!("assets/page/ends.js")),
    ("/page/films.js", SCRIPT, include_str!("assets/page/films.js")),
    ("/page/judging.js", SCRIPT, include_str!("assets/page/judging.js")),
    ("/page/lines.js", SCRIPT, include_str!("assets/page/lines.js")),
    ("/page/marking.js", SCRIPT, include_str!("assets/page/marking.js")),
    ("/page/player.js", SCRIPT, include_str!("assets/page/player.js")),
    ("/page/time.js", SCRIPT, include_str!("assets/page/time.js")),
];

pub(crate) fn routes() -> Router<Arc<App>> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(move || async move { asset(kind, text) }))
    })
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // A new version of the program should not meet an old page.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_page_asks_for_is_there_and_every_file_is_asked_for() {
        let everything: String = FILES.iter().map(|(_, _, text)| *text).collect();
        let named = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            everything.contains(&format!("\"{path}\"")) || everything.contains(&format!("/{name}\""))
        };
        for (path, _, _) in FILES.iter().filter(|(path, _, _)| *path != "/") {
            assert!(named(path), "nothing asks for {path}");
        }
        for part in everything.split("from \"").skip(1) {
            let name = part.split('"').next().and_then(|path| path.rsplit('/').next()).unwrap();
            assert!(FILES.iter().any(|(path, _, _)| path.ends_with(&format!("/{name}"))), "there is no {name}");
        }
    }
}
