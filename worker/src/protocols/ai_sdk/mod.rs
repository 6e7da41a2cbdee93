//! Chats of the AI SDK (docs/clients.md). A chat is a thread: requests of pages run in it, and the run is
//! streamed in the SDK's protocol. The thread's object does not know the protocol.

use std::cell::RefCell;

use bobbin::access::Caller;
use bobbin::access::links::Links;
use bobbin::definitions::{Agent, Catalog};
use bobbin::engine::feed::FeedTarget;
use bobbin::json;
use bobbin::protocols::ai_sdk::answers::Plan;
use bobbin::protocols::ai_sdk::message::{RunFrames, history};
use bobbin::protocols::ai_sdk::request::{ChatRequest, Edits, Operation, PageAnswers, UserMessage};
use bobbin::protocols::ai_sdk::stream::{ContinuedMessage, Settings, UiStream};
use bobbin::protocols::responses::chats;
use bobbin::request::{Query, ThreadRoute, agents};
use bobbin::{Code, Error, Result};
use serde_json::{Map, Value};
use wasm_bindgen::prelude::*;

use crate::answer::{self, Response};
use crate::bindings::{Env, thrown};
use crate::create;
use crate::events::{self, EventsRequest, FeedEncoding};
use crate::protocols::thread_client::{Step, Stopped, ThreadClient, ThreadTarget, good, text_of, told};
use crate::remote::ObjectResponse as Told;

/// A feature of pages: the text of a lost attempt can be retracted.
const RESET_STEP: &str = "reset-step";
/// A feature of pages: resuming sends the last reply, even if it is over. For versions that replace their
/// message with it: major 6 from 6.0.304 on and 7 from 7.0.138 on. Major 5 appends it.
const REPLAY: &str = "replay";

/// Approximate number of pages of messages in a history.
const PAGES: usize = 8;
const PAGE_ROWS: &str = "500";

/// The stream of the AI SDK, fed by the bridge.
#[wasm_bindgen]
pub struct UiEncoder(RefCell<UiStream>);

impl std::panic::RefUnwindSafe for UiEncoder {}
impl std::panic::UnwindSafe for UiEncoder {}

#[wasm_bindgen]
impl UiEncoder {
    /// Encodes frames of the feed for the client.
    pub fn push(&self, events: &str) -> std::result::Result<String, JsValue> {
        self.0.borrow_mut().push(events).map_err(|error| JsValue::from_str(&error.message))
    }

    /// Whether the last event was encoded.
    #[wasm_bindgen(getter)]
    pub fn over(&self) -> bool {
        self.0.borrow().is_over()
    }
}

/// A request to a chat.
pub(crate) struct Chat<'a> {
    pub(crate) env: &'a Env,
    pub(crate) ctx: &'a JsValue,
    pub(crate) query: &'a Query,
    pub(crate) caller: Caller,
    pub(crate) origin: Option<&'a str>,
    pub(crate) catalog: &'a Catalog,
    pub(crate) links: Option<Links>,
    /// The agent of the path.
    pub(crate) agent: Option<&'a str>,
    /// Which of several keys was used, for the log of decisions.
    pub(crate) fingerprint: Vec<(String, String)>,
}

