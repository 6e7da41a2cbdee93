//! The address of a provider's API.

/// Returns the address of `path` at a base URL. A blank base means `default`. A trailing slash and the
/// suffixes in `ends` (outermost first) are removed; a query is kept.
pub fn address(base_url: &str, default: &str, ends: &[&str], path: &str) -> String {
    let base = base_url.trim();
    let base = if base.is_empty() { default } else { base };
    let (base, query) = match base.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (base, String::new()),
    };
    let base = base.trim_end_matches('/');
    let base = ends.iter().fold(base, |base, end| base.strip_suffix(end).unwrap_or(base));
    format!("{base}{path}{query}")
}
