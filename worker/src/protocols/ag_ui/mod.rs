//! Clients of AG-UI (docs/clients.md): their requests run in a thread, and the run is streamed in their
//! protocol. The thread's object does not know the protocol.

use bobbin::access::Caller;
use bobbin::access::links::Links;
use bobbin::definitions::{Agent, Catalog};
use bobbin::engine::feed::FeedTarget;
use bobbin::json;
use bobbin::protocols::ag_ui::answers::Plan;
use bobbin::protocols::ag_ui::events::{AgUi, Settings};
use bobbin::protocols::ag_ui::message::{
    DisplaySettings, is_called, is_context, is_run_of, kept, messages, run_of,
};
use bobbin::protocols::ag_ui::parts::pending;
use bobbin::protocols::ag_ui::request::{ClientMessages, HistoryLimit, RunRequest, UserMessage};
use bobbin::protocols::ag_ui::resume::Position;
use bobbin::protocols::ag_ui::revision::{Change, Revision, revision};
use bobbin::protocols::ag_ui::tanstack::with_parts;
use bobbin::protocols::run_events::seq_of;
use bobbin::request::{Query, ThreadRoute, agents};
use bobbin::signing::digest;
use bobbin::{Code, Error, Result};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::answer::{self, Response};
use crate::bindings::{Env, thrown};
use crate::create;
use crate::events::{self, EventsRequest, FeedEncoding, ResponseForm};
use crate::protocols::encoder::Encoder;
use crate::protocols::thread_client::{Step, Stopped, ThreadClient, ThreadTarget, good, text_of, told};

/// Messages in a page of the history, unless the client requests another number.
const PAGE_ROWS: &str = "100";
/// Newest messages among which the client's ids are searched.
const SOUGHT_ROWS: &str = "100";

/// The offset of clients that have read nothing.
const FROM_THE_BEGINNING: &str = "-1";

/// A request to an agent.
pub(crate) struct AgUiRequest<'a> {
    pub(crate) env: &'a Env,
    pub(crate) ctx: &'a JsValue,
    pub(crate) query: &'a Query,
    pub(crate) caller: Caller,
    pub(crate) origin: Option<&'a str>,
    pub(crate) catalog: &'a Catalog,
    pub(crate) links: Option<Links>,
    /// The agent of the path.
    pub(crate) agent: &'a str,
    /// Which of several keys was used, for the log of decisions.
    pub(crate) fingerprint: Vec<(String, String)>,
    /// The id of the last event that the client has read.
    pub(crate) last_event_id: Option<&'a str>,
}

