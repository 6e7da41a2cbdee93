//! The guard of a development server, which requires no credentials. It accepts only programs on this machine
//! and pages that this machine served. Another page in the developer's browser must not get through, neither
//! with a form nor by DNS rebinding.

use bobbin_definitions::error::{Code, Error, Result};

/// The parts of a request that the guard checks.
#[derive(Clone, Copy, Debug)]
pub struct DevRequest<'a> {
    /// The `host` header.
    pub host: Option<&'a str>,
    /// The `origin` header, unless that origin is allowed.
    pub origin: Option<&'a str>,
    /// The `content-type` header.
    pub content_type: Option<&'a str>,
    /// The kind of the body.
    pub body: Body,
}

/// The body of a request, for the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// None or empty.
    None,
    /// Must be JSON.
    Json,
    /// The content of a file, on a file route: any type.
    File,
}

/// Checks a request to a development server (`BOBBIN_DEV`; docs/http.md).
///
/// # Errors
/// `forbidden` for another host or origin, `unsupported_media_type` for a body that is not JSON: a page of
/// another origin can send forms and plain text without a preflight request, but not JSON.
pub fn dev_guard(request: &DevRequest<'_>) -> Result<()> {
    let host = request.host.unwrap_or_default();
    if !is_local(host) {
        return Err(Error::new(
            Code::Forbidden,
            "A development server answers only to this machine's own names.",
        )
        .hint("Use http://127.0.0.1 or http://localhost."));
    }
    let same = |origin: &str| {
        let authority = origin.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
        authority.and_then(|_| origin.get(7..)).is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    };
    if request.origin.is_some_and(|origin| !same(origin)) {
        let text =
            "A development server answers only to pages of this machine and of origins that it was given.";
        return Err(Error::new(Code::Forbidden, text).hint(format!(
            "Set BOBBIN_ALLOWED_ORIGINS={} in .dev.vars or with --var to serve that page too.",
            request.origin.unwrap_or_default()
        )));
    }
    let is_json = || {
        let essence = request.content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    };
    if request.body == Body::Json && !is_json() {
        return Err(Error::new(Code::UnsupportedMediaType, "The body must be JSON.")
            .hint("Send `content-type: application/json`."));
    }
    Ok(())
}

/// `127.0.0.1`, `localhost` or `[::1]`, with any port.
pub fn is_local(host: &str) -> bool {
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        let (head, port) = host.split_at_checked(name.len()).unwrap_or_default();
        let port = port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
        head.eq_ignore_ascii_case(name) && port
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: DevRequest<'_> =
        DevRequest { host: Some("127.0.0.1:8787"), origin: None, content_type: None, body: Body::None };

    fn code(request: DevRequest<'_>) -> Option<Code> {
        dev_guard(&request).err().map(|error| error.code)
    }

    #[test]
    fn only_this_machines_names() {
        for host in ["127.0.0.1:8787", "127.0.0.1", "localhost:80", "LocalHost", "[::1]:8787", "[::1]"] {
            assert_eq!(code(DevRequest { host: Some(host), ..PLAIN }), None, "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "127.0.0.1:",
            "127.0.0.1:80x",
            "127.0.0.2",
            "0.0.0.0:8787",
            "192.168.1.2",
            "::1",
            "user@127.0.0.1",
            "é",
        ] {
            assert_eq!(code(DevRequest { host: Some(host), ..PLAIN }), Some(Code::Forbidden), "{host}");
        }
        assert_eq!(code(DevRequest { host: None, ..PLAIN }), Some(Code::Forbidden));
    }

    #[test]
    fn only_its_own_pages() {
        for (origin, allowed) in [
            (None, true),
            (Some("http://127.0.0.1:8787"), true),
            (Some("HTTP://127.0.0.1:8787"), true),
            (Some("http://127.0.0.1:8788"), false),
            (Some("http://127.0.0.1"), false),
            (Some("https://127.0.0.1:8787"), false),
            (Some("http://localhost:8787"), false),
            (Some("https://evil.example"), false),
            (Some("null"), false),
            (Some(""), false),
            (Some("httpsé://"), false),
        ] {
            assert_eq!(code(DevRequest { origin, ..PLAIN }).is_none(), allowed, "{origin:?}");
        }
    }

    #[test]
    fn only_json_bodies_but_for_files() {
        let refused = Some(Code::UnsupportedMediaType);
        for (body, content_type, expected) in [
            (Body::None, None, None),
            (Body::None, Some("text/plain"), None),
            (Body::Json, Some("application/json"), None),
            (Body::Json, Some("Application/JSON; charset=utf-8"), None),
            (Body::Json, None, refused),
            (Body::Json, Some("text/plain"), refused),
            (Body::Json, Some("text/plain; application/json"), refused),
            (Body::Json, Some("application/x-www-form-urlencoded"), refused),
            (Body::Json, Some("application/jsonp"), refused),
            (Body::File, Some("image/png"), None),
            (Body::File, None, None),
        ] {
            assert_eq!(
                code(DevRequest { body, content_type, ..PLAIN }),
                expected,
                "{body:?} {content_type:?}"
            );
        }
    }
}
