//! The address of a provider's API.

/// The address of an API's `path` at a base, which may be blank (then `default` is meant), end with a slash or with the
/// end of the path already (`ends`, from the outside in), and carry a query, which is kept.
pub(crate) fn address(base_url: &str, default: &str, ends: &[&str], path: &str) -> String {
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
