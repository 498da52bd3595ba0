//! Whose page a browser asks for (fetch metadata, CSRF): only our own.
//!
//! Browsers say with `Sec-Fetch-Site` where a request comes from, and pages cannot change that. Where it is missing (an older
//! browser, a plain address in a network) `Origin` is looked at. Programs such as curl send neither and are answered.

use axum::extract::Request;
use axum::http::header::HeaderName;
use axum::http::{HeaderMap, Method, StatusCode, header};

use crate::problem::Problem;

/// Refuses what a page of another origin asks for, before anything is computed.
pub(super) fn check(request: &Request) -> Result<(), Problem> {
    let (headers, reads) = (request.headers(), matches!(*request.method(), Method::GET | Method::HEAD));
    let allowed = match only(headers, "sec-fetch-site") {
        Said::Once("same-origin") => true,
        // Somebody typed the address, or opened a bookmark.
        Said::Once("none") => reads,
        Said::Nothing => match only(headers, "origin") {
            Said::Nothing => true,
            Said::Once(origin) => is_own(origin, headers),
            Said::Odd => false,
        },
        Said::Once(_) | Said::Odd => reads && is_visit(request),
    };
    if allowed {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, "the request comes from a page of another origin")
        .hint("open the page of this server, or ask from a program that sends neither `Sec-Fetch-Site` nor `Origin`"))
}

/// A link somewhere that leads to the page: the page itself is the same for everybody and cannot be framed.
fn is_visit(request: &Request) -> bool {
    let says = |name, value| matches!(only(request.headers(), name), Said::Once(said) if said == value);
    request.uri().path() == "/" && says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document")
}

/// Whether `origin` is the one that this request was sent to. A server behind a proxy may be asked by `https`.
fn is_own(origin: &str, headers: &HeaderMap) -> bool {
    let asked = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    asked.zip(host).is_some_and(|(asked, host)| asked.eq_ignore_ascii_case(host))
}

/// What a header that may stand once says.
enum Said<'a> {
    Nothing,
    Once(&'a str),
    /// Twice, or in no letters.
    Odd,
}

fn only<'a>(headers: &'a HeaderMap, name: &'static str) -> Said<'a> {
    let mut values = headers.get_all(HeaderName::from_static(name)).iter();
    match (values.next(), values.next()) {
        (None, _) => Said::Nothing,
        (Some(value), None) => value.to_str().map_or(Said::Odd, Said::Once),
        (Some(_), Some(_)) => Said::Odd,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn is_allowed(method: Method, path: &str, headers: &[(&str, &str)]) -> bool {
        let request = Request::builder().method(method).uri(path).header("host", "localhost:7878");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        check(&request.body(Body::empty()).unwrap()).is_ok()
    }

    const SITE: &str = "sec-fetch-site";

    #[test]
    fn pages_of_other_origins_get_nothing() {
        for path in ["/", "/api/v1/videos/one/media", "/api/v1/search?q=ball", "/api/v1/health", "/app.js"] {
            for site in ["cross-site", "same-site", "odd", ""] {
                for method in [Method::GET, Method::HEAD, Method::POST, Method::OPTIONS] {
                    assert!(!is_allowed(method.clone(), path, &[(SITE, site)]), "{method} {path} {site}");
                }
            }
            assert!(!is_allowed(Method::GET, path, &[(SITE, "same-origin"), (SITE, "cross-site")]), "{path}");
            for origin in
                ["http://localhost:19999", "https://evil.example", "null", "http://localhost:7878.evil.example"]
            {
                assert!(!is_allowed(Method::GET, path, &[("origin", origin)]), "{path} {origin}");
            }
        }
        assert!(!is_allowed(Method::POST, "/api/v1/jobs", &[(SITE, "none")]));
    }

    #[test]
    fn the_page_itself_typed_addresses_and_programs_are_answered() {
        assert!(is_allowed(Method::GET, "/api/v1/search?q=ball", &[]));
        assert!(is_allowed(Method::POST, "/api/v1/jobs", &[]));
        assert!(is_allowed(Method::GET, "/", &[(SITE, "none")]));
        // What a browser says of a script's own POST.
        let own = [(SITE, "same-origin"), ("origin", "http://localhost:7878")];
        assert!(is_allowed(Method::POST, "/api/v1/jobs", &own));
        assert!(is_allowed(Method::POST, "/api/v1/jobs", &[("origin", "https://LOCALHOST:7878")]));
    }

    #[test]
    fn a_link_elsewhere_may_lead_to_the_page_and_to_nothing_else() {
        let visit = [(SITE, "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        assert!(is_allowed(Method::GET, "/?q=ball", &visit));
        assert!(!is_allowed(Method::GET, "/api/v1/videos/one/media", &visit));
        assert!(!is_allowed(Method::POST, "/", &visit));
        let framed = [(SITE, "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        assert!(!is_allowed(Method::GET, "/", &framed));
    }
}
