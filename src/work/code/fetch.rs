//! `fetch` of sandboxed code, limited to the hosts that its definition lists.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::oneshot;
use futures::future::{Either, select};
use serde_json::Value as Json;

use crate::host::Host;
use crate::host::http::{HeaderSelection, Request};
use crate::json;
use crate::limits;
use crate::sandbox::backlog::{SMALL_BYTES, reserve};
use crate::sandbox::{BinaryKind, Exception, Function, Value};
use crate::work::WorkContext;
use crate::work::code::args::Args;
use crate::work::outbound::{self, SendError, UrlOrigin};

const HEADERS: &str = "fetch: headers must be an object of texts, or pairs of texts.";

/// Senders that abort active requests, by the code's number for each.
type ActiveRequests = Rc<RefCell<HashMap<u64, oneshot::Sender<()>>>>;

/// Returns `fetch` and `abort`: `fetch(url, { method, headers, body, id })` returns `{ status, headers, body
/// }`, and `abort(id)` ends such a request. Redirects are not followed. isolate/web/http.js wraps these for
/// the code.
pub(super) fn fetch(context: &Rc<dyn WorkContext>, allowed: Vec<String>) -> (Function, Function) {
    let under = ActiveRequests::default();
    let abort = {
        let under = under.clone();
        Function::new("abort", move |args| {
            let ended = args.first().and_then(number).and_then(|id| under.borrow_mut().remove(&id));
            // The request may have ended.
            let _over = ended.map(|ended| ended.send(()));
            Box::pin(async { Ok(Value::Undefined) })
        })
    };
    let (context, allowed) = (context.clone(), Rc::<[String]>::from(allowed));
    let fetch = Function::new("fetch", move |args| {
        let (context, allowed, under) = (context.clone(), allowed.clone(), under.clone());
        // Registered synchronously, because `abort` may be the next call.
        let entered =
            args.get(1).and_then(|init| number(init.get("id"))).map(|id| ActiveRequest::new(under, id));
        Box::pin(async move {
            let request = request(args)?;
            permitted(&request.url, &allowed)?;
            if let Some(what) = outbound::refused(&**context.host(), &request.url) {
                return Err(Exception::new(format!("fetch: {what} is not allowed here.")));
            }
            context.counts_request();
            match entered {
                None => sent(&**context.host(), request).await,
                Some(entered) => entered.until_ended(sent(&**context.host(), request)).await,
            }
        })
    });
    (fetch, abort)
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) if *number >= 0.0 => Some(*number as u64),
        _ => None,
    }
}

/// An active request that can be aborted.
struct ActiveRequest {
    under: ActiveRequests,
    id: u64,
    ended: Option<oneshot::Receiver<()>>,
}

impl ActiveRequest {
    fn new(under: ActiveRequests, id: u64) -> ActiveRequest {
        let (end, ended) = oneshot::channel();
        under.borrow_mut().insert(id, end);
        ActiveRequest { under, id, ended: Some(ended) }
    }

    /// Drops the request, which cancels it, when it is aborted.
    async fn until_ended(
        mut self,
        sent: impl Future<Output = Result<Value, Exception>>,
    ) -> Result<Value, Exception> {
        let Some(ended) = self.ended.take() else { return sent.await };
        match select(Box::pin(sent), ended).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => {
                Err(Exception { name: "AbortError".to_owned(), ..Exception::new("The request was aborted.") })
            }
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.under.borrow_mut().remove(&self.id);
    }
}

async fn sent(host: &dyn Host, request: Request) -> Result<Value, Exception> {
    let failed = |error: &dyn std::fmt::Display| Exception {
        name: "TypeError".to_owned(),
        ..Exception::new(format!("fetch failed: {error}"))
    };
    let sent = outbound::send(host, request, UrlOrigin::ByOthers).await;
    let mut response = sent.map_err(|unsent| match unsent {
        SendError::Looked(why) => Exception { name: "TypeError".to_owned(), ..Exception::new(why) },
        SendError::Failed(error) => failed(&error),
    })?;
    let mut body = Vec::new();
    let mut reserved = false;
    while let Some(chunk) = response.body.next().await {
        let chunk = chunk.map_err(|error| failed(&error))?;
        let bytes = body.len() + chunk.len();
        if bytes > limits::CODE_FETCH_BYTES {
            return Err(failed(&format!("the answer is over {} bytes, the limit", limits::CODE_FETCH_BYTES)));
        }
        if bytes >= SMALL_BYTES && !reserved {
            // Only a few large bodies are read at the same time.
            reserve(limits::CODE_FETCH_BYTES).await;
            reserved = true;
        }
        body.extend_from_slice(&chunk);
    }
    let header =
        |(name, value): &(String, String)| Value::Array(vec![name.as_str().into(), value.as_str().into()]);
    Ok(Value::Object(vec![
        ("status".to_owned(), Value::Number(f64::from(response.status))),
        ("headers".to_owned(), Value::Array(response.headers.iter().map(header).collect())),
        ("body".to_owned(), Value::Binary(BinaryKind::Uint8Array, Bytes::from(body))),
    ]))
}