impl Chat<'_> {
    /// `POST …/chat`.
    pub(crate) async fn post(&self, body: String) -> Result<Response> {
        let request = ChatRequest::parse(&body)?;
        drop(body);
        told(self.posted(request).await, self.origin)
    }

    /// `GET …/chat/:id`.
    pub(crate) async fn history(&self, id: &str) -> Result<Response> {
        let shown = self.read_history(id).await.and_then(|history| {
            answer::of_value(&history, self.origin)
                .map_err(|error| Stopped::Error(Error::internal(thrown(&error))))
        });
        told(shown, self.origin)
    }

    /// `GET …/chat/:id/stream`: the reply in progress from its beginning, or 204.
    pub(crate) async fn stream(&self, id: &str) -> Result<Response> {
        told(self.resumed(id).await, self.origin)
    }

    /// `POST …/chat/:id/stop`.
    pub(crate) async fn stop(&self, id: &str) -> Result<Response> {
        told(self.stopped(id).await, self.origin)
    }

    /// The agent of the path or the query, otherwise the only agent that is exposed.
    fn agent(&self) -> Result<&Agent> {
        let named = self.agent.or(self.query.get("agent")).filter(|name| !name.is_empty());
        if let Some(name) = named {
            let found = self.catalog.shown_agent(name).filter(|agent| agent.is_exposed());
            return found.ok_or_else(|| agents::not_exposed(self.catalog, name));
        }
        let mut exposed = self.catalog.shown_agents().filter(|agent| agent.is_exposed());
        match (exposed.next(), exposed.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(agents::which_one(self.catalog)),
        }
    }

    /// The thread of an existing chat.
    async fn thread(&self, id: &str) -> Step<Option<ThreadTarget>> {
        self.talk().thread(id, self.agent()?, "id").await
    }

    /// The thread of a chat. Creates it if it does not exist.
    async fn thread_or_new(&self, id: &str) -> Step<ThreadTarget> {
        let agent = self.agent()?;
        if let Some(thread) = self.thread(id).await? {
            return Ok(thread);
        }
        let body = json!({ "agent_id": agent.name, "key": id }).to_string();
        let told = create::create(self.env, self.caller.clone(), None, body).await?;
        let body = good(told)?;
        let thread = body.get("threadId").and_then(Value::as_str);
        let thread = thread.ok_or_else(|| Error::internal("a thread was made and has no id"))?;
        let found = self.talk().of_agent(thread, agent, "id").await?;
        Ok(found.ok_or_else(bobbin::access::no_thread)?)
    }

    async fn posted(&self, request: ChatRequest) -> Step<Response> {
        let ChatRequest { id, asks, other } = request;
        match asks {
            Operation::Say(said) => {
                let thread = self.thread_or_new(&id).await?;
                self.say(&thread, said, other).await
            }
            Operation::Answer(given) => {
                let thread = self.existing(&id).await?;
                self.answer(&thread, &given).await
            }
            Operation::Regenerate(message) => {
                let thread = self.existing(&id).await?;
                self.regenerate(&thread, message).await
            }
        }
    }

    async fn existing(&self, id: &str) -> Step<ThreadTarget> {
        let missing = || Stopped::Error(bobbin::access::no_thread());
        self.thread(id).await?.ok_or_else(missing)
    }

    /// Stores a person's message once: the page's id of the message is its idempotency key.
    async fn say(
        &self,
        thread: &ThreadTarget,
        said: UserMessage,
        other: Map<String, Value>,
    ) -> Step<Response> {
        if said.edits == Edits::Known
            && let Some(known) = self.message_of(thread, &said.id).await?
        {
            return self.edit(thread, &known, &said).await;
        }
        let mut kept = Map::new();
        kept.insert("ui_id".into(), said.id.clone().into());
        kept.extend(said.metadata.clone().map(|metadata| ("ui_metadata".to_owned(), metadata)));
        if !other.is_empty() {
            kept.insert("request".into(), other.into());
        }
        let body =
            json!({ "role": "user", "content": said.text, "attachments": said.files, "metadata": kept });
        let key = Some(format!("ui:{}", said.id));
        let told = self.talk().ask(&thread.id, ThreadRoute::PostMessage, &[], key, &body.to_string()).await?;
        if told.status == Code::IdempotencyMismatch.status()
            && let Some(known) = self.message_of(thread, &said.id).await?
        {
            return match text_of(&known, "content") == said.text {
                true => self.feed(thread, FeedTarget::Message(text_of(&known, "id").to_owned()), None).await,
                false => self.edit(thread, &known, &said).await,
            };
        }
        let posted = good(told)?;
        let message = posted.get("messageId").and_then(Value::as_str);
        let message = message.ok_or_else(|| Error::internal("a message was stored and has no id"))?;
        self.feed(thread, FeedTarget::Message(message.to_owned()), None).await
    }

    /// The message with this id, which is the page's or the thread's.
    async fn message_of(&self, thread: &ThreadTarget, ui_id: &str) -> Step<Option<Value>> {
        let is = |row: &Value| {
            text_of(row, "id") == ui_id
                || row.pointer("/metadata/ui_id").and_then(Value::as_str) == Some(ui_id)
        };
        let pages = self.pages(thread).await?;
        Ok(pages.into_iter().find_map(|page| page.into_iter().rev().find(is)))
    }

    /// Edits a person's message: deletes the messages after it and answers it again.
    async fn edit(&self, thread: &ThreadTarget, known: &Value, said: &UserMessage) -> Step<Response> {
        if !said.files.is_empty() {
            let text =
                "A message that is sent again with its id has another text; its files are what they were.";
            return Err(Error::field("messages", text).hint("Send files with a new message.").into());
        }
        self.rest(thread).await?;
        let query = [("truncate", "true"), ("run", "true")];
        let body = json!({ "content": said.text }).to_string();
        let route = ThreadRoute::PatchMessage(text_of(known, "id").to_owned());
        let told = self.talk().ask(&thread.id, route, &query, None, &body).await?;
        self.begun(thread, told).await
    }

    /// Regenerates this reply, or the last one.
    async fn regenerate(&self, thread: &ThreadTarget, reply: Option<String>) -> Step<Response> {
        let known = match reply {
            Some(id) => self.message_of(thread, &id).await?,
            None => None,
        };
        self.rest(thread).await?;
        // A page uses its own ids for replies without content.
        let reply = known.as_ref().map_or("last", |known| text_of(known, "id")).to_owned();
        let told = self.talk().ask(&thread.id, ThreadRoute::Regenerate(reply), &[], None, "{}").await?;
        self.begun(thread, told).await
    }

    /// The run that a thread's response names as begun.
    async fn begun(&self, thread: &ThreadTarget, told: Told) -> Step<Response> {
        let begun = good(told)?;
        let run = begun.get("run").and_then(Value::as_str);
        let run = run.ok_or_else(|| Error::internal("a message is answered anew, and by no run"))?;
        self.feed(thread, FeedTarget::Tail(run.to_owned()), None).await
    }

    /// Ends a run that waits for somebody, because its question is no longer of interest. A run that is
    /// working is left, and refuses the request.
    async fn rest(&self, thread: &ThreadTarget) -> Step<()> {
        let newest = self.talk().newest_run(&thread.id).await?;
        self.talk().end_paused(&thread.id, newest.as_ref()).await
    }

    /// Answers the waits for a person or the page. Waits that are already answered are skipped, unless the
    /// answer differs.
    async fn answer(&self, thread: &ThreadTarget, given: &PageAnswers) -> Step<Response> {
        let Plan { mut decisions, goes_on } = Plan::of(&self.talk().waits(&thread.id).await?, given)?;
        if !decisions.is_empty() {
            let body = json!({ "decisions": decisions }).to_string();
            let told = self.talk().ask(&thread.id, ThreadRoute::DecideWaits, &[], None, &body).await?;
            if told.status == Code::Conflict.status() {
                // Another client was faster, with the same answer or another one.
                decisions = Plan::of(&self.talk().waits(&thread.id).await?, given)?.decisions;
            }
            if !decisions.is_empty() {
                good(told)?;
            }
        }
        match goes_on.reply.as_str() {
            "" => match self.running(thread).await? {
                Some(run) => self.feed(thread, FeedTarget::Tail(run), None).await,
                None => self.nothing_said(&goes_on.message),
            },
            reply => {
                let of = FeedTarget::From(reply.to_owned());
                self.feed(thread, of, Some(goes_on)).await
            }
        }
    }

    /// A reply without content, under an id that the page has.
    fn nothing_said(&self, message: &str) -> Step<Response> {
        let start = json!({ "type": "start", "messageId": message });
        let finish = json!({ "type": "finish", "finishReason": "stop" });
        let text = format!("data: {start}\n\ndata: {finish}\n\ndata: [DONE]\n\n");
        Ok(events::whole(&text, self.origin, &self.headers(None))?)
    }

    /// The active run, unless it waits for a person.
    async fn running(&self, thread: &ThreadTarget) -> Step<Option<String>> {
        let Some(newest) = self.talk().newest_run(&thread.id).await? else { return Ok(None) };
        let run = text_of(&newest, "run").to_owned();
        match text_of(&newest, "status") {
            "running" => Ok(Some(run)),
            "paused" => {
                let told =
                    self.talk().ask(&thread.id, ThreadRoute::GetRun(run.clone()), &[], None, "").await?;
                let paused = good(told)?;
                Ok((text_of(&paused, "pauseKind") != "human").then_some(run))
            }
            _ => Ok(None),
        }
    }

    async fn resumed(&self, id: &str) -> Step<Response> {
        let nothing =
            || answer::nothing(self.origin).map_err(|error| Stopped::Error(Error::internal(thrown(&error))));
        let Some(thread) = self.thread(id).await? else { return nothing() };
        let run = match self.has_feature(REPLAY) {
            true => {
                self.talk().newest_run(&thread.id).await?.map(|newest| text_of(&newest, "run").to_owned())
            }
            false => self.running(&thread).await?,
        };
        match run {
            Some(run) => self.feed(&thread, FeedTarget::Tail(run), None).await,
            None => nothing(),
        }
    }

    fn has_feature(&self, name: &str) -> bool {
        let features = self.query.get("features").unwrap_or_default();
        features.split(',').any(|feature| feature.trim() == name)
    }

    async fn stopped(&self, id: &str) -> Step<Response> {
        let thread = self.existing(id).await?;
        let newest = self.talk().newest_run(&thread.id).await?;
        let active = newest.is_some_and(|run| matches!(text_of(&run, "status"), "running" | "paused"));
        let failed = |error: JsValue| Stopped::Error(Error::internal(thrown(&error)));
        if !active {
            return answer::nothing(self.origin).map_err(failed);
        }
        let told = self.talk().ask(&thread.id, ThreadRoute::Stop, &[], None, "").await?;
        good(told)?;
        answer::of_value(&json!(chats::ChatStopped { status: "stopped" }), self.origin).map_err(failed)
    }

    async fn feed(
        &self,
        thread: &ThreadTarget,
        of: FeedTarget,
        continues: Option<ContinuedMessage>,
    ) -> Step<Response> {
        let threads = self.env.threads().map_err(|error| Error::internal(thrown(&error)))?;
        let settings = Settings { continues, ..self.settings(thread)? };
        let mut query = vec![("progress".to_owned(), "0".to_owned())];
        if settings.reasoning {
            query.push(("reasoning".to_owned(), "1".to_owned()));
        }
        let query = Query(query);
        let wanted = EventsRequest {
            thread: &thread.id,
            caller: self.caller.clone(),
            query: &query,
            origin: self.origin,
        };
        let encoder = UiEncoder(RefCell::new(UiStream::new(settings))).into();
        let encoded = FeedEncoding { extra: self.headers(Some(&thread.id)), encoder };
        Ok(events::feed(&threads, self.ctx, wanted, of, None, encoded).await?)
    }

    fn headers(&self, thread: Option<&str>) -> Vec<(String, String)> {
        let version = ("x-vercel-ai-ui-message-stream".to_owned(), "v1".to_owned());
        let thread = thread.map(|thread| ("x-bobbin-thread".to_owned(), thread.to_owned()));
        std::iter::once(version).chain(thread).collect()
    }

    fn settings(&self, thread: &ThreadTarget) -> Result<Settings> {
        let tools = self.catalog.tools.values();
        Ok(Settings {
            thread: thread.id.clone(),
            agent: self.agent()?.name.clone(),
            reset_step: self.has_feature(RESET_STEP),
            reasoning: self.query.flag("reasoning")?,
            approvals_as_data: self.query.get("approvals") == Some("data"),
            continues: None,
            client_tools: tools
                .filter(|tool| tool.is_of_client())
                .map(|tool| tool.name.clone())
                .chain(std::iter::once("ask_user".to_owned()))
                .collect(),
            links: self.links.clone().map(|links| links.of_life(thread.life)),
        })
    }

    async fn read_history(&self, id: &str) -> Step<Value> {
        let Some(thread) = self.thread(id).await? else {
            return Ok(json!(chats::Chat { id, thread_id: None, messages: Vec::new(), active_run: None }));
        };
        let active = self.running(&thread).await?;
        let mut rows = Vec::new();
        for page in self.pages(&thread).await?.into_iter().rev() {
            rows.extend(page);
        }
        let runs = self.runs(&thread, active.as_deref()).await?;
        let messages = history(&rows, &runs, &self.settings(&thread)?)?;
        Ok(json!(chats::Chat { id, thread_id: Some(&thread.id), messages, active_run: active }))
    }

    /// The newest messages in pages, newest page first, each in the order of its rows.
    async fn pages(&self, thread: &ThreadTarget) -> Step<Vec<Vec<Value>>> {
        let mut pages: Vec<Vec<Value>> = Vec::new();
        while pages.len() < PAGES {
            let before = pages.last().and_then(|page| page.first()).map(|row| text_of(row, "id").to_owned());
            let mut query = vec![("limit", PAGE_ROWS)];
            query.extend(before.as_deref().map(|id| ("before", id)));
            let (rows, more) = self.talk().page(&thread.id, &query).await?;
            let last = !more || rows.is_empty();
            pages.push(rows);
            if last {
                break;
            }
        }
        Ok(pages)
    }

    /// Runs in their order, as many as fit on one page.
    async fn runs(&self, thread: &ThreadTarget, active: Option<&str>) -> Step<Vec<RunFrames>> {
        let told =
            self.talk().ask(&thread.id, ThreadRoute::ListRuns, &[("limit", PAGE_ROWS)], None, "").await?;
        let listed = good(told)?;
        let mut runs = Vec::new();
        for run in listed.get("runs").and_then(Value::as_array).into_iter().flatten().rev() {
            let id = text_of(run, "run");
            let opening = json!({ "run": id, "startedAt": run.get("startedAt") });
            let closing = match text_of(run, "status") {
                _ if active == Some(id) => None,
                "paused" => {
                    let told = self
                        .talk()
                        .ask(&thread.id, ThreadRoute::GetRun(id.to_owned()), &[], None, "")
                        .await?;
                    Some(("run_parked", good(told)?))
                }
                "running" => None,
                _ => Some(("run_ended", run.clone())),
            };
            runs.push(RunFrames { opening, last: text_of(run, "messageId").to_owned(), closing });
        }
        Ok(runs)
    }

    fn talk(&self) -> ThreadClient<'_> {
        ThreadClient { env: self.env, caller: &self.caller, fingerprint: &self.fingerprint }
    }
}
