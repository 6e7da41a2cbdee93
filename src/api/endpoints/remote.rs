//! Endpoints behind a URL: one signed POST, whose answer is the endpoint's.

use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::api::endpoints::{EndpointAnswer, EndpointCall};
use crate::engine::post::{Answered, Post, PostError};
use crate::engine::thread::Thread;
use crate::spec::Http;

impl Thread {
    /// Asks it once.
    ///
    /// # Errors
    /// What went wrong, in words for the log: it was not reached, it answered too late or with a 5xx.
    pub(crate) async fn http_endpoint(
        self: &Rc<Self>,
        http: &Http,
        timeout_ms: Option<u64>,
        call: EndpointCall,
    ) -> Result<EndpointAnswer, String> {
        let key = format!("{}/request-{}", call.thread_id, call.request_id);
        let post = Post {
            name: &call.name,
            http,
            timeout_ms,
            idempotency_key: &key,
            random: call.random,
            now_us: call.now_us,
            body: asked(&call, &key),
        };
        match self.post_signed(post, &|name| self.agent_env(&call.agent_id, name)).await {
            Ok(answered) => self.passed(&call.name, answered),
            Err(PostError::Late(limit_ms)) => {
                Err(format!("it did not answer within {} s", limit_ms as f64 / 1000.0))
            }
            Err(PostError::Failed(text)) => Err(text),
        }
    }

    /// Status, content type and body pass, and where a redirect leads, which is for the client to follow.
    fn passed(&self, name: &str, answered: Answered) -> Result<EndpointAnswer, String> {
        if !(200..500).contains(&answered.status) {
            let refusal = answered.refusal(self, name);
            return Err(refusal.unwrap_or_else(|| format!("http {}", answered.status)));
        }
        let redirects = (300..400).contains(&answered.status);
        let passes = |name: &str| name == "content-type" || (redirects && name == "location");
        let Answered { status, headers, body } = answered;
        let headers = headers.into_iter().filter(|(name, _)| passes(name)).collect();
        Ok(EndpointAnswer { status, headers, body: body.into() })
    }
}

/// The request as JSON. A body that is no text comes as `bodyBase64`; the query, in which a name may come twice, as a list
/// of pairs.
fn asked(call: &EndpointCall, key: &str) -> Value {
    let mut headers = Map::new();
    for (name, value) in &call.headers {
        headers.insert(name.clone(), Value::from(value.as_str()));
    }
    let mut asked = json!({
        "threadId": call.thread_id, "agentId": call.agent_id, "name": call.name, "requestId": call.request_id,
        "idempotencyKey": key, "method": call.method, "path": call.path, "params": call.params,
        "query": call.query, "headers": headers,
    });
    let (field, body) = match std::str::from_utf8(&call.body) {
        Ok(text) => ("body", text.to_owned()),
        Err(_) => ("bodyBase64", STANDARD.encode(&call.body)),
    };
    if let Some(asked) = asked.as_object_mut() {
        asked.insert(field.to_owned(), body.into());
    }
    asked
}
