//! The address of a request: its path and its query, decoded.

use crate::request::Query;
use bobbin_definitions::text::percent_decoded;

/// The target of a request.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The path as received, with its leading slash.
    pub path: String,
    /// The query.
    pub query: Query,
}

impl Target {
    /// Splits an absolute URL as the platform provides it. Invalid escapes stay unchanged, and bytes that are
    /// not UTF-8 become U+FFFD. The path or value is then unknown or invalid by its own rules.
    pub fn of(url: &str) -> Target {
        let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
        let resource = after_scheme.find(['/', '?']).and_then(|at| after_scheme.get(at..)).unwrap_or("/");
        let resource = resource.split('#').next().unwrap_or_default();
        let (path, query) = resource.split_once('?').unwrap_or((resource, ""));
        let path = if path.is_empty() { "/" } else { path };
        let parameters = query.split('&').filter(|part| !part.is_empty()).map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (percent_decoded(name, true), percent_decoded(value, true))
        });
        Target { path: path.to_owned(), query: Query(parameters.collect()) }
    }
}

impl Target {
    /// The segments of the path. Each is decoded separately, so an escaped slash does not separate segments.
    pub fn segments(&self) -> Vec<String> {
        self.path.trim_matches('/').split('/').map(|segment| percent_decoded(segment, false)).collect()
    }
}

/// The address as an endpoint sees it: the request's address, not decoded, without the path of the thread.
pub fn below_thread(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, resource) = rest.split_at(at);
    let (path, query) = match resource.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (resource, String::new()),
    };
    // `/api/threads/:id`; empty segments at the beginning are skipped (`segments`).
    let mut below = path.trim_start_matches('/');
    for _ in 0..3 {
        below = below.split_once('/').map_or("", |(_, below)| below);
    }
    format!("{scheme}://{host}/{below}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_and_decoded() {
        let target = Target::of("http://127.0.0.1:8787/api/agents/a%20b?search=x+y%26z&search=2&flag&=v#top");
        assert_eq!(target.path, "/api/agents/a%20b");
        assert_eq!(target.segments(), ["api", "agents", "a b"]);
        assert_eq!(target.query.get("search"), Some("x y&z"));
        assert_eq!(target.query.get("flag"), Some(""));
        assert_eq!(target.query.get("nothing"), None);
    }

    #[test]
    fn an_endpoint_sees_the_address_as_it_was_written() {
        for (url, below) in [
            ("https://h:8/api/threads/t/a%2Fb/%41?q=x+y%20z#top", "https://h:8/a%2Fb/%41?q=x+y%20z"),
            ("http://h/api/threads/t", "http://h/"),
            ("http://h/api/threads/t/", "http://h/"),
            ("http://h/api/threads/t?x=/y", "http://h/?x=/y"),
            ("http://h//api/threads/t/a/", "http://h/a/"),
            ("", "http:///"),
        ] {
            assert_eq!(below_thread(url), below, "{url}");
        }
    }

    #[test]
    fn odd_urls_do_no_harm() {
        let cases = [
            ("http://host", vec![""]),
            ("http://host?a=1", vec![""]),
            ("http://host/%", vec!["%"]),
            ("http://host/%4", vec!["%4"]),
            ("http://host/%zz%41", vec!["%zzA"]),
            ("http://host/%ff", vec!["\u{fffd}"]),
            ("http://host/a+b", vec!["a+b"]),
            ("http://host/a%2Fb/%2f/c/", vec!["a/b", "/", "c"]),
            ("http://host/a//b", vec!["a", "", "b"]),
            ("/only/path", vec!["only", "path"]),
            ("", vec![""]),
        ];
        for (url, segments) in cases {
            assert_eq!(Target::of(url).segments(), segments, "{url}");
        }
    }
}
