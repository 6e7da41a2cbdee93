//! Origins from which a browser may call (docs/http.md): those in `BOBBIN_ALLOWED_ORIGINS`. A development
//! server also serves pages from servers on the same machine.

use crate::access::is_local;

/// Time for which a browser may cache the response to a preflight, seconds.
pub const PREFLIGHT_S: u32 = 7_200;
/// Methods that a preflight allows.
pub const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// Request headers that a preflight allows if it requests none.
const HEADERS: &str =
    "authorization, content-type, idempotency-key, if-match, if-none-match, if-range, last-event-id, range";
/// Maximum bytes of header names that a preflight may request.
const ASKED_BYTES: usize = 4 << 10;
/// Response headers that a page may read.
pub const EXPOSED: &str = "accept-ranges, content-length, content-range, etag, last-modified, location, mcp-session-id, \
     retry-after, www-authenticate, x-bobbin-run, x-bobbin-thread, x-request-id, x-vercel-ai-ui-message-stream";

/// The request headers that a preflight of an allowed origin allows: those that it requests. Bobbin uses no
/// cookies, so a page's header allows nothing that a program without a page could not send.
pub fn allowed_headers(asked: Option<&str>) -> &str {
    let is_list = |names: &str| {
        let name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~, ".contains(c);
        names.len() <= ASKED_BYTES && names.chars().all(name)
    };
    asked.map(str::trim).filter(|names| !names.is_empty() && is_list(names)).unwrap_or(HEADERS)
}

/// Whether the list contains the origin of a request by name. `*` names no origin.
pub fn names(list: &str, origin: &str) -> bool {
    !list.split(',').any(|entry| entry.trim() == "*") && allows(list, origin)
}

/// Whether the list (`https://a.example, https://b.example:8443`, or `*` for all) allows the origin of a
/// request. Credentials are bearer tokens, never cookies, so `*` gives no access to a page that has no token.
pub fn allows(list: &str, origin: &str) -> bool {
    !origin.is_empty()
        && list
            .split(',')
            .map(|entry| entry.trim().trim_end_matches('/'))
            .any(|entry| entry == "*" || (!entry.is_empty() && entry.eq_ignore_ascii_case(origin)))
}

/// Whether the origin is a server on this machine, at any port.
pub fn is_loopback(origin: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(is_local)
}

#[cfg(test)]
mod tests {
    use crate::request::cors::{HEADERS, allowed_headers, allows, is_loopback, names};

    #[test]
    fn pages_of_this_machine_are_known_by_their_host() {
        for origin in
            ["http://localhost:5173", "http://127.0.0.1:3000", "https://localhost", "http://[::1]:80"]
        {
            assert!(is_loopback(origin), "{origin}");
        }
        for origin in [
            "",
            "null",
            "localhost:5173",
            "file://localhost",
            "http://localhost.evil.example",
            "http://evil.example:80",
            "http://127.0.0.1.evil.example",
            "http://evil.example@localhost",
            "http://localhost:80/x",
        ] {
            assert!(!is_loopback(origin), "{origin}");
        }
    }

    #[test]
    fn a_preflight_may_send_what_it_asks_for() {
        let asked = "authorization,x-stainless-lang,mcp-protocol-version";
        assert_eq!(allowed_headers(Some(asked)), asked);
        for nothing in [None, Some(""), Some(" "), Some("a\r\nb: c"), Some("é")] {
            assert_eq!(allowed_headers(nothing), HEADERS, "{nothing:?}");
        }
        assert_eq!(allowed_headers(Some(&"a".repeat(5_000))), HEADERS);
    }

    #[test]
    fn a_star_names_no_origin() {
        assert!(names("http://localhost:3000", "http://localhost:3000"));
        assert!(!names("*", "http://localhost:3000"));
        assert!(!names("", "http://localhost:3000"));
    }

    #[test]
    fn only_listed_origins_are_allowed() {
        let list = "https://app.example, http://localhost:3000/";
        for origin in ["https://app.example", "http://localhost:3000", "https://APP.example"] {
            assert!(allows(list, origin), "{origin}");
        }
        for origin in
            ["", "null", "http://app.example", "https://app.example.evil", "https://app.example:444", "*"]
        {
            assert!(!allows(list, origin), "{origin}");
        }
        assert!(!allows("", "https://app.example"));
        assert!(!allows(",", ""));
        assert!(allows("*", "https://anything.example"));
    }
}
