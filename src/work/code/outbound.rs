//! Where requests of code go whose host somebody else may have chosen. Private addresses are refused unless they are listed.
//!
//! By its spelling an address can be judged here; where a name leads, nobody here can see. Deployed, requests leave from the
//! platform's network, which is in no private one. Under development they would leave from the developer's own machine:
//! there `npm start` sends them (package/server/outbound.mjs), which looks at each address before it connects to just that one.

use crate::host::http::{Request, Response, lists, private_target};
use crate::sandbox::Thrown;

/// Names that may be private: hosts, or `host:port`, separated by commas.
const LISTED: &str = "BOBBIN_ALLOW_PRIVATE_HOSTS";
/// The URL of what sends for us; `npm start` sets it.
const SENDER: &str = "BOBBIN_DEV_OUTBOUND";
/// Carries the URL to it.
const TARGET: &str = "x-bobbin-target";
/// Its answer when it has sent nothing, or has had none: why.
const UNSENT: &str = "x-bobbin-unsent";

/// The request as it may leave.
pub(crate) fn permitted(
    mut request: Request,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Request, Thrown> {
    let listed = var(LISTED).unwrap_or_default();
    if let Some(host) = private_target(&request.url, &listed) {
        return Err(Thrown::new(format!("fetch: the private address {host} is not allowed here.")));
    }
    request.headers.retain(|(name, _)| name != TARGET);
    if let Some(sender) = var(SENDER).filter(|_| !lists(&listed, &request.url)) {
        let url = std::mem::replace(&mut request.url, sender);
        request.headers.push((TARGET.to_owned(), url));
    }
    Ok(request)
}

/// Why a request was not sent.
pub(crate) fn unsent(response: &Response) -> Option<&str> {
    response.header(UNSENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::http::Reads;

    fn left(url: &str, vars: &[(&str, &str)]) -> Result<Request, String> {
        let headers = vec![("x-bobbin-target".to_owned(), "http://elsewhere/".to_owned())];
        let request = Request { method: "GET", url: url.to_owned(), headers, body: None, reads: Reads::All };
        let var =
            |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        permitted(request, var).map_err(|thrown| thrown.message)
    }

    #[test]
    fn under_development_names_that_nobody_listed_are_looked_at() {
        let sender = (SENDER, "http://127.0.0.1:1/x");
        let sent = left("https://api.example.com/a?b", &[sender]).unwrap();
        assert_eq!(sent.url, "http://127.0.0.1:1/x");
        assert_eq!(sent.headers, [("x-bobbin-target".to_owned(), "https://api.example.com/a?b".to_owned())]);
        for (url, vars) in [
            ("https://api.example.com/", vec![]),
            ("http://127.0.0.1:9/", vec![sender, (LISTED, "127.0.0.1")]),
            ("http://vm:9/", vec![sender, (LISTED, "vm:9")]),
        ] {
            let sent = left(url, &vars).unwrap();
            assert_eq!((sent.url.as_str(), sent.headers.len()), (url, 0));
        }
        assert!(left("http://127.0.0.1:9/", &[sender]).unwrap_err().contains("private address 127.0.0.1"));
    }
}
