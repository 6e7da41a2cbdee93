//! Clients of OpenAI (docs/clients.md): their requests run in a thread, and the run is streamed in their
//! protocol. The thread's object does not know the protocol.

pub(crate) mod conversation_routes;
pub(crate) mod conversations;
pub(crate) mod previous_response;
pub(crate) mod responses;
pub(crate) mod revision;

use bobbin::access::Caller;
use bobbin::definitions::{Agent, Catalog};
use bobbin::engine::feed::FeedTarget;
use bobbin::json;
use bobbin::limits::{EPHEMERAL_S, SECOND_US};
use bobbin::protocols::openai::call_id;
use bobbin::protocols::openai::chat_completions::{Completion, Settings};
use bobbin::protocols::openai::completion_request::{CompletionRequest, NewContent};
use bobbin::protocols::openai::completion_revision::Lists;
use bobbin::protocols::openai::{errors, models};
use bobbin::request::{OpenAiRoute, Query, REPLACES, ThreadRoute, thread_id};
use bobbin::signing::digest;
use bobbin::{Code, Error, Result};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::answer::Response;
use crate::bindings::{Env, date_now, random, thrown};
use crate::events::{self, EventsRequest, FeedEncoding, ResponseForm};
use crate::protocols::encoder::Encoder;
use crate::protocols::openai::revision::Placement;
use crate::protocols::thread_client::{Step, Stopped, ThreadClient};

#[wasm_bindgen(module = "/feed.js")]
extern "C" {
    #[wasm_bindgen(catch, js_name = told)]
    fn told(status: u16, text: &str, origin: Option<&str>, extra: &str) -> Result<Response, JsValue>;
}

/// Request headers that have a meaning here.
pub(crate) const HEADERS: &[&str] = &[
    "x-bobbin-thread",
    CHAT,
    "x-openwebui-task",
    "x-chat-id",
    "x-bobbin-tool-status",
    "x-bobbin-reasoning",
    CANCELS,
    "x-stainless-retry-count",
];

/// The header with the id of an Open WebUI chat.
const CHAT: &str = "x-openwebui-chat-id";

/// The header that cancels the run when its client disconnects.
const CANCELS: &str = "x-bobbin-cancel-on-disconnect";

/// The variable that makes the field `user` name a conversation.
const USER: &str = "BOBBIN_OPENAI_USER_IS_THREAD";
const CACHE_KEY: &str = "BOBBIN_OPENAI_CACHE_KEY_IS_THREAD";

/// A request of a client of OpenAI.
pub(crate) struct OpenAi<'a> {
    pub(crate) env: &'a Env,
    pub(crate) ctx: &'a JsValue,
    pub(crate) query: &'a Query,
    pub(crate) caller: Caller,
    pub(crate) origin: Option<&'a str>,
    pub(crate) catalog: &'a Catalog,
    /// The headers of the request that are in [`HEADERS`].
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) idempotency_key: Option<String>,
    /// Which of several keys was used, for the log of decisions.
    pub(crate) fingerprint: Vec<(String, String)>,
}

/// The conversation that a request names.
struct NamedConversation {
    /// The thread's id or key.
    thread: String,
    /// The changes of the list of messages, or `None` if several conversations have the same name.
    lists: Option<Lists>,
}

/// A person's message.
pub(crate) struct UserMessage<'a> {
    pub(crate) text: &'a str,
    /// In the form of `POST …/messages`.
    pub(crate) files: &'a [Value],
    /// Stored with it.
    pub(crate) metadata: Value,
}

