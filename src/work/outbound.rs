//! Targets of requests. Private addresses are refused unless listed, and so is a host that could be parsed in
//! two ways.
//!
//! This module can check a literal address, but not the address that a name resolves to. On Cloudflare,
//! requests leave from the platform's network, which is not private. A server on your own machine could reach
//! others in its network. There, package/server/outbound.mjs sends each request whose URL somebody else may
//! have chosen: it checks the resolved address, and connects to exactly that one.

use crate::host::Host;
use crate::host::http::{FetchError, Request, Response, lists, refused_target};

/// The variable with permitted private names: hosts, or `host:port`, separated by commas.
const LISTED: &str = "BOBBIN_ALLOW_PRIVATE_HOSTS";
/// The variable with the URL of that sender. The commands that serve set it.
const SENDER: &str = "BOBBIN_DEV_OUTBOUND";
/// The header with the target URL, for the sender.
const TARGET: &str = "x-bobbin-target";
/// The header in the sender's response with the reason why it has no response from the target.
const UNSENT: &str = "x-bobbin-unsent";

/// The origin of a request's URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UrlOrigin {
    /// The deployment's definitions: a name may resolve to any address.
    ByDeployment,
    /// Code, or a foreign server.
    ByOthers,
}

/// Describes a target that is refused; `None` for a permitted one.
pub(super) fn refused(host: &dyn Host, url: &str) -> Option<String> {
    refused_target(url, &host.var(LISTED).unwrap_or_default())
}

/// Like `refused`, for confidential requests: these need https, except to listed hosts.
pub(crate) fn refused_in_clear(host: &dyn Host, url: &str) -> Option<String> {
    let listed = host.var(LISTED).unwrap_or_default();
    refused_target(url, &listed).or_else(|| {
        (!url.starts_with("https://") && !lists(&listed, url)).then(|| "no https address".to_owned())
    })
}

/// The reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The reason from the sender.
    #[error("{0}")]
    Looked(String),
    #[error("{0}")]
    Failed(#[from] FetchError),
}

/// Sends a request that is not [`refused`].
///
/// # Errors
/// It was not sent, or got no response.
pub(super) async fn send(
    host: &dyn Host,
    request: Request,
    chosen: UrlOrigin,
) -> Result<Response, SendError> {
    let (request, route) = routed(request, chosen, |name| host.var(name));
    let response = host.fetch(request).await?;
    match response.header(UNSENT).filter(|_| route == SendRoute::Looked) {
        Some(why) => Err(SendError::Looked(why.to_owned())),
        None => Ok(response),
    }
}

/// The route of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendRoute {
    Straight,
    /// Through the sender.
    Looked,
}

/// The request as it is sent.
fn routed(
    mut request: Request,
    chosen: UrlOrigin,
    var: impl Fn(&str) -> Option<String>,
) -> (Request, SendRoute) {
    request.headers.retain(|(name, _)| name != TARGET);
    let looks = chosen == UrlOrigin::ByOthers && !lists(&var(LISTED).unwrap_or_default(), &request.url);
    match var(SENDER).filter(|_| looks) {
        None => (request, SendRoute::Straight),
        Some(sender) => {
            let url = std::mem::replace(&mut request.url, sender);
            request.headers.push((TARGET.to_owned(), url));
            (request, SendRoute::Looked)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::http::HeaderSelection;

    fn left(url: &str, chosen: UrlOrigin, vars: &[(&str, &str)]) -> (Request, SendRoute) {
        let headers = vec![("x-bobbin-target".to_owned(), "http://elsewhere/".to_owned())];
        let request =
            Request { method: "GET", url: url.to_owned(), headers, body: None, reads: HeaderSelection::All };
        let var =
            |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        routed(request, chosen, var)
    }

    #[test]
    fn where_there_is_a_sender_it_looks_at_names_that_others_chose_and_nobody_listed() {
        let sender = (SENDER, "http://127.0.0.1:1/x");
        let (sent, route) = left("https://api.example.com/a?b", UrlOrigin::ByOthers, &[sender]);
        assert_eq!((sent.url.as_str(), route), ("http://127.0.0.1:1/x", SendRoute::Looked));
        assert_eq!(sent.headers, [("x-bobbin-target".to_owned(), "https://api.example.com/a?b".to_owned())]);
        for (url, chosen, vars) in [
            ("https://api.example.com/", UrlOrigin::ByOthers, vec![]),
            ("https://api.example.com/", UrlOrigin::ByDeployment, vec![sender]),
            ("http://127.0.0.1:9/", UrlOrigin::ByOthers, vec![sender, (LISTED, "127.0.0.1")]),
            ("http://vm:9/", UrlOrigin::ByOthers, vec![sender, (LISTED, "vm:9")]),
        ] {
            let (sent, route) = left(url, chosen, &vars);
            assert_eq!((sent.url.as_str(), sent.headers.len(), route), (url, 0, SendRoute::Straight));
        }
    }
}
