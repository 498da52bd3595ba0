//! Which name the server was asked by (DNS rebinding): a page elsewhere can give its own name this machine's address; the
//! browser then still sends that name.

use axum::extract::Request;
use axum::http::{StatusCode, Version, header};

use crate::problem::Problem;

/// Refuses requests that name no host, two hosts, or nonsense; and, where no token keeps others out, every name but those of
/// this machine.
pub(super) fn check(request: &Request, token: Option<&str>) -> Result<(), Problem> {
    let mut named = request.headers().get_all(header::HOST).iter();
    let (host, second) = (named.next(), named.next());
    if second.is_some() {
        return Err(Problem::bad("the request names two hosts"));
    }
    let host = match host.map(|host| host.to_str()) {
        Some(Ok(host)) => Some(host),
        Some(Err(_)) => return Err(Problem::bad("the request names a host that is not ASCII")),
        None if request.version() >= Version::HTTP_11 => return Err(Problem::bad("the request names no host")),
        None => None,
    };
    // An address with a host in it counts more than the header does (RFC 9112, 3.2.2).
    let asked = request.uri().authority().map(axum::http::uri::Authority::as_str);
    let is_ours = host.is_some_and(is_loopback) && asked.is_none_or(is_loopback);
    if token.is_some() || is_ours {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, "the request names another host")
        .hint("without a token only requests to localhost, 127.0.0.1 or [::1] are answered"))
}

/// Whether `host`, perhaps with a port, is a name that only this machine has for itself.
fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) if rest.is_empty() || rest.starts_with(':') => (name, rest.strip_prefix(':')),
        Some(_) => return false,
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    is_port && (name.eq_ignore_ascii_case("localhost") || matches!(name, "127.0.0.1" | "::1"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for host in ["localhost", "LocalHost:7878", "127.0.0.1:1", "[::1]:7878", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "127.0.0.1:80.evil.example",
            "localhost:80@evil.example",
            "[::2]:1",
            "[::1].evil.example",
            "",
            ":80",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    fn asked(uri: &str, hosts: &[&[u8]], version: Version) -> Request {
        let request = Request::builder().uri(uri).version(version);
        hosts.iter().fold(request, |request, host| request.header(header::HOST, *host)).body(Body::empty()).unwrap()
    }

    #[test]
    fn odd_absent_and_double_hosts_are_refused_whether_there_is_a_token_or_not() {
        let odd: [(&[&[u8]], Version, u16); 4] = [
            (&[], Version::HTTP_11, 400),
            (&[b"localhost", b"localhost"], Version::HTTP_11, 400),
            (&[b"localhost", b"evil.example"], Version::HTTP_10, 400),
            (&[b"localh\xf6st"], Version::HTTP_11, 400),
        ];
        for (hosts, version, status) in odd {
            for token in [None, Some("token")] {
                let refused = check(&asked("/", hosts, version), token).unwrap_err();
                assert_eq!(refused.status(), status, "{hosts:?}");
            }
        }
        // Old clients name no host; without a token nobody knows whom they meant.
        assert_eq!(check(&asked("/", &[], Version::HTTP_10), None).unwrap_err().status(), 403);
        assert!(check(&asked("/", &[], Version::HTTP_10), Some("token")).is_ok());
        assert!(check(&asked("/", &[b"evil.example"], Version::HTTP_11), Some("token")).is_ok());
    }

    #[test]
    fn a_host_in_the_address_counts_as_well() {
        let refused = check(&asked("http://evil.example/", &[b"localhost"], Version::HTTP_11), None).unwrap_err();
        assert_eq!(refused.status(), 403);
        assert!(check(&asked("http://localhost:7878/", &[b"localhost:7878"], Version::HTTP_11), None).is_ok());
    }
}
