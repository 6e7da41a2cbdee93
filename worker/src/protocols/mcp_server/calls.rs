//! The tools of MCP: messages to an agent, operations on a thread, and tasks.

use bobbin::access::no_thread;
use bobbin::definitions::Agent;
use bobbin::engine::feed::FeedTarget;
use bobbin::json;
use bobbin::limits::SECOND_US;
use bobbin::protocols::mcp_server::input::{Reaction, reaction};
use bobbin::protocols::mcp_server::messages::{
    Accepts, Era, INVALID_PARAMS, INVALID_REQUEST, Message, Refusal,
};
use bobbin::protocols::mcp_server::results::{Ask, ResultStatus, Settings, Shape, Task, complete, shown};
use bobbin::protocols::mcp_server::state::{QuestionState, Seal};
use bobbin::protocols::mcp_server::tools::WAIT_MAX_MS;
use bobbin::protocols::openai::response_request::{parse_id, response_id};
use bobbin::request::fields::Body;
use bobbin::request::{Query, ThreadRequest, ThreadRoute, agents, thread_id};
use bobbin::signing::digest;
use bobbin::{Code, Error};
use serde_json::{Map, Value};

use crate::bindings::{random, thrown};
use crate::create;
use crate::events::{self, EventsRequest, FeedEncoding, ResponseForm};
use crate::protocols::encoder::Encoder;
use crate::protocols::mcp_server::{Mcp, RequestOutcome, invalid};
use crate::protocols::openai::{hex, now_us};
use crate::protocols::thread_client::{Step, Stopped, found, good, text_of};
use crate::router;

/// A message that was stored.
struct StoredMessage {
    thread: String,
    message: String,
    /// The run that it began.
    began: Option<String>,
    created_us: i64,
}