impl OpenAi<'_> {
    pub(crate) async fn answer(&self, of: OpenAiRoute, body: String) -> Result<Response> {
        let answered = match of {
            OpenAiRoute::Models => self.value(&models::list(self.catalog)),
            OpenAiRoute::Model(id) => self.model(&id),
            OpenAiRoute::Complete => self.complete(&body).await,
            OpenAiRoute::Respond => self.respond(&body).await,
            OpenAiRoute::Response(id) => self.response(&id).await,
            OpenAiRoute::CancelResponse(id) => self.cancel_response(&id).await,
            OpenAiRoute::DeleteResponse(id) => self.delete_response(&id).await,
            OpenAiRoute::Converse => self.converse(&body).await,
            OpenAiRoute::Conversation(id) => self.conversation_shown(&id).await,
            OpenAiRoute::ChangeConversation(id) => self.change_conversation(&id, &body).await,
            OpenAiRoute::DeleteConversation(id) => self.delete_conversation(&id).await,
            OpenAiRoute::Items(id) => self.items(&id).await,
            OpenAiRoute::AddItems(id) => self.add_items(&id, &body).await,
            OpenAiRoute::Item(id, item) => self.item(&id, &item).await,
            OpenAiRoute::DeleteItem(id, item) => self.delete_item(&id, &item).await,
        };
        match answered {
            Ok(response) => Ok(response),
            Err(Stopped::Error(error)) => Err(error),
            Err(Stopped::Told(answer)) => {
                let text = answer.body.as_string().unwrap_or_default();
                let body = bobbin::json::from_str(&text).unwrap_or(Value::Null);
                let mut extra = extra_of(answer.status);
                extra.extend(
                    answer.retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string())),
                );
                tell(answer.status, &errors::of_body(answer.status, &body), self.origin, &extra)
            }
        }
    }

    fn model(&self, id: &str) -> Step<Response> {
        self.value(&models::one(self.catalog, id)?)
    }

    pub(crate) fn value(&self, value: &Value) -> Step<Response> {
        Ok(tell(200, value, self.origin, &extra_of(200))?)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn talk(&self) -> ThreadClient<'_> {
        ThreadClient { env: self.env, caller: &self.caller, fingerprint: &self.fingerprint }
    }

    /// How often the client has sent this request before, if it says so.
    pub(crate) fn sent_before(&self) -> Option<u32> {
        self.header("x-stainless-retry-count")?.parse().ok()
    }

    async fn complete(&self, body: &str) -> Step<Response> {
        let request = CompletionRequest::parse(body)?;
        let agent = models::agent(self.catalog, &request.model)?;
        self.check_tools(&request.tools)?;
        let new = request.new_messages()?;
        let named = self.named(&request, &new)?;
        let hash = digest(&["openai", &agent.name, body]);
        let (settings, thread, of) = match new {
            NewContent::Said { text, files } => {
                let history = || request.history();
                let conversation = match &named {
                    Some(named) => self.conversation(&named.thread, agent, &hash, history).await?,
                    None => self.unnamed(agent, &hash, Some(EPHEMERAL_S), history).await?,
                };
                let mut kept = json!({ "request": hash });
                if let (Some(key), Some(fields)) = (&conversation.key, kept.as_object_mut()) {
                    fields.insert("key".into(), key.as_str().into());
                }
                let said = UserMessage { text: &text, files: &files, metadata: json!({ "openai": kept }) };
                let lists = named.as_ref().and_then(|named| named.lists);
                let placement = match lists.filter(|_| conversation.stored.is_none() && !conversation.is_new)
                {
                    Some(lists) => self.revise(&conversation, lists, &request, &said).await?,
                    None => Placement::New { replaces: None },
                };
                let (message, created) = match placement {
                    Placement::Stored(message, created) => (message, created),
                    Placement::New { replaces } => {
                        let header = replaces.map(|message| (REPLACES.to_owned(), message));
                        self.say(&conversation, header.into_iter().collect(), &said).await?
                    }
                };
                let settings = self.settings(&request, &conversation.thread, &message, created);
                (settings, conversation.thread, FeedTarget::Message(message))
            }
            NewContent::Results(results) => {
                let named = named.map(|named| named.thread);
                let thread =
                    self.thread_of_results(named, agent, results.iter().map(|(call, _)| call)).await?;
                let reply = self.decide(&thread, &results, &[]).await?;
                let mut settings = self.settings(&request, &thread, &reply, now_us());
                settings.continues = Some(reply.clone());
                (settings, thread, FeedTarget::From(reply))
            }
        };
        let how = if request.stream { ResponseForm::Streamed } else { ResponseForm::Whole };
        let reasoning = settings.reasoning;
        let mut ignored = request.ignored;
        // Only a stream shows that its client has disconnected.
        ignored.extend((self.cancels() && !request.stream).then(|| CANCELS.to_owned()));
        let extra = extra_for(&thread, &ignored);
        self.follow(&thread, of, how, reasoning, extra, Encoder::new(Completion::new(settings))).await
    }

    pub(crate) async fn follow(
        &self,
        thread: &str,
        of: FeedTarget,
        how: ResponseForm,
        reasoning: bool,
        extra: Vec<(String, String)>,
        encoder: Encoder,
    ) -> Step<Response> {
        let threads = self.env.threads().map_err(|error| Error::internal(thrown(&error)))?;
        let mut query = vec![("progress".to_owned(), "0".to_owned())];
        query.extend(reasoning.then(|| ("reasoning".to_owned(), "1".to_owned())));
        let query = Query(query);
        let wanted =
            EventsRequest { thread, caller: self.caller.clone(), query: &query, origin: self.origin };
        let encoded = FeedEncoding { extra, encoder: encoder.into() };
        events::answered(&threads, self.ctx, wanted, of, how, encoded).await?.map_err(Stopped::Told)
    }

    fn settings(
        &self,
        request: &CompletionRequest<'_>,
        thread: &str,
        message: &str,
        created_us: i64,
    ) -> Settings {
        Settings {
            id: format!("chatcmpl-{}", message.trim_start_matches("m_")),
            model: request.model.clone(),
            created: created_us / SECOND_US,
            thread: thread.to_owned(),
            usage: request.usage || !request.stream,
            reasoning: self.asks("x-bobbin-reasoning") || self.query.get("reasoning") == Some("1"),
            tools: self.header("x-bobbin-tool-status") == Some("reasoning"),
            client_tools: self.client_tools().map(str::to_owned).collect(),
            continues: None,
            leaving: (request.stream && self.cancels()).then(|| self.stop(thread, message)).flatten(),
        }
    }

    fn asks(&self, header: &str) -> bool {
        matches!(self.header(header), Some("1" | "true"))
    }

    /// Whether a run is cancelled when its client disconnects.
    fn cancels(&self) -> bool {
        self.asks(CANCELS)
    }

    /// The call to a thread's object that stops the run that answers a message.
    fn stop(&self, thread: &str, message: &str) -> Option<String> {
        let call = self.talk().request(thread, ThreadRoute::Stop);
        let body = json!({ "answer_to": message });
        call.to_json().ok().map(|head| format!("{head}\n{body}"))
    }

    pub(crate) fn client_tools(&self) -> impl Iterator<Item = &str> {
        self.catalog.tools.values().filter(|tool| tool.is_of_client()).map(|tool| tool.name.as_str())
    }

    /// Checks the client's tools: only tools that the definition leaves to clients are allowed.
    pub(crate) fn check_tools(&self, tools: &[String]) -> Result<()> {
        let Some(unknown) = tools.iter().find(|name| !self.client_tools().any(|tool| tool == *name)) else {
            return Ok(());
        };
        let shown: String = unknown.chars().take(64).collect();
        let text = format!("There is no tool “{shown}” that is left to clients.");
        Err(Error::new(Code::UnsupportedParameter, text).at("tools").hint(
            "Define it in tools/, with \"run\": { \"client\": {} }; leave `tools` out for the agent's own.",
        ))
    }

    /// The conversation that a request names. Open WebUI's own requests have the chat's name but are not part
    /// of the chat.
    fn named(&self, request: &CompletionRequest<'_>, new: &NewContent) -> Result<Option<NamedConversation>> {
        let of_chat = self.header(CHAT).is_some();
        if self.header("x-openwebui-task").is_some() || (of_chat && request.is_utility_request(new)) {
            return Ok(None);
        }
        let said = |name: &str| self.env.var(name).as_deref() == Some("1");
        let in_header = ["x-bobbin-thread", CHAT, "x-chat-id"]
            .into_iter()
            .find_map(|name| Some((name, self.header(name)?.to_owned())));
        let found = in_header
            .or_else(|| Some(("metadata.thread_id", request.thread.clone()?)))
            .or_else(|| Some(("prompt_cache_key", request.cache_key.clone().filter(|_| said(CACHE_KEY))?)))
            .or_else(|| Some(("user", request.user.clone().filter(|_| said(USER))?)));
        let Some((field, name)) = found else { return Ok(None) };
        if !thread_id::is_valid(&name) {
            thread_id::check_key(&name).map_err(|error| error.at(field))?;
        }
        let lists = match field {
            CHAT => Some(Lists::Whole),
            "prompt_cache_key" | "user" => None,
            _ => Some(Lists::Whatever),
        };
        Ok(Some(NamedConversation { thread: name, lists }))
    }

    /// The thread of results and decisions: the one that is named, or the one in the ids of the calls and
    /// waits.
    pub(crate) async fn thread_of_results<'i>(
        &self,
        named: Option<String>,
        agent: &Agent,
        mut told: impl Iterator<Item = &'i String>,
    ) -> Step<String> {
        let named = named.or_else(|| told.find_map(|id| call_id::of(id).1)).ok_or_else(|| {
            let text =
                "Results of calls and approvals belong to a conversation, and this request names none.";
            Error::field("messages", text).hint("Name it with the header X-Bobbin-Thread.")
        })?;
        let missing = || Stopped::Error(bobbin::access::no_thread());
        self.thread(&named, agent).await?.ok_or_else(missing)
    }
}