impl AgUiRequest<'_> {
    /// `POST …/ag-ui`: a run.
    pub(crate) async fn post(&self, body: &str) -> Result<Response> {
        told(self.posted(body).await, self.origin)
    }

    /// `GET …/ag-ui`: the conversation; with `runId`, that run from its beginning.
    pub(crate) async fn get(&self) -> Result<Response> {
        told(self.got().await, self.origin)
    }

    fn agent(&self) -> Result<&Agent> {
        let found = self.catalog.shown_agent(self.agent).filter(|agent| agent.is_exposed());
        found.ok_or_else(|| agents::not_exposed(self.catalog, self.agent))
    }

    fn talk(&self) -> ThreadClient<'_> {
        ThreadClient { env: self.env, caller: &self.caller, fingerprint: &self.fingerprint }
    }

    /// The thread of an existing conversation.
    async fn thread(&self, name: &str) -> Step<Option<ThreadTarget>> {
        self.talk().thread(name, self.agent()?, "threadId").await
    }

    /// The thread of a conversation. Creates it with the earlier messages if it does not exist.
    async fn thread_or_new(&self, request: &RunRequest<'_>) -> Step<ThreadTarget> {
        let agent = self.agent()?;
        if let Some(thread) = self.thread(&request.thread).await? {
            return Ok(thread);
        }
        let body = json!({ "agent_id": agent.name, "key": request.thread, "history": request.history()? });
        let told = create::create(self.env, self.caller.clone(), None, body.to_string()).await?;
        let made = good(told)?;
        let thread = self.talk().of_agent(text_of(&made, "threadId"), agent, "threadId").await?;
        Ok(thread.ok_or_else(bobbin::access::no_thread)?)
    }

    /// Checks the client's tools: only tools that the definition leaves to clients are allowed.
    fn check_tools(&self, tools: &[String]) -> Result<()> {
        let is_known =
            |name: &String| self.catalog.tools.values().any(|tool| tool.is_of_client() && tool.name == *name);
        let Some(unknown) = tools.iter().find(|name| !is_known(name)) else { return Ok(()) };
        let shown: String = unknown.chars().take(64).collect();
        let text = format!("There is no tool “{shown}” that is left to clients.");
        Err(Error::new(Code::UnsupportedParameter, text)
            .at("tools")
            .hint("Define it in tools/, with \"run\": { \"client\": {} }."))
    }

    async fn posted(&self, body: &str) -> Step<Response> {
        self.agent()?;
        let request = RunRequest::parse(body)?;
        self.after()?;
        self.check_tools(&request.tools)?;
        if self.query.get("threadId").is_some_and(|named| named != request.thread) {
            let text = "The address and the body name two conversations.";
            return Err(Stopped::Error(Error::field("threadId", text)));
        }
        let says = !request.said.is_empty();
        let thread = if says {
            self.thread_or_new(&request).await?
        } else {
            self.thread(&request.thread).await?.ok_or_else(bobbin::access::no_thread)?
        };
        let mut settings = self.settings(&thread, &request.thread, &request.run)?;
        settings.parent = request.parent.clone();
        settings.version = request.version;
        let answered = self.decide(&thread, &request).await?;
        let (of, held) = match answered {
            _ if says => {
                let message = match self.revised(&thread, &request).await? {
                    Some(message) => message,
                    None => self.say(&thread, &request).await?,
                };
                (FeedTarget::Message(message), request.held(HistoryLimit::All)?)
            }
            Some(reply) => {
                let held = request.held(HistoryLimit::Reply(&reply))?;
                settings.continues = Some(reply.clone());
                (FeedTarget::From(reply), held)
            }
            // Nothing is new, or the answers belong to no call of a reply: send everything after the last
            // message of a person again.
            None => {
                (FeedTarget::Tail(self.newest_run(&thread).await?), request.held(HistoryLimit::LastSaid)?)
            }
        };
        let ClientMessages { messages, results, afresh } = held;
        self.follow(&thread, of, Settings { held: messages, results, afresh, ..settings }).await
    }

    /// Decides the waits that the client answers. Returns the newest reply whose calls they belong to.
    async fn decide(&self, thread: &ThreadTarget, request: &RunRequest<'_>) -> Step<Option<String>> {
        if request.answers.is_empty() {
            return Ok(None);
        }
        let plan = Plan::of(&self.talk().waits(&thread.id).await?, &request.answers)?;
        if !plan.decisions.is_empty() {
            let body = json!({ "decisions": plan.decisions }).to_string();
            let told = self.talk().ask(&thread.id, ThreadRoute::DecideWaits, &[], None, &body).await?;
            if told.status == Code::Conflict.status() {
                // Another client was faster, with the same answer or another one.
                let again = Plan::of(&self.talk().waits(&thread.id).await?, &request.answers)?;
                if !again.decisions.is_empty() {
                    good(told)?;
                }
                return Ok(again.reply);
            }
            good(told)?;
        }
        Ok(plan.reply)
    }

    /// Handles a repeated message of a client whose list of messages is authoritative: edits its text, or
    /// regenerates its answer. Does nothing if the same request was made before, or the answer is in
    /// progress.
    async fn revised(&self, thread: &ThreadTarget, request: &RunRequest<'_>) -> Step<Option<String>> {
        if !self.query.flag("revise")? {
            return Ok(None);
        }
        let rows = self.rows(thread, &[("limit", SOUGHT_ROWS)]).await?;
        let Some(Revision { message, change }) = revision(&rows, request)? else { return Ok(None) };
        let Some(Change { is_edit, body }) = change else { return Ok(Some(message)) };
        let newest = self.talk().newest_run(&thread.id).await?;
        if !is_edit && newest.as_ref().is_some_and(|run| text_of(run, "status") == "running") {
            return Ok(Some(message));
        }
        self.talk().end_paused(&thread.id, newest.as_ref()).await?;
        let query = [("truncate", "true"), ("run", "true")];
        let key = Some(format!("ag-ui:run:{}", request.run));
        let route = ThreadRoute::PatchMessage(message.clone());
        good(self.talk().ask(&thread.id, route, &query, key, &body.to_string()).await?)?;
        Ok(Some(message))
    }

    /// Stores the new messages of a person as one message, once, and returns its id. Messages that the thread
    /// has are skipped.
    async fn say(&self, thread: &ThreadTarget, request: &RunRequest<'_>) -> Step<String> {
        let mut new: Vec<&UserMessage> = request.said.iter().collect();
        if new.len() > 1 || request.context.is_some() {
            let rows = self.rows(thread, &[("limit", SOUGHT_ROWS), ("includeSilent", "true")]).await?;
            let known = |said: &UserMessage| rows.iter().rev().find(|row| is_called(row, &said.id));
            if let Some(last) = new.last().and_then(|said| known(said)) {
                return Ok(text_of(last, "id").to_owned());
            }
            new.retain(|said| known(said).is_none());
            self.tell_context(thread, request, &rows).await?;
        }
        let ids: Vec<&str> = new.iter().map(|said| said.id.as_str()).collect();
        let texts: Vec<&str> = new.iter().map(|said| said.text.as_str()).collect();
        let files: Vec<&Value> = new.iter().flat_map(|said| &said.files).collect();
        let body = json!({
            "role": "user", "content": texts.join("\n\n"), "attachments": files,
            "metadata": kept(&ids, &request.run, &[], request.forwarded.as_ref()),
        });
        let last = ids.last().copied().unwrap_or_default();
        // The client uses another run id when it sends the message again.
        let key = Some(format!("ag-ui:{last}"));
        let told = self.talk().ask(&thread.id, ThreadRoute::PostMessage, &[], key, &body.to_string()).await?;
        if told.status == Code::IdempotencyMismatch.status() {
            let rows = self.rows(thread, &[("limit", SOUGHT_ROWS)]).await?;
            let same = |row: &&Value| is_called(row, last) && text_of(row, "content") == texts.join("\n\n");
            if let Some(row) = rows.iter().rev().find(same) {
                return Ok(text_of(row, "id").to_owned());
            }
        }
        let posted = good(told)?;
        match text_of(&posted, "messageId") {
            "" => Err(Stopped::Error(Error::internal("a message was stored and has no id"))),
            id => Ok(id.to_owned()),
        }
    }

    /// Stores the page's context as a message that people are not shown, unless it equals the last one.
    async fn tell_context(
        &self,
        thread: &ThreadTarget,
        request: &RunRequest<'_>,
        rows: &[Value],
    ) -> Step<()> {
        let Some(text) = &request.context else { return Ok(()) };
        let told = rows.iter().rev().find(|row| is_context(row));
        if told.is_some_and(|row| text_of(row, "content") == text) {
            return Ok(());
        }
        let kept = json!({ "ag_ui": { "context": true } });
        let body = json!({ "role": "system", "content": text, "silent": true, "metadata": kept }).to_string();
        let asked = request.said.last().map_or("", |said| said.id.as_str());
        let key = Some(format!("ag-ui:context:{}", digest(&[asked, text])));
        let told = self.talk().ask(&thread.id, ThreadRoute::PostMessage, &[], key, &body).await?;
        good(told).map(|_| ())
    }

    async fn newest_run(&self, thread: &ThreadTarget) -> Step<String> {
        let newest = self.talk().newest_run(&thread.id).await?;
        let missing = || {
            Error::field("messages", "Nothing is new, and nothing was answered yet.")
                .hint("Send what the person says, with the role user.")
        };
        Ok(newest.map(|run| text_of(&run, "run").to_owned()).ok_or_else(missing)?)
    }

    /// The newest messages, oldest first.
    async fn rows(&self, thread: &ThreadTarget, query: &[(&str, &str)]) -> Step<Vec<Value>> {
        Ok(self.talk().page(&thread.id, query).await?.0)
    }

    fn settings(&self, thread: &ThreadTarget, conversation: &str, run: &str) -> Result<Settings> {
        Ok(Settings {
            conversation: conversation.to_owned(),
            run: run.to_owned(),
            thread: thread.id.clone(),
            reasoning: self.query.flag("reasoning")?,
            after: self.after()?,
            caller: Some(self.caller.clone()),
            client_tools: self
                .catalog
                .tools
                .values()
                .filter(|tool| tool.is_of_client())
                .map(|tool| tool.name.clone())
                .collect(),
            ..Settings::default()
        })
    }

    /// The position up to which the client has read.
    fn after(&self) -> Result<Option<Position>> {
        let header = self.last_event_id.map(|id| ("Last-Event-ID", id));
        let query = self.query.get("offset").map(|id| ("offset", id));
        let named = header.or(query).filter(|(_, id)| !id.is_empty() && *id != FROM_THE_BEGINNING);
        let Some((field, id)) = named else { return Ok(None) };
        let wrong = || {
            Error::field(field, format!("`{field}` is no id of an event of this route."))
                .hint("Send the id of the last event that was read; without one, all of the run is told.")
        };
        Position::parse(id).map(Some).ok_or_else(wrong)
    }

    async fn follow(&self, thread: &ThreadTarget, of: FeedTarget, settings: Settings) -> Step<Response> {
        let settings = Settings { told_of: told_of(&of), ..settings };
        let threads = self.env.threads().map_err(|error| Error::internal(thrown(&error)))?;
        let mut query = vec![("progress".to_owned(), "0".to_owned())];
        query.extend(settings.reasoning.then(|| ("reasoning".to_owned(), "1".to_owned())));
        let query = Query(query);
        let wanted = EventsRequest {
            thread: &thread.id,
            caller: self.caller.clone(),
            query: &query,
            origin: self.origin,
        };
        let extra = vec![("x-bobbin-thread".to_owned(), thread.id.clone())];
        let encoded = FeedEncoding { extra, encoder: Encoder::new(AgUi::new(settings)).into() };
        events::answered(&threads, self.ctx, wanted, of, ResponseForm::Streamed, encoded)
            .await?
            .map_err(Stopped::Told)
    }

    async fn got(&self) -> Step<Response> {
        self.agent()?;
        self.after()?;
        let conversation = self.query.get("threadId").filter(|id| !id.is_empty());
        let conversation = conversation.ok_or_else(|| Error::missing("threadId"))?;
        let run = self.query.get("runId").filter(|id| !id.is_empty());
        let Some(thread) = self.thread(conversation).await? else {
            if run.is_some() {
                return Err(Stopped::Error(bobbin::access::no_thread()));
            }
            return self.value(&json!({
                "threadId": null, "messages": [], "activeRun": null, "interrupts": null, "page": { "truncated": false },
            }));
        };
        match run {
            Some(run) => self.replay(&thread, conversation, run).await,
            None => self.history(&thread).await,
        }
    }

    fn value(&self, value: &Value) -> Step<Response> {
        answer::of_value(value, self.origin).map_err(|error| Stopped::Error(Error::internal(thrown(&error))))
    }

    /// A run from its beginning, named by the client's id or the thread's.
    async fn replay(&self, thread: &ThreadTarget, conversation: &str, run: &str) -> Step<Response> {
        let rows = self.rows(thread, &[("limit", SOUGHT_ROWS)]).await?;
        let asked = rows.iter().rposition(|row| is_run_of(row, run));
        // A run named by the thread's id is sent from the last message of a person.
        let said = || rows.iter().rposition(|row| text_of(row, "role") == "user");
        let held = asked.or_else(said).and_then(|at| rows.get(..=at)).unwrap_or_default();
        let of = match asked.and_then(|at| rows.get(at)) {
            Some(row) => FeedTarget::Message(text_of(row, "id").to_owned()),
            None => FeedTarget::Tail(run.to_owned()),
        };
        let mut settings = self.settings(thread, conversation, run)?;
        let held: Vec<String> = self.shown(thread, held)?.iter().map(Value::to_string).collect();
        settings.held = held.join(",");
        self.follow(thread, of, settings).await
    }

    fn shown(&self, thread: &ThreadTarget, rows: &[Value]) -> Result<Vec<Value>> {
        let links = self.links.clone().map(|links| links.of_life(thread.life));
        let reasoning = self.query.flag("reasoning")?;
        Ok(messages(rows, &DisplaySettings { thread: &thread.id, links: links.as_ref(), reasoning }))
    }

    /// The initial state for a client.
    async fn history(&self, thread: &ThreadTarget) -> Step<Response> {
        let mut query = vec![("limit", self.query.get("limit").unwrap_or(PAGE_ROWS))];
        query.extend(self.query.get("before").map(|before| ("before", before)));
        let (rows, more) = self.talk().page(&thread.id, &query).await?;
        let newest = self.talk().newest_run(&thread.id).await?;
        let active = newest.filter(|run| matches!(text_of(run, "status"), "running" | "paused"));
        // The client's own id of the run, if it began it. Older pages do not have it.
        let newest_rows = if self.query.get("before").is_none() { rows.as_slice() } else { &[] };
        let said = newest_rows.iter().rposition(|row| text_of(row, "role") == "user");
        let named = said.and_then(|at| newest_rows.get(at)).and_then(run_of);
        let run = active.as_ref().map(|run| named.unwrap_or(text_of(run, "run")));
        let pending = match &active {
            Some(paused) if text_of(paused, "status") == "paused" => {
                self.pending(thread, run.unwrap_or_default()).await?
            }
            _ => Vec::new(),
        };
        let interrupts = run.filter(|_| !pending.is_empty());
        let active = run.filter(|_| pending.is_empty());
        // The output of an active run is sent with the run, because clients append it.
        let told = said.filter(|_| active.is_some()).and_then(|at| rows.get(..=at)).unwrap_or(&rows);
        let mut messages = self.shown(thread, told)?;
        if self.query.flag("parts")? {
            messages = with_parts(&messages);
        }
        let oldest = rows.first().map(|row| text_of(row, "id"));
        self.value(&json!({
            "threadId": thread.id,
            "messages": messages,
            "activeRun": active.map(|run| json!({ "runId": run })),
            "interrupts": interrupts.map(|run| json!({ "runId": run, "pending": pending })),
            "page": oldest.filter(|_| more).map_or_else(
                || json!({ "truncated": false }),
                |oldest| json!({ "truncated": true, "cursor": oldest }),
            ),
        }))
    }

    /// Open waits, as interrupts of a run.
    async fn pending(&self, thread: &ThreadTarget, run: &str) -> Step<Vec<Value>> {
        let told = self.talk().ask(&thread.id, ThreadRoute::ListWaits, &[], None, "").await?;
        let body = good(told)?;
        let waits = body.get("waits").and_then(Value::as_array).into_iter().flatten();
        Ok(waits.filter_map(|wait| pending(wait, run)).collect())
    }
}

/// The prefix of the ids of a feed's events.
fn told_of(of: &FeedTarget) -> String {
    match of {
        FeedTarget::Message(id) => format!("m{}", seq_of(id)),
        FeedTarget::From(id) => format!("f{}", seq_of(id)),
        FeedTarget::Run(run) | FeedTarget::Tail(run) => run.replace('_', ""),
    }
}
