//! `GET /api/oauth/callback`: the browser returns after a sign-in to an MCP server. The `state` parameter
//! names the waiting thread, which checks the rest. The page that is shown contains none of the parameters.

use bobbin::access::{Caller, Scope, Via};
use bobbin::request::{Query, ThreadRequest, ThreadRoute, thread_id};
use bobbin::{Error, Result, json};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::answer::Response;
use crate::bindings::thrown;
use crate::router::{Incoming, call_thread};

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    /// A page without scripts and external resources.
    #[wasm_bindgen(catch)]
    fn page(status: u16, html: &str) -> Result<Response, JsValue>;
}

/// Maximum bytes of a state. Those of this deployment are shorter.
const STATE_BYTES: usize = 512;

/// The status, title and text of a page; `{}` stands for the server's name.
fn text_of(outcome: &str) -> (u16, &'static str, &'static str) {
    match outcome {
        "signed_in" => (
            200,
            "You are signed in",
            "You are signed in to {}, and the agent continues. You can close this page.",
        ),
        "already" => (
            200,
            "You were signed in already",
            "This link was used before, and the agent has gone on. You can close this page.",
        ),
        "over" => (
            410,
            "Nobody waits for this any more",
            "It was declined, or nobody signed in to {} in time. The agent asks again when it needs to.",
        ),
        "denied" => (
            403,
            "You are not signed in",
            "The sign-in to {} was declined. The agent still waits: follow its link again, or decline where it asks you.",
        ),
        "failed" => (
            502,
            "You are not signed in",
            "The sign-in could not be completed. The agent still waits: follow its link again.",
        ),
        "busy" => (409, "One moment", "This sign-in is being completed. You can close this page."),
        _ => (
            400,
            "This was not asked for here",
            "No agent waits for this sign-in. Follow the link that it shows you.",
        ),
    }
}

impl Incoming<'_> {
    /// Forwards the parameters to the thread, and renders its response as a page.
    pub(crate) async fn signed_in(&self) -> Result<Response> {
        let told = self.oauth_callback().await;
        let field = |name: &str| told.get(name).and_then(Value::as_str);
        let (status, title, text) = text_of(field("outcome").unwrap_or("unknown"));
        let server =
            field("server").map_or_else(|| "the server".to_owned(), |name| format!("“{}”", escaped(name)));
        let html = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title><h1>{title}</h1><p>{}</p></html>",
            text.replace("{}", &server)
        );
        page(status, &html).map_err(|error| Error::internal(thrown(&error)))
    }

    /// `{outcome, server}`.
    async fn oauth_callback(&self) -> Value {
        let Query(brought) = &self.target.query;
        let once = |name: &str| brought.iter().filter(|(known, _)| known == name).count() < 2;
        let state =
            self.target.query.get("state").filter(|state| state.len() <= STATE_BYTES).unwrap_or_default();
        let thread = state.splitn(3, '.').nth(2).filter(|id| thread_id::is_valid(id));
        let Some(thread) = thread.filter(|_| ["state", "code", "iss", "error"].into_iter().all(once)) else {
            return Value::Null;
        };
        let get = |name: &str| self.target.query.get(name);
        let body = json!({ "state": state, "code": get("code"), "iss": get("iss"), "error": get("error") });
        let request = ThreadRequest {
            thread_id: thread.to_owned(),
            life: None,
            // A caller without other permissions: this scope opens nothing else.
            caller: Caller { scope: Scope::Wait(thread.to_owned(), "sign_in".to_owned()), via: Via::Key },
            route: ThreadRoute::CameBack,
            query: Query::default(),
            idempotency_key: None,
            headers: Vec::new(),
            body: String::new(),
        };
        match call_thread(&self.env, thread, &request, &body.to_string()).await {
            Ok(answer) if answer.status == 200 => {
                bobbin::json::from_str(&answer.body.as_string().unwrap_or_default()).unwrap_or_default()
            }
            Ok(answer) if answer.status < 500 => Value::Null,
            _ => json!({ "outcome": "failed" }),
        }
    }
}

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}
