//! Clients of MCP (docs/mcp-server.md): agents are tools, and their calls run in threads. The thread's object does
//! not know the protocol, and no state is kept between two requests.

pub(crate) mod calls;
pub(crate) mod offered;

use bobbin::access::{Caller, Scope};
use bobbin::definitions::Catalog;
use bobbin::json;
use bobbin::protocols::mcp_server::content::CallTarget;
use bobbin::protocols::mcp_server::messages::{
    self, Accepts, Era, INTERNAL, INVALID_PARAMS, INVALID_REQUEST, Message, Refusal,
};
use bobbin::protocols::mcp_server::offers;
use bobbin::protocols::mcp_server::results::{ResultStatus, complete};
use bobbin::protocols::mcp_server::tools::{self, Tool};
use bobbin::protocols::sse;
use bobbin::{Code, Error, Result};
use serde_json::{Map, Value};

use crate::answer::{self, Response};
use crate::bindings::{Env, random, thrown};
use crate::events;
use crate::protocols::openai::{hex, tell};
use crate::protocols::thread_client::{Step, Stopped, ThreadClient};

/// A request of a client of MCP.
pub(crate) struct Mcp<'a> {
    pub(crate) env: &'a Env,
    pub(crate) ctx: &'a wasm_bindgen::JsValue,
    pub(crate) caller: Caller,
    pub(crate) origin: Option<&'a str>,
    pub(crate) catalog: &'a Catalog,
    /// Scheme, host and port of the server.
    pub(crate) server: &'a str,
    /// The headers of the request that are in [`messages::HEADERS`].
    pub(crate) headers: Vec<(String, String)>,
    /// Which of several keys was used, for the log of decisions.
    pub(crate) fingerprint: Vec<(String, String)>,
    /// The key for state that clients return.
    pub(crate) secret: Option<Vec<u8>>,
    pub(crate) dev: bool,
}

/// The outcome of a request.
pub(crate) enum RequestOutcome {
    /// Its result.
    Result(Value),
    /// A response that is derived from a feed.
    Response(Response),
    /// A protocol error.
    Refusal(Refusal),
}