/// An error in OpenAI's format. `allow`: the methods of the path, for 405.
pub(crate) fn of_error(error: &Error, origin: Option<&str>, allow: Option<&str>) -> Result<Response> {
    let status = error.code.status();
    let mut extra = extra_of(status);
    extra.extend(error.retry_after_s.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
    extra.extend(allow.map(|methods| ("allow".to_owned(), methods.to_owned())));
    tell(status, &errors::of_error(error), origin, &extra)
}

/// Headers of a response: its id, and whether a retry helps. Without them clients retry after every 409.
pub(crate) fn extra_of(status: u16) -> Vec<(String, String)> {
    let id = ("x-request-id".to_owned(), format!("req_{}", hex(&random())));
    let again = (status == 409).then(|| ("x-should-retry".to_owned(), "false".to_owned()));
    std::iter::once(id).chain(again).collect()
}

/// The same headers for a response from a thread, and the options that were ignored.
pub(crate) fn extra_for(thread: &str, ignored: &[String]) -> Vec<(String, String)> {
    let mut extra = extra_of(200);
    extra.push(("x-bobbin-thread".to_owned(), thread.to_owned()));
    if !ignored.is_empty() {
        extra.push(("x-bobbin-ignored".to_owned(), ignored.join(", ")));
    }
    extra
}

pub(crate) fn tell(
    status: u16,
    value: &Value,
    origin: Option<&str>,
    extra: &[(String, String)],
) -> Result<Response> {
    let extra = serde_json::to_string(extra).map_err(Error::internal)?;
    told(status, &value.to_string(), origin, &extra).map_err(|error| Error::internal(thrown(&error)))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn now_us() -> i64 {
    date_now() as i64 * (SECOND_US / 1_000)
}
