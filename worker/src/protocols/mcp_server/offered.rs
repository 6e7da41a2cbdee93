//! The folder's offers to MCP clients besides its agents: tools, and the prompts and resources that tools
//! make. Each call has its own thread.

use bobbin::definitions::offered::agent_of;
use bobbin::definitions::{Callable, Tool, schema};
use bobbin::engine::feed::FeedTarget;
use bobbin::protocols::mcp_server::content::{self, CallTarget};
use bobbin::protocols::mcp_server::messages::{self, Accepts, Era, Message};
use bobbin::protocols::mcp_server::offers::{self, ThreadResource};
use bobbin::protocols::mcp_server::results::{Settings, Shape};
use bobbin::request::{ThreadRoute, thread_id};
use bobbin::{Code, Error, json};
use serde_json::{Map, Value};

use crate::protocols::mcp_server::{Mcp, RequestOutcome, arguments, invalid};
use crate::protocols::thread_client::{Step, Stopped, found, text_of};

/// Lifetime of a call's thread, seconds. It is longer than the default lifetime of questions to people.
const THREAD_S: i64 = 30 * 24 * 3_600;
/// The only run of such a thread.
const RUN: &str = "r_1";

impl Mcp<'_> {
    /// Calls a tool, directly or for the prompt or resource that it makes.
    pub(crate) async fn offered(
        &self,
        message: &Message,
        accepts: Accepts,
        of: CallTarget,
        tool: &Tool,
        args: Map<String, Value>,
    ) -> Step<RequestOutcome> {
        let (args, name) = (Value::Object(args), tool.name.as_str());
        let (seal, state) = match self.resumed(message, &[&message.method, name, &args.to_string()]) {
            Ok(resumed) => resumed,
            Err(done) => return Ok(*done),
        };
        let mut settings = Settings { seal, ..self.settings(message, Shape::Call(of)) };
        match state {
            Some(state) => self.goes_on(message, &mut settings, state).await?,
            None => {
                // Invalid arguments are refused before a thread is created.
                Callable::Tool(tool).check(args.clone()).map_err(|problems| {
                    let text = format!("Invalid arguments for “{name}”: {}", schema::lines(&problems));
                    Stopped::Error(Error::field("arguments", text))
                })?;
                let agent = agent_of(name);
                let body = json!({ "agent_id": agent, "expires_in": THREAD_S });
                settings.thread = self.new_thread(message, &agent, &body).await?;
                let call = json!({ "name": name, "args": args }).to_string();
                let made = self.post_once(message, &settings.thread, ThreadRoute::Call, &call).await?;
                settings.message = text_of(&made, "messageId").to_owned();
                settings.began = Some(RUN.to_owned());
                let given = message.params.get("inputResponses").and_then(Value::as_object);
                settings.given = given.cloned().unwrap_or_default();
            }
        }
        self.answer(message, accepts, FeedTarget::Run(RUN.to_owned()), settings).await
    }

    /// `prompts/get`.
    pub(crate) async fn prompt(&self, message: &Message, accepts: Accepts) -> Step<RequestOutcome> {
        let name = message.params.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(tool) = offers::prompt(self.catalog, name) else {
            return Ok(invalid(message, "There is no such prompt."));
        };
        let args = match arguments(message) {
            Ok(args) => offers::typed(tool, args),
            Err(done) => return Ok(*done),
        };
        self.offered(message, accepts, CallTarget::Prompt(tool.description.clone()), tool, args).await
    }

    /// `resources/read`.
    pub(crate) async fn resource(&self, message: &Message, accepts: Accepts) -> Step<RequestOutcome> {
        let uri = message.params.get("uri").and_then(Value::as_str).unwrap_or_default();
        if let Some((thread, of)) = offers::of_thread(uri) {
            let read = self.of_thread(thread, of, uri).await?;
            return Ok(match read {
                Some(contents) if message.era == Era::Modern => {
                    RequestOutcome::Result(messages::fresh(contents))
                }
                Some(contents) => RequestOutcome::Result(contents),
                None => RequestOutcome::Refusal(message.no_resource(uri)),
            });
        }
        let found = self.catalog.settings.mcp.resource(uri);
        let found = found
            .and_then(|(resource, args)| Some((resource, self.catalog.tools.get(&resource.tool)?, args)));
        let Some((resource, tool, args)) = found else {
            return Ok(RequestOutcome::Refusal(message.no_resource(uri)));
        };
        let mime_type = offers::mime_type(resource).to_owned();
        let of = CallTarget::Resource { uri: uri.to_owned(), mime_type };
        self.offered(message, accepts, of, tool, offers::typed(tool, args)).await
    }

    /// A resource of a thread, if the caller may read it.
    async fn of_thread(&self, thread: &str, of: ThreadResource, uri: &str) -> Step<Option<Value>> {
        if !thread_id::is_valid(thread) {
            return Ok(None);
        }
        match of {
            ThreadResource::File(path) => {
                let told = self.talk().ask(thread, ThreadRoute::FileContent(path), &[], None, "").await?;
                let of = CallTarget::Resource { uri: uri.to_owned(), mime_type: String::new() };
                found(told)?
                    .map(|file| {
                        content::result(&of, thread, &file)
                            .map_err(|text| Error::new(Code::TooLarge, text).into())
                    })
                    .transpose()
            }
            ThreadResource::Transcript => {
                if found(self.talk().ask(thread, ThreadRoute::Get, &[], None, "").await?)?.is_none() {
                    return Ok(None);
                }
                let (rows, older) = self.talk().page(thread, &[("limit", "100")]).await?;
                let text = content::transcript(&rows, older);
                Ok(Some(json!({ "contents": [{ "uri": uri, "mimeType": "text/markdown", "text": text }] })))
            }
        }
    }
}
