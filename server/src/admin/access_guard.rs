//! Access control of the admin port: by token; without a token, only requests whose Host is an IP address or `localhost`.
//!
//! DNS rebinding: a browser page can point its own host name at 127.0.0.1 and read the response. It cannot hide that name in Host.

use std::net::IpAddr;

use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::request::Parts;

/// What a request may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessLevel {
    /// Everything.
    Full,
    /// Only the health status: the token is missing or wrong.
    HealthOnly,
    /// Nothing: a page of another origin sent the request.
    Denied,
}

/// Returns what this request may read.
pub(super) fn access_level(request: &Parts, token: &str) -> AccessLevel {
    if token.is_empty() {
        return match is_local_host_name(request) {
            true => AccessLevel::Full,
            false => AccessLevel::Denied,
        };
    }
    let shown = request.headers.get(AUTHORIZATION);
    let shown = shown.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let same = shown.is_some_and(|shown| {
        aws_lc_rs::constant_time::verify_slices_are_equal(shown, token.as_bytes()).is_ok()
    });
    match same {
        true => AccessLevel::Full,
        false => AccessLevel::HealthOnly,
    }
}

/// True if the Host header is an IP address or `localhost`. Browsers always send Host.
fn is_local_host_name(request: &Parts) -> bool {
    let named = request
        .headers
        .get_all(HOST)
        .iter()
        .map(|host| host.to_str().ok());
    let of_uri = request.uri.host().map(Some);
    named.chain(of_uri).all(|host| {
        host.is_some_and(|host| {
            let host = host_of(host);
            host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
        })
    })
}

/// Strips the port, and the brackets of IPv6.
fn host_of(host: &str) -> &str {
    if let Some(number) = host.strip_prefix('[') {
        return number.split(']').next().unwrap_or_default();
    }
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyper::Request;

    fn with(name: &str, value: &str, token: &str) -> AccessLevel {
        let request = Request::builder().uri("/metrics").header(name, value);
        access_level(&request.body(()).unwrap().into_parts().0, token)
    }

    #[test]
    fn a_name_that_somebody_else_gave_this_machine_is_no_way_in() {
        for host in [
            "127.0.0.1:9307",
            "localhost",
            "LOCALHOST:1",
            "[::1]:9307",
            "10.0.0.1",
        ] {
            assert_eq!(with("host", host, ""), AccessLevel::Full, "{host}");
        }
        for host in [
            "evil.example:9307",
            "localhost.evil.example",
            "",
            "127.0.0.1.evil.example",
        ] {
            assert_eq!(with("host", host, ""), AccessLevel::Denied, "{host}");
        }
        assert_eq!(with("accept", "*/*", ""), AccessLevel::Full);
    }

    #[test]
    fn the_token_opens_and_nothing_like_it() {
        let token = "0123456789abcdef";
        assert_eq!(
            with("authorization", "Bearer 0123456789abcdef", token),
            AccessLevel::Full
        );
        for other in [
            "Bearer 0123456789abcde",
            "bearer 0123456789abcdef",
            "Basic 0123456789abcdef",
            "",
        ] {
            let may = with("authorization", other, token);
            assert_eq!(may, AccessLevel::HealthOnly, "{other}");
        }
        assert_eq!(with("host", "evil.example", token), AccessLevel::HealthOnly);
    }
}
