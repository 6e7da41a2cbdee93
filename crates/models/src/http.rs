//! Requests and responses as data. The host sends the requests unchanged and follows no redirect.

use bytes::Bytes;
use futures::stream::LocalBoxStream;

/// An outgoing request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: &'static str,
    /// Absolute URL.
    pub url: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    pub body: Option<Bytes>,
    /// The headers to read of a successful response.
    pub reads: HeaderSelection,
}

/// The headers to read of a response with status 2xx: reading all of them takes longer than the rest of a
/// short response. Other responses have all their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderSelection {
    /// `content-type`.
    Type,
    /// All.
    All,
}

/// A response whose body is not read yet.
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, read chunk by chunk.
    pub body: Body,
}

impl Response {
    /// The value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// The reason why a request has no response, or its body broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("network: {0}")]
pub struct FetchError(pub String);

/// A body that arrives in chunks. Dropping it cancels the request.
pub type Body = LocalBoxStream<'static, Result<Bytes, FetchError>>;

/// A time in the format of headers, in whole seconds: `Sun, 22 Nov 2026 05:00:00 GMT`.
pub fn date(us: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = us.div_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = bobbin_definitions::dates::civil(days);
    let weekday = DAYS.get(days.rem_euclid(7) as usize).copied().unwrap_or_default();
    let month = MONTHS.get((month - 1) as usize).copied().unwrap_or_default();
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// The target of a URL, in lower case.
struct Target {
    /// Host and port as written, without user information.
    authority: String,
    /// Without brackets and trailing dots.
    host: String,
}

/// Parses the target of an `http` or `https` URL. Returns `None` if another parser, such as the platform's,
/// could find another host: they decode percent signs, map Unicode to ASCII, drop tabs, and treat backslashes
/// as slashes. A host consists of ASCII letters, digits, `-`, `_` and `.`, or is an IPv6 address.
fn target(url: &str) -> Option<Target> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    if !authority.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return None;
    }
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(host, _)| host.parse::<std::net::Ipv6Addr>().is_ok())?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    let host = host.trim_end_matches('.');
    if !is_port || host.is_empty() || !(authority.starts_with('[') || host.split('.').all(is_label)) {
        return None;
    }
    Some(Target { host: host.to_owned(), authority })
}

/// Whether all parsers read a label in the same way.
fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    // Punycode of an ASCII name: some parsers decode it to the name itself.
    let doubled = label.starts_with("xn--") && label.ends_with('-');
    !label.is_empty() && label.bytes().all(plain) && !doubled
}

/// Whether a URL is `http` or `https` with a host that all parsers read in the same way. No request is sent
/// to any other URL.
pub fn is_plain(url: &str) -> bool {
    target(url).is_some()
}

/// The reason why a URL is blocked, as a noun phrase such as `the private address 10.0.0.1`. A target is
/// blocked if it is private or link-local and not in `allowed` (hosts or `host:port`, separated by commas),
/// or if its host is not plain. Names are judged by their spelling only; docs/run-code.md describes the
/// protection against what they resolve to.
pub fn refused_target(url: &str, allowed: &str) -> Option<String> {
    match target(url) {
        None => Some("an address that is not plain http or https with a host in ASCII".to_owned()),
        Some(target) if is_private(&target.host) && !target.is_listed(allowed) => {
            Some(format!("the private address {}", target.host))
        }
        Some(_) => None,
    }
}

/// Whether `allowed` (hosts or `host:port`, separated by commas) lists the host of a URL.
pub fn lists(allowed: &str, url: &str) -> bool {
    target(url).is_some_and(|target| target.is_listed(allowed))
}

/// Whether two URLs have the same host and port.
pub fn is_same_place(a: &str, b: &str) -> bool {
    match (target(a), target(b)) {
        (Some(a), Some(b)) => a.authority == b.authority,
        _ => false,
    }
}

impl Target {
    fn is_listed(&self, allowed: &str) -> bool {
        allowed.split(',').map(str::trim).any(|entry| {
            let entry = entry.to_ascii_lowercase();
            !entry.is_empty() && (entry == self.authority || entry.trim_matches(['[', ']']) == self.host)
        })
    }
}

fn is_private(host: &str) -> bool {
    if let Ok(address) = host.parse::<std::net::Ipv6Addr>() {
        return is_private_v6(address);
    }
    if let Ok(address) = host.parse::<std::net::Ipv4Addr>() {
        return is_private_v4(address);
    }
    // Other spellings of an IPv4 address (octal, hexadecimal, fewer parts) end in a number; no name does.
    let last = host.rsplit('.').next().unwrap_or_default();
    let number =
        last.starts_with("0x") || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()));
    let local = ["localhost", "local", "internal", "lan", "home.arpa"];
    number || local.iter().any(|name| host == *name || host.ends_with(&format!(".{name}")))
}

