//! The destination of spans, from the deployment's variables (docs/observability.md).

use crate::engine::features::Telemetry;

/// The collector's address. Without it nothing is exported.
pub(super) const ENDPOINT: &str = "BOBBIN_OTLP_ENDPOINT";
/// Headers of each request to the collector: a secret.
pub(crate) const HEADERS: &str = "BOBBIN_OTLP_HEADERS";
/// `1` to include texts in spans.
pub(super) const CONTENT: &str = "BOBBIN_OTLP_CONTENT";
/// `1` to send metrics, too.
const METRICS: &str = "BOBBIN_OTLP_METRICS";
/// The collector's protocol, by the names of OpenTelemetry's own setting.
const PROTOCOL: &str = "BOBBIN_OTLP_PROTOCOL";
/// The name of the service.
const SERVICE: &str = "BOBBIN_SERVICE_NAME";

/// Paths of the signals below the collector's address.
pub(super) const TRACES: &str = "/v1/traces";
pub(super) const METRICS_PATH: &str = "/v1/metrics";

/// The encoding of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    #[default]
    Json,
    Protobuf,
}

impl Protocol {
    /// The deployment's protocol, or the error in its variable.
    pub(super) fn of(var: &dyn Fn(&str) -> Option<String>) -> Result<Protocol, String> {
        match var(PROTOCOL).unwrap_or_default().trim() {
            "" | "http/json" => Ok(Protocol::Json),
            "http/protobuf" => Ok(Protocol::Protobuf),
            other => Err(format!(
                "{PROTOCOL} is “{other}”, which is neither http/json nor http/protobuf: the collector is sent JSON"
            )),
        }
    }

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Protocol::Json => "application/json",
            Protocol::Protobuf => "application/x-protobuf",
        }
    }
}

/// A collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Collector {
    pub(super) traces: String,
    /// The address of metrics, if they are sent.
    pub(super) metrics: Option<String>,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) protocol: Protocol,
}

impl Collector {
    /// The deployment's collector; `None` without an endpoint.
    pub(super) fn of(var: &dyn Fn(&str) -> Option<String>) -> Option<Collector> {
        let endpoint = var(ENDPOINT)?;
        let address = endpoint.trim().trim_end_matches('/');
        let base = address.strip_suffix(TRACES).unwrap_or(address);
        if base.is_empty() {
            return None;
        }
        Some(Collector {
            traces: format!("{base}{TRACES}"),
            metrics: (var(METRICS).as_deref() == Some("1")).then(|| format!("{base}{METRICS_PATH}")),
            headers: var(HEADERS).map(|text| headers(&text)).unwrap_or_default(),
            protocol: Protocol::of(var).unwrap_or_default(),
        })
    }
}

/// The service's name, as collectors show it.
pub(super) fn service(var: &dyn Fn(&str) -> Option<String>) -> String {
    var(SERVICE).filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "bobbin".to_owned())
}

/// `name=value,name=value`, with percent-encoded values. Invalid pairs are ignored.
fn headers(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), decoded(value.trim())))
        .filter(|(name, value)| {
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            !name.is_empty() && name.bytes().all(token) && !value.chars().any(char::is_control)
        })
        .collect()
}

/// The secrets in the headers: each value, as it is set and as it is sent, and the key of `Bearer <key>`.
pub(crate) fn secrets(text: &str) -> Vec<String> {
    let raw =
        text.split(',').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value.trim().to_owned());
    let sent: Vec<String> = headers(text).into_iter().map(|(_, value)| value).collect();
    let keys = sent.iter().filter_map(|value| value.split_once(' ')).map(|(_, key)| key.trim().to_owned());
    let keys: Vec<String> = keys.collect();
    std::iter::once(text.to_owned())
        .chain(raw)
        .chain(sent)
        .chain(keys)
        .filter(|secret| !secret.is_empty())
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = if *first == b'%' { after.get(..2) } else { None };
        let byte = digits
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Telemetry<'_> {
    /// Whether there is a collector.
    pub(super) fn exports(&self) -> bool {
        self.host.var(ENDPOINT).is_some_and(|endpoint| !endpoint.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> Option<Collector> {
        Collector::of(&|name| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_collector_is_where_the_variable_says() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(ENDPOINT, " ")]), None);
        for endpoint in ["https://c.test", "https://c.test/", "https://c.test/v1/traces"] {
            let collector = of(&[(ENDPOINT, endpoint)]).unwrap();
            assert_eq!((collector.traces.as_str(), collector.metrics), ("https://c.test/v1/traces", None));
        }
        let collector = of(&[(ENDPOINT, "https://c.test/otlp"), (METRICS, "1")]).unwrap();
        assert_eq!(collector.metrics.as_deref(), Some("https://c.test/otlp/v1/metrics"));
        for (name, protocol) in [("http/json", Protocol::Json), ("http/protobuf", Protocol::Protobuf)] {
            assert_eq!(of(&[(ENDPOINT, "https://c.test"), (PROTOCOL, name)]).unwrap().protocol, protocol);
        }
        let wrong = Protocol::of(&|_| Some("grpc".to_owned())).unwrap_err();
        assert!(wrong.contains("“grpc”") && wrong.contains("http/protobuf"), "{wrong}");
    }

    #[test]
    fn headers_are_pairs_and_their_values_are_secrets() {
        let text = "Authorization=Bearer%20hush-hush, x-team=a%2Cb,broken,=x,bad name=y";
        let expected = [("authorization", "Bearer hush-hush"), ("x-team", "a,b")];
        assert_eq!(headers(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let secrets = secrets(text);
        for secret in ["Bearer%20hush-hush", "Bearer hush-hush", "hush-hush", "a,b", text] {
            assert!(secrets.iter().any(|known| known == secret), "{secret}: {secrets:?}");
        }
        assert_eq!(decoded("100%, %zz %41"), "100%, %zz A");
    }
}