impl Mcp<'_> {
    /// `ask_<agent>`.
    pub(crate) async fn ask(
        &self,
        message: &Message,
        accepts: Accepts,
        name: &str,
        agent: &Agent,
        args: Map<String, Value>,
    ) -> Step<RequestOutcome> {
        if message.params.contains_key("inputResponses") && !message.params.contains_key("requestState") {
            return Ok(invalid(message, "`inputResponses` belong to a `requestState`."));
        }
        let called = [name, &Value::Object(args.clone()).to_string()];
        let (seal, state) = match self.resumed(message, &called) {
            Ok(resumed) => resumed,
            Err(done) => return Ok(*done),
        };
        let mut settings = Settings { seal, ..self.settings(message, Shape::Answer) };
        match state {
            Some(state) => {
                self.goes_on(message, &mut settings, state).await?;
            }
            None => {
                let said = self.say(message, agent, args).await?;
                if message.capabilities.tasks {
                    return Ok(RequestOutcome::Result(new_task(&said)));
                }
                (settings.thread, settings.message) = (said.thread, said.message);
                settings.began = said.began;
            }
        }
        let of = FeedTarget::Message(settings.message.clone());
        self.answer(message, accepts, of, settings).await
    }

    /// The state that a client returns after a question, and the seal for its next questions.
    pub(crate) fn resumed(
        &self,
        message: &Message,
        called: &[&str],
    ) -> Result<ResumeState, Box<RequestOutcome>> {
        let refused = |text: &str| Err(Box::new(invalid(message, text)));
        let seal = self.seal(called);
        let Some(text) = message.params.get("requestState") else { return Ok((seal, None)) };
        let opened = text.as_str().zip(seal.as_ref()).map(|(text, seal)| seal.open(text));
        match opened {
            Some(Ok(state)) => Ok((seal, Some(state))),
            Some(Err(unfit)) => refused(&unfit.to_string()),
            None => refused("The `requestState` is not valid."),
        }
    }

    /// Sends the client's answers to the thread and continues from the state.
    pub(crate) async fn goes_on(
        &self,
        message: &Message,
        settings: &mut Settings,
        state: QuestionState,
    ) -> Step<()> {
        let responses = message.params.get("inputResponses").and_then(Value::as_object);
        let closed = self.react(&state.thread, Answers { waits: &state.waits, responses }).await?;
        settings.forms &= closed == Forms::Answered;
        (settings.thread, settings.message, settings.began) = (state.thread, state.message, state.began);
        Ok(())
    }

    /// Follows the run until it ends or waits, in the form that the client accepts.
    pub(crate) async fn answer(
        &self,
        message: &Message,
        accepts: Accepts,
        of: FeedTarget,
        mut settings: Settings,
    ) -> Step<RequestOutcome> {
        // A client that began with `initialize` may lose its connection without a wish to cancel.
        settings.began = settings.began.filter(|_| message.era == Era::Modern);
        let how = if accepts == Accepts::Json { ResponseForm::Whole } else { ResponseForm::Streamed };
        if message.era == Era::Legacy && how == ResponseForm::Streamed {
            settings.elicits = self.seal(ELICITED);
        }
        self.follow(of, how, settings).await
    }

    /// Stores a person's answer to a request on the stream of another call.
    pub(crate) async fn responded(&self, message: &Message) -> Step<Option<RequestOutcome>> {
        let id = message.id.as_ref().and_then(Value::as_str).unwrap_or_default();
        let opened = self.seal(ELICITED).map(|seal| seal.open(id));
        let Some(Ok(state)) = opened else {
            let text = "This is no answer to anything that was asked here.";
            return Ok(Some(RequestOutcome::Refusal(Refusal::new(400, None, INVALID_REQUEST, text, None))));
        };
        for (key, id) in &state.waits {
            let responses = Map::from_iter([(key.clone(), Value::Object(message.params.clone()))]);
            let waits = [(key.clone(), id.clone())];
            self.react(&state.thread, Answers { waits: &waits, responses: Some(&responses) }).await?;
            // That stream cannot repeat the question, so a closed or invalid answer is a refusal.
            let open = self.talk().waits(&state.thread).await?;
            let open = open.iter().find(|wait| text_of(wait, "id") == id && text_of(wait, "state") == "open");
            if let Some(wait) = open {
                self.decide(&state.thread, wait, &json!({ "decision": "deny" })).await?;
            }
        }
        Ok(None)
    }

    /// `thread_start`.
    pub(crate) async fn start(
        &self,
        message: &Message,
        mut args: Map<String, Value>,
    ) -> Step<RequestOutcome> {
        let named = match args.remove("agent") {
            Some(Value::String(named)) => named,
            Some(_) => return Err(Stopped::Error(Error::field("agent", "`agent` must be a string."))),
            None => return Err(Stopped::Error(Error::missing("agent"))),
        };
        let agent = self.catalog.shown_agent(&named).filter(|agent| agent.is_exposed());
        let agent = agent.ok_or_else(|| agents::not_exposed(self.catalog, &named))?;
        let said = self.say(message, agent, args).await?;
        let text = format!("Started in thread {}. Look at it with thread_get.", said.thread);
        let structured = json!({ "thread": said.thread, "run": said.began, "outcome": null, "reason": null });
        Ok(RequestOutcome::Result(complete(&text, structured, ResultStatus::No)))
    }

    /// `thread_get`.
    pub(crate) async fn get(&self, message: &Message, args: Map<String, Value>) -> Step<RequestOutcome> {
        let mut args = Body::of(args).known(&["thread", "wait_ms"])?;
        let thread = self.named(&mut args)?;
        let wait_ms = args.whole("wait_ms")?.unwrap_or(0);
        if !(0..=WAIT_MAX_MS).contains(&wait_ms) {
            let text = format!("`wait_ms` is from 0 to {WAIT_MAX_MS}.");
            return Err(Stopped::Error(Error::field("wait_ms", text)));
        }
        let told = self.talk().ask(&thread, ThreadRoute::Get, &[], None, "").await?;
        good(told)?;
        let Some(run) = self.talk().newest_run(&thread).await? else {
            let structured = json!({
                "thread": thread, "run": null, "outcome": null, "reason": null, "state": "idle", "reply": null,
                "poll_after_ms": null,
            });
            return Ok(RequestOutcome::Result(complete(
                "Nothing was said yet.",
                structured,
                ResultStatus::No,
            )));
        };
        let of = FeedTarget::Tail(text_of(&run, "run").to_owned());
        let settings = Settings { thread, ..self.settings(message, Shape::Thread) };
        let how = if wait_ms == 0 { ResponseForm::Now } else { ResponseForm::Within(wait_ms) };
        self.follow(of, how, settings).await
    }

    /// `thread_respond`.
    pub(crate) async fn respond(&self, args: Map<String, Value>) -> Step<RequestOutcome> {
        let mut args = Body::of(args).known(&["thread", "responses"])?;
        let thread = self.named(&mut args)?;
        let responses = args.take("responses").ok_or_else(|| Error::missing("responses"))?;
        let body = json!({ "decisions": responses }).to_string();
        // A client repeats the request if it did not receive the response.
        let key = Some(format!("mcp:{}", digest(&[&body])));
        let told = self.talk().ask(&thread, ThreadRoute::DecideWaits, &[], key, &body).await?;
        let decided = good(told)?;
        let shown = |wait: &Value| json!({ "id": wait.get("id"), "state": wait.get("state"), "decision": wait.get("decision") });
        let decided = decided.get("waits").and_then(Value::as_array).into_iter().flatten();
        let structured = json!({ "thread": thread, "decided": decided.map(shown).collect::<Vec<_>>() });
        let text = "It is decided. Read what comes of it with thread_get.";
        Ok(RequestOutcome::Result(complete(text, structured, ResultStatus::No)))
    }

    /// `thread_cancel`.
    pub(crate) async fn cancel(&self, args: Map<String, Value>) -> Step<RequestOutcome> {
        let mut args = Body::of(args).known(&["thread"])?;
        let thread = self.named(&mut args)?;
        let told = self.talk().ask(&thread, ThreadRoute::Stop, &[], None, "").await?;
        let told = good(told)?;
        let structured = json!({ "thread": thread, "state": "idle" });
        Ok(RequestOutcome::Result(complete(text_of(&told, "message"), structured, ResultStatus::No)))
    }

    /// `tasks/…`.
    pub(crate) async fn task(&self, message: &Message) -> Step<RequestOutcome> {
        if !message.capabilities.tasks {
            return Ok(RequestOutcome::Refusal(message.needs_tasks()));
        }
        let id = message.params.get("taskId").and_then(Value::as_str).unwrap_or_default();
        let named = id.strip_prefix(TASK).and_then(|rest| parse_id(&format!("resp_{rest}")));
        let unknown =
            || RequestOutcome::Refusal(message.refuse(INVALID_PARAMS, "There is no such task.", None));
        let Some((thread, said)) = named else { return Ok(unknown()) };
        let told = self.talk().ask(&thread, ThreadRoute::GetMessage(said.clone()), &[], None, "").await?;
        let Some(row) = found(told)? else { return Ok(unknown()) };
        let row = row.get("message").unwrap_or(&row);
        if text_of(row, "role") != "user" {
            return Ok(unknown());
        }
        match message.method.as_str() {
            "tasks/update" => {
                let Some(Value::Object(responses)) = message.params.get("inputResponses") else {
                    return Ok(invalid(message, "`inputResponses` is an object."));
                };
                let waits: Vec<(String, String)> =
                    responses.keys().map(|key| (key.clone(), key.clone())).collect();
                self.react(&thread, Answers { waits: &waits, responses: Some(responses) }).await?;
                Ok(RequestOutcome::Result(json!({})))
            }
            "tasks/cancel" => {
                if let Some(run) = self.run_of(&thread, &said).await? {
                    let body = json!({ "run": run }).to_string();
                    good(self.talk().ask(&thread, ThreadRoute::Stop, &[], None, &body).await?)?;
                }
                Ok(RequestOutcome::Result(json!({})))
            }
            _ => {
                let created_us = row.get("created_at").and_then(Value::as_i64).unwrap_or(0);
                let task = Task { id: id.to_owned(), created_us, now_us: now_us() };
                let settings = self.settings(message, Shape::Task(task));
                let settings = Settings { thread, message: said.clone(), ..settings };
                self.follow(FeedTarget::Message(said), ResponseForm::Now, settings).await
            }
        }
    }

    /// The run that received a message.
    async fn run_of(&self, thread: &str, message: &str) -> Step<Option<String>> {
        let threads = self.env.threads().map_err(|error| Error::internal(thrown(&error)))?;
        let query = Query::default();
        let wanted = EventsRequest { thread, caller: self.caller.clone(), query: &query, origin: None };
        Ok(events::run_alone(&threads, wanted, FeedTarget::Message(message.to_owned())).await?)
    }

    /// The thread that the arguments name, by its id or its key.
    fn named(&self, args: &mut Body) -> Step<String> {
        let named = args.string("thread")?.ok_or_else(|| Error::missing("thread"))?;
        if thread_id::is_valid(&named) {
            return Ok(named);
        }
        thread_id::check_key(&named).map_err(|error| error.at("thread"))?;
        Ok(thread_id::of_key(self.caller.owner(), &named))
    }

    /// Sends a message to an agent, once per call id of the client's runtime.
    async fn say(&self, message: &Message, agent: &Agent, args: Map<String, Value>) -> Step<StoredMessage> {
        let mut args = Body::of(args).known(&["message", "thread"])?;
        let text = args.string("message")?.ok_or_else(|| Error::missing("message"))?;
        let thread = match args.string("thread")? {
            Some(named) => self.conversation(&named, agent).await?,
            None => self.new_thread(message, &agent.name, &json!({ "agent_id": agent.name })).await?,
        };
        let body = json!({ "role": "user", "content": text }).to_string();
        let posted = self.post_once(message, &thread, ThreadRoute::PostMessage, &body).await?;
        let said = text_of(&posted, "messageId");
        if said.is_empty() {
            return Err(Stopped::Error(Error::internal("a message was stored and has no id")));
        }
        Ok(StoredMessage {
            message: said.to_owned(),
            began: posted.get("run").and_then(Value::as_str).map(str::to_owned),
            created_us: posted.pointer("/message/created_at").and_then(Value::as_i64).unwrap_or_else(now_us),
            thread,
        })
    }

    /// Sends a request that begins a run to a thread, once per call id of the client's runtime.
    pub(crate) async fn post_once(
        &self,
        message: &Message,
        thread: &str,
        route: ThreadRoute,
        body: &str,
    ) -> Step<Value> {
        // Otherwise a generated key, so that the request can be repeated if it is lost on the way.
        let key = message.call().map_or_else(|| hex(&random()), str::to_owned);
        let trace = |name: &str| {
            message.meta(name).and_then(Value::as_str).map(|value| (name.to_owned(), value.to_owned()))
        };
        let request = ThreadRequest {
            thread_id: thread.to_owned(),
            life: None,
            caller: self.caller.clone(),
            route,
            query: Query::default(),
            idempotency_key: Some(format!("mcp:{key}")),
            headers: ["traceparent", "tracestate"].into_iter().filter_map(trace).collect(),
            body: String::new(),
        };
        let told = match router::call_thread(self.env, thread, &request, body).await {
            // The object was restarted and responds at once to a second call.
            Err(error) if error.code == Code::Overloaded => {
                router::call_thread(self.env, thread, &request, body).await
            }
            other => other,
        };
        good(told?)
    }

    /// Creates a thread for an agent, once per call id of the client's runtime.
    pub(crate) async fn new_thread(&self, message: &Message, agent: &str, body: &Value) -> Step<String> {
        let owner = self.caller.owner().unwrap_or_default();
        let id = message.call().map_or_else(
            || thread_id::from_random(random()),
            |call| thread_id::of_parts(&["mcp", owner, agent, call]),
        );
        good(create::create_as(self.env, self.caller.clone(), id.clone(), body.to_string()).await?)?;
        Ok(id)
    }

    /// The thread of an id or a key. Creates it for an unknown key.
    async fn conversation(&self, named: &str, agent: &Agent) -> Step<String> {
        if let Some(found) = self.talk().thread(named, agent, "thread").await? {
            return Ok(found.id);
        }
        if thread_id::is_valid(named) {
            return Err(Stopped::Error(no_thread()));
        }
        let body = json!({ "agent_id": agent.name, "key": named });
        let made = good(create::create(self.env, self.caller.clone(), None, body.to_string()).await?)?;
        Ok(text_of(&made, "threadId").to_owned())
    }

    /// Sends people's answers to the thread that waits for them.
    async fn react(&self, thread: &str, answers: Answers<'_>) -> Step<Forms> {
        let waits = self.talk().waits(thread).await?;
        let mut forms = Forms::Answered;
        for (key, id) in answers.waits {
            let named = |wait: &&Value| text_of(wait, "name") == id && text_of(wait, "state") == "open";
            let found =
                waits.iter().find(|wait| text_of(wait, "id") == id).or_else(|| waits.iter().find(named));
            let Some(wait) = found else { continue };
            match reaction(wait, answers.responses.and_then(|responses| responses.get(key))) {
                Reaction::Nothing => {}
                Reaction::Closed => forms = Forms::Closed,
                Reaction::Decided(decision) => self.decide(thread, wait, &decision).await?,
            }
        }
        Ok(forms)
    }

    /// Decides a wait once. The same decision again has no effect; another one is refused.
    async fn decide(&self, thread: &str, asked: &Value, decision: &Value) -> Step<()> {
        let wait = text_of(asked, "id");
        let route = ThreadRoute::DecideWait(wait.to_owned());
        let key = Some(format!("mcp:{wait}"));
        let told = self.talk().ask(thread, route, &[], key, &decision.to_string()).await?;
        let otherwise = || {
            let text = "This was decided otherwise already, and the first decision holds.";
            Stopped::Error(Error::new(Code::Conflict, text).hint("Read the thread with thread_get."))
        };
        let text = told.body.as_string().unwrap_or_default();
        let misfit = text.contains(&json!(Code::InvalidArgs).to_string());
        match told.status {
            // An answer that does not fit the form is requested again.
            status if status >= 400 && misfit && text_of(asked, "kind") == "elicitation" => Ok(()),
            status if status == Code::IdempotencyMismatch.status() => Err(otherwise()),
            status if status == Code::Conflict.status() => {
                // Another client was faster, with the same decision or another one.
                let route = ThreadRoute::GetWait(wait.to_owned());
                let now = good(self.talk().ask(thread, route, &[], None, "").await?)?;
                let now = now.get("wait").unwrap_or(&now);
                let made = text_of(now, "decision");
                let is_approval = text_of(now, "kind") == "approval";
                let same = is_approval && made == text_of(decision, "decision");
                // A wait that ended by itself counts as denied.
                let denied = made.is_empty() && text_of(decision, "decision") == "deny";
                if same || denied { Ok(()) } else { Err(otherwise()) }
            }
            _ => good(told).map(|_| ()),
        }
    }

    /// The seal for the states of a call, or `None` if the deployment has no secret.
    fn seal(&self, called: &[&str]) -> Option<Seal> {
        let secret = self.secret.as_deref()?;
        let principal = self.caller.scope.to_string();
        Some(Seal::new(secret, &principal, called, now_us() / SECOND_US))
    }

    pub(crate) fn settings(&self, message: &Message, shape: Shape) -> Settings {
        Settings {
            id: message.id.clone(),
            era: message.era,
            shape,
            thread: String::new(),
            message: String::new(),
            progress: message.progress(),
            forms: message.capabilities.forms,
            seal: None,
            given: Map::new(),
            elicits: None,
            caller: self.caller.clone(),
            began: None,
        }
    }

    async fn follow(&self, of: FeedTarget, how: ResponseForm, settings: Settings) -> Step<RequestOutcome> {
        let threads = self.env.threads().map_err(|error| Error::internal(thrown(&error)))?;
        let thread = settings.thread.clone();
        // A tool shows the progress that it emits itself; an agent shows the tools that it calls.
        let quiet = if matches!(settings.shape, Shape::Call(_)) { "1" } else { "0" };
        let query = Query(vec![("progress".to_owned(), quiet.to_owned())]);
        let wanted = EventsRequest {
            thread: &thread,
            caller: self.caller.clone(),
            query: &query,
            origin: self.origin,
        };
        let encoded = FeedEncoding { extra: Vec::new(), encoder: Encoder::new(Ask::new(settings)).into() };
        let answered = events::answered(&threads, self.ctx, wanted, of, how, encoded).await?;
        answered.map(RequestOutcome::Response).map_err(Stopped::Told)
    }
}

/// The seal for the next questions, and the state that the client returned.
pub(crate) type ResumeState = (Option<Seal>, Option<QuestionState>);

/// The questions and the client's answers.
struct Answers<'a> {
    /// The waits: the client's name of each, and its id or name.
    waits: &'a [(String, String)],
    responses: Option<&'a Map<String, Value>>,
}

/// The outcome of answered forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forms {
    Answered,
    /// A form was closed. It is not shown again at once.
    Closed,
}

/// The purpose for which ids of requests on streams are signed.
const ELICITED: &[&str] = &["elicitation/create"];

/// The prefix of ids of tasks.
const TASK: &str = "task_";

fn new_task(said: &StoredMessage) -> Value {
    let named = response_id(&said.thread, &said.message);
    let id = format!("{TASK}{}", named.trim_start_matches("resp_"));
    let mut task = shown(&Task { id, created_us: said.created_us, now_us: said.created_us }, "working");
    if let Some(fields) = task.as_object_mut() {
        fields.insert("resultType".into(), "task".into());
    }
    task
}