/// Keep the ranges in sync with package/server/outbound.mjs.
fn is_private_v6(address: std::net::Ipv6Addr) -> bool {
    let [first, second, third, .., last_but_one, last] = address.segments();
    let inside = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(std::net::Ipv4Addr::new(a, b, c, d))
    };
    address.to_ipv4().is_some_and(is_private_v4)
        || address.is_unspecified()
        // Unique local, link-local, formerly site-local, multicast.
        || first & 0xfe00 == 0xfc00
        || first & 0xff80 == 0xfe80
        || first & 0xff00 == 0xff00
        // Embedded IPv4 addresses: NAT64 and 6to4.
        || (first == 0x64 && second == 0xff9b && inside(last_but_one, last))
        || (first == 0x2002 && inside(second, third))
}

fn is_private_v4(address: std::net::Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19))
}

#[cfg(test)]
mod tests {
    use crate::http::{date, is_same_place, refused_target};

    #[test]
    fn a_date_is_as_headers_have_it() {
        assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(date(784_111_777_999_999), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date(1_709_164_800_000_000), "Thu, 29 Feb 2024 00:00:00 GMT");
    }

    #[test]
    fn private_targets_are_refused_unless_listed() {
        for url in [
            "http://127.0.0.1:8080/x",
            "http://localhost/",
            "https://a.localhost",
            "http://10.1.2.3",
            "http://192.168.1.1/",
            "http://172.20.0.1",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1",
            "http://0.0.0.0",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://127.1",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
            "http://[fec0::1]/",
            "http://[ff02::1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:a00:1::1]/",
            "http://198.18.0.1/",
            "http://192.0.0.170/",
            "http://user:pass@localhost/",
            "http://metadata.google.internal/",
            "http://localhost./",
            "HTTP://LOCALHOST/",
            "http://127.0.0.01/",
            "http://1.2.3.0x7f/",
        ] {
            assert!(refused_target(url, "").is_some(), "{url}");
        }
        for url in [
            "https://example.com/",
            "https://8.8.8.8/",
            "http://[2606:4700::1111]/",
            "http://[64:ff9b::808:808]/",
            "http://[2002:808:808::1]/",
            "http://192.0.2.1/",
            "https://x1.example.com:8443/a",
        ] {
            assert_eq!(refused_target(url, ""), None, "{url}");
        }
        assert_eq!(refused_target("http://[::1]:8/", "").unwrap(), "the private address ::1");
        assert_eq!(refused_target("http://127.0.0.1:9000/x", "localhost,127.0.0.1,[::1]"), None);
        assert_eq!(refused_target("http://[::1]:9000/x", "localhost,127.0.0.1,[::1]"), None);
        assert_eq!(refused_target("http://10.0.0.5:9000/x", "10.0.0.5:9000"), None);
        assert!(refused_target("http://10.0.0.5:9001/x", "10.0.0.5:9000").is_some());
    }

    #[test]
    fn a_host_that_could_be_read_otherwise_is_refused_even_if_it_is_listed() {
        for url in [
            // Other parsers turn these into 127.0.0.1 or localhost.
            "https://127.0.0.%31/",
            "https://\u{ff11}27.0.0.1/",
            "https://127\u{3002}0\u{3002}0\u{3002}1/",
            "https://127\u{ff61}0.0.1/",
            "https://127.0.0\t.1/",
            "https://127.0.0.1\n/",
            "https://localhos%74/",
            "https://local\u{ad}host/",
            "https://localho\u{17f}t/",
            "https://\u{24db}ocalhost/",
            "https://xn--localhost-/",
            "https://127.0.0.1\\@example.com/",
            "https://example.com\\@127.0.0.1/",
            "https:/127.0.0.1/",
            "https:127.0.0.1/",
            "https:///127.0.0.1/",
            "https:\\\\127.0.0.1/",
            "ht\ttps://127.0.0.1/",
            " https://127.0.0.1/",
            "//127.0.0.1/",
            "https://[::1/",
            "https://[127.0.0.1]/",
            "https://[fe80::1%25eth0]/",
            "https://[::1]x/",
            "https://a..b/",
            "https://b\u{fc}cher.example/",
            "https://example.com:80a/",
            "ftp://example.com/",
            "https://",
            "",
        ] {
            assert!(refused_target(url, "127.0.0.1,localhost").is_some(), "{url:?}");
        }
        for url in
            ["https://xn--bcher-kva.example/", "https://a_b-c.example:8443", "https://example.com:/\u{fc} \t"]
        {
            assert_eq!(refused_target(url, ""), None, "{url:?}");
        }
        assert!(is_same_place("https://Example.com/a", "https://u@example.COM?b"));
        assert!(!is_same_place("https://example.com", "https://example.com:8443"));
        assert!(!is_same_place("https://%65xample.com", "https://%65xample.com"));
    }
}