fn request(args: Vec<Value>) -> Result<Request, Exception> {
    let mut args = Args::new(args);
    let url = args.text("url")?;
    let init = args.next();
    let method = init.get("method").text().unwrap_or("GET").to_ascii_uppercase();
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].into_iter().find(|known| *known == method);
    let method = known.ok_or_else(|| Exception::new(format!("fetch: there is no method {method} here.")))?;
    let mut headers = Vec::new();
    let pairs = match init.get("headers").to_json() {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(pairs)) => pairs,
        Some(Json::Object(named)) => named.into_iter().map(|(name, value)| json!([name, value])).collect(),
        Some(_) => return Err(Exception::new(HEADERS)),
    };
    for pair in &pairs {
        let text = |at: usize| pair.get(at).and_then(Json::as_str);
        let (Some(name), Some(value)) = (text(0), text(1)) else { return Err(Exception::new(HEADERS)) };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let body = match init.get("body") {
        Value::Undefined | Value::Null => None,
        Value::String(text) => Some(Bytes::from(text.clone())),
        Value::Binary(_, bytes) => Some(bytes.clone()),
        _ => return Err(Exception::new("fetch: the body must be a text or bytes.")),
    };
    Ok(Request { method, url, headers, body, reads: HeaderSelection::All })
}

/// Whether the URL's host is listed. An entry without a port means the scheme's default port.
fn permitted(url: &str, allowed: &[String]) -> Result<(), Exception> {
    let refused = |what: String| Err(Exception { name: "TypeError".to_owned(), ..Exception::new(what) });
    let Some((host, port, usual)) = target(url) else {
        return refused(
            "fetch: only plain http and https URLs can be reached, without user and password.".to_owned(),
        );
    };
    let fits = |entry: &String| {
        let entry = entry.to_ascii_lowercase();
        let (name, wanted) = with_port(&entry, usual);
        let named = match name.strip_prefix("*.") {
            Some(domain) => {
                host.strip_suffix(domain).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
            }
            None => name == host,
        };
        named && wanted == port
    };
    if allowed.iter().any(fits) {
        return Ok(());
    }
    refused(format!(
        "fetch: {host} is not allowed. The hosts that this code may reach are the `allowedHosts` of its definition, or of the prompt that lists execute_code."
    ))
}

/// Host, port and the scheme's default port. Refuses anything that another URL parser could read as a
/// different host (a backslash, a line break, a user, an escape).
fn target(url: &str) -> Option<(String, &str, &'static str)> {
    if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "http" => "80",
        "https" => "443",
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if !authority.bytes().all(plain) {
        return None;
    }
    let (host, port) = with_port(authority, usual);
    Some((host.to_ascii_lowercase(), port, usual))
}

fn with_port<'a>(authority: &'a str, usual: &'a str) -> (&'a str, &'a str) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, port)
        }
        _ => (authority, usual),
    }
}

#[cfg(test)]
mod tests {
    use crate::work::code::fetch::permitted;

    #[test]
    fn only_listed_hosts_are_reached_however_they_are_written() {
        let allowed = ["api.example.com", "*.example.org", "localhost:8080", "[::1]:9000"].map(str::to_owned);
        for url in [
            "https://api.example.com",
            "HTTPS://API.EXAMPLE.COM/x?y#z",
            "http://api.example.com/",
            "https://api.example.com:443/",
            "https://a.b.example.org/",
            "http://localhost:8080/x",
            "http://[::1]:9000/",
        ] {
            assert!(permitted(url, &allowed).is_ok(), "{url}");
        }
        for url in [
            "https://example.com/",
            "https://api.example.com.evil.test/",
            "https://evil.test/api.example.com",
            "https://api.example.com:8443/",
            "https://example.org/",
            "https://evilexample.org/",
            "https://api.example.com@evil.test/",
            "https://evil.test\\.example.org/",
            "https://evil.test\\@api.example.com/",
            "https://evil.test%2f.example.org/",
            "https://evil.test\t.example.org/",
            "https://evil.test/\n",
            "http://localhost/",
            "http://[::1]/",
            "ftp://api.example.com/",
            "//api.example.com/",
            "https:api.example.com",
            "https://",
            "",
        ] {
            assert!(permitted(url, &allowed).is_err(), "{url:?}");
        }
    }
}
