//! Which origins a browser may call from (docs/http.md): those that `BOBBIN_ALLOWED_ORIGINS` lists, none without it.

/// How long a browser may remember a preflight's answer, seconds.
pub const PREFLIGHT_S: u32 = 7_200;
/// Methods that a preflight allows.
pub const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// Request headers that a preflight allows.
pub const HEADERS: &str =
    "authorization, content-type, idempotency-key, if-match, if-none-match, if-range, last-event-id, range";
/// Response headers that a page may read.
pub const EXPOSED: &str =
    "accept-ranges, content-length, content-range, etag, last-modified, location, retry-after";

/// Whether the list (`https://a.example, https://b.example:8443`, or `*` for all) has the origin of a request.
/// Credentials are bearer tokens, never cookies, so `*` opens nothing to a page that has no token.
pub fn allows(list: &str, origin: &str) -> bool {
    !origin.is_empty()
        && list
            .split(',')
            .map(|entry| entry.trim().trim_end_matches('/'))
            .any(|entry| entry == "*" || (!entry.is_empty() && entry.eq_ignore_ascii_case(origin)))
}

#[cfg(test)]
mod tests {
    use super::allows;

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