impl Mcp<'_> {
    /// `POST /mcp`.
    pub(crate) async fn post(&self, body: String) -> Result<Response> {
        let header =
            |name: &str| self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let Some(accepts) = Accepts::of(header("accept").as_deref()) else {
            let text = "The answer is JSON or server-sent events: the header Accept must name both.";
            return self.tell(&Refusal::new(406, None, INVALID_REQUEST, text, None));
        };
        let message = match messages::parse(&body, &header) {
            Ok(message) => message,
            Err(refusal) => return self.tell(&refusal),
        };
        drop(body);
        if message.id.is_none() {
            // A cancellation cannot be matched here, because it names the id of a request on another
            // connection.
            return answer::accepted(self.origin).map_err(|error| Error::internal(thrown(&error)));
        }
        let done = if message.method == messages::RESPONSE {
            match self.responded(&message).await {
                Ok(Some(done)) => done,
                Ok(None) => {
                    return answer::accepted(self.origin).map_err(|error| Error::internal(thrown(&error)));
                }
                Err(stops) => self.failed(&message, stops),
            }
        } else {
            self.done(&message, accepts).await.unwrap_or_else(|stops| self.failed(&message, stops))
        };
        let session = messages::session(&message, &hex(&random())).filter(|_| message.era == Era::Legacy);
        let session: Vec<_> = session.into_iter().map(|id| ("mcp-session-id".to_owned(), id)).collect();
        match done {
            RequestOutcome::Response(response) => Ok(response),
            RequestOutcome::Refusal(refusal) => self.tell(&refusal),
            RequestOutcome::Result(result) => {
                let value = message.answer(result);
                match accepts {
                    Accepts::StreamAlone => events::whole(&sse::data(&value), self.origin, &session),
                    _ => tell(200, &value, self.origin, &session),
                }
            }
        }
    }

    fn tell(&self, refusal: &Refusal) -> Result<Response> {
        tell(refusal.status, &refusal.body, self.origin, &[])
    }

    async fn done(&self, message: &Message, accepts: Accepts) -> Step<RequestOutcome> {
        Ok(match (message.era, message.method.as_str()) {
            (Era::Modern, "server/discover") => RequestOutcome::Result(messages::discovered(self.catalog)),
            (Era::Legacy, "initialize") => {
                RequestOutcome::Result(messages::initialized(message, self.catalog))
            }
            (Era::Legacy, "ping") => RequestOutcome::Result(json!({})),
            (_, "prompts/list" | "prompts/get") if self.catalog.settings.mcp.prompts.is_empty() => {
                RequestOutcome::Refusal(message.unknown())
            }
            (era, "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list") => {
                match message.params.get("cursor") {
                    Some(_) => invalid(message, "There is one page: `cursor` names none."),
                    None => {
                        let list = self.list(&message.method)?;
                        RequestOutcome::Result(if era == Era::Modern { messages::cached(list) } else { list })
                    }
                }
            }
            (_, "prompts/get") => return self.prompt(message, accepts).await,
            (_, "resources/read") => return self.resource(message, accepts).await,
            (_, "completion/complete") => match offers::complete(self.catalog, &message.params) {
                Some(found) => RequestOutcome::Result(found),
                None => invalid(message, "`ref` and `argument` name no argument that there is."),
            },
            (_, "tools/call") => return self.call(message, accepts).await,
            (Era::Modern, "tasks/get" | "tasks/update" | "tasks/cancel") => return self.task(message).await,
            _ => RequestOutcome::Refusal(message.unknown()),
        })
    }

    fn list(&self, method: &str) -> Result<Value> {
        Ok(match method {
            "prompts/list" => offers::prompts(self.catalog),
            "resources/list" => offers::resources(self.catalog),
            "resources/templates/list" => offers::templates(self.catalog),
            _ => tools::list(self.catalog, self.server)?,
        })
    }

    async fn call(&self, message: &Message, accepts: Accepts) -> Step<RequestOutcome> {
        let Some(name) = message.params.get("name").and_then(Value::as_str) else {
            return Ok(invalid(message, "`name` is the name of a tool."));
        };
        let Some(tool) = tools::find(self.catalog, name) else {
            let shown: String = name.chars().take(64).collect();
            return Ok(invalid(message, &format!("Unknown tool: {shown}")));
        };
        let args = match arguments(message) {
            Ok(args) => args,
            Err(done) => return Ok(*done),
        };
        match tool {
            Tool::Ask(agent) => self.ask(message, accepts, name, agent, args).await,
            Tool::Start => self.start(message, args).await,
            Tool::Get => self.get(message, args).await,
            Tool::Respond => self.respond(args).await,
            Tool::Cancel => self.cancel(args).await,
            Tool::Offered(tool) => self.offered(message, accepts, CallTarget::Tool, tool, args).await,
        }
    }

    pub(crate) fn talk(&self) -> ThreadClient<'_> {
        ThreadClient { env: self.env, caller: &self.caller, fingerprint: &self.fingerprint }
    }

    /// The outcome of a failed request. For a tool it is a result with the error's text, so that a model can
    /// correct its call.
    fn failed(&self, message: &Message, stops: Stopped) -> RequestOutcome {
        let error = match stops {
            Stopped::Error(error) => answer::without_details_of(error, self.dev).to_json(),
            Stopped::Told(told) => {
                let text = told.body.as_string().unwrap_or_default();
                bobbin::json::from_str(&text).unwrap_or_default()
            }
        };
        let field = |name: &str| {
            error
                .pointer("/error")
                .and_then(|error| error.get(name))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (text, code) = (format!("{} {}", field("message"), field("hint")), field("code"));
        if code == "internal" {
            return RequestOutcome::Refusal(message.refuse(INTERNAL, text.trim(), None));
        }
        if message.method != "tools/call" {
            return RequestOutcome::Refusal(message.refuse(
                INVALID_PARAMS,
                text.trim(),
                error.get("error").cloned(),
            ));
        }
        RequestOutcome::Result(json!({
            "content": complete(text.trim(), Value::Null, ResultStatus::Yes).get("content"), "isError": true,
        }))
    }
}

/// The arguments of a message.
pub(crate) fn arguments(message: &Message) -> std::result::Result<Map<String, Value>, Box<RequestOutcome>> {
    match message.params.get("arguments") {
        None => Ok(Map::new()),
        Some(Value::Object(args)) => Ok(args.clone()),
        Some(_) => Err(Box::new(invalid(message, "`arguments` is an object."))),
    }
}

/// An error for invalid parameters.
pub(crate) fn invalid(message: &Message, text: &str) -> RequestOutcome {
    RequestOutcome::Refusal(message.refuse(INVALID_PARAMS, text, None))
}

/// Refuses callers that may use one thread only, because they have no agents.
pub(crate) fn check_agents(caller: &Caller) -> Result<()> {
    match caller.scope {
        Scope::Admin | Scope::Owner(_) => Ok(()),
        Scope::Thread(_) | Scope::Wait(..) => {
            Err(Error::new(Code::Forbidden, "These credentials are for one thread, and no agents."))
        }
    }
}

/// An error that occurred before a message was read, in the protocol's form. `challenge`: how to
/// authenticate.
pub(crate) fn of_error(
    error: &Error,
    origin: Option<&str>,
    allow: Option<&str>,
    challenge: &str,
) -> Result<Response> {
    let status = error.code.status();
    let code = if status < 500 { INVALID_REQUEST } else { INTERNAL };
    let data = json!({ "code": error.code, "hint": error.hint, "field": error.field });
    let refusal = Refusal::new(status, None, code, &error.message, Some(data));
    let named = |name: &str, value: String| (name.to_owned(), value);
    let mut extra: Vec<(String, String)> =
        allow.map(|allow| named("allow", allow.to_owned())).into_iter().collect();
    extra.extend(error.retry_after_s.map(|seconds| named("retry-after", seconds.to_string())));
    if error.code == Code::Unauthenticated {
        extra.push(named("www-authenticate", challenge.to_owned()));
    }
    tell(status, &refusal.body, origin, &extra)
}
