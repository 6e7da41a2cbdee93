//! A thread in a simulated world, and the clients that talk to it; its family are more such threads ([`Sim::of`]). Clients behave as the documents tell them to: they
//! repeat a request whose answer was lost, with the same idempotency key, and reconnect streams where they stood.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bobbin::access::Caller;
use bobbin::definitions::Catalog;
use bobbin::engine::ThreadSlot;
use bobbin::engine::feed::{Continuation, FeedStart, FeedTarget};
use bobbin::host::Filter;
use bobbin::request::{
    Matched, Query, RawResponse, Reply, Route, StreamRoute, Target, ThreadRequest, ThreadRoute,
};
use bytes::Bytes;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use crate::files::{Got, Sent};
use crate::host::upload::nothing;
use crate::host::{Counters, Listener, Lost, Member, Object, ROOT, SECOND_US, World, open};
use crate::memory::OpenedMemory;

/// The id of the thread that every simulation begins with.
pub const THREAD: &str = ROOT;
/// How often a client repeats a request before it gives up.
pub(crate) const TRIES: usize = 40;

pub(crate) struct Opened(pub(crate) ThreadSlot);

impl Object for Opened {
    fn alarm(self: Rc<Self>) -> LocalBoxFuture<'static, ()> {
        Box::pin(self.0.thread().alarm())
    }
    fn call(self: Rc<Self>, text: String) -> LocalBoxFuture<'static, Reply> {
        let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
        let request: ThreadRequest = serde_json::from_str(head).expect("a call of a thread");
        Box::pin(self.0.thread().handle(ThreadRequest { body: body.to_owned(), ..request }))
    }
    fn serve(self: Rc<Self>, request: ThreadRequest<StreamRoute>) -> LocalBoxFuture<'static, RawResponse> {
        Box::pin(self.0.thread().serve(request, nothing()))
    }
    fn any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

/// A message that was accepted with a 2xx.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Its public id.
    pub id: String,
    /// What was posted.
    pub body: Value,
    /// Its idempotency key.
    pub key: String,
    /// When it was first sent and when its answer came.
    pub span_us: (i64, i64),
}

/// What a client saw of a request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// HTTP status.
    pub status: u16,
    /// The body, `null` when there is none.
    pub body: Value,
    /// `Retry-After`, seconds.
    pub retry_after: Option<u32>,
}

/// A request to an endpoint.
#[derive(Clone)]
pub struct Ask {
    /// Its method.
    pub method: &'static str,
    /// Its path below the thread, with its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, in pieces.
    pub body: Vec<Bytes>,
    /// Who asks.
    pub caller: Caller,
}

impl Ask {
    /// An admin's request without a body.
    pub fn of(method: &'static str, path: &str) -> Ask {
        Ask { method, path: path.into(), headers: Vec::new(), body: Vec::new(), caller: admin() }
    }
}

/// What a client saw of a request to an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body; empty when there is none.
    pub body: Bytes,
}

impl Answered {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// A thread in its world. A clone is the same thread.
#[derive(Clone)]
pub struct Sim {
    /// The world.
    pub world: Rc<World>,
    /// The thread's object.
    pub member: Rc<Member>,
    /// The other threads that were looked at, by id.
    others: Rc<RefCell<BTreeMap<String, Sim>>>,
    /// Messages that were accepted, in the order of their answers.
    pub accepted: Rc<RefCell<Vec<Accepted>>>,
    /// What the next life of the object is opened with.
    pub catalog: Rc<RefCell<Rc<Catalog>>>,
    keys: Rc<Cell<u32>>,
    /// What the thread is created with.
    pub born: Rc<RefCell<Value>>,
    /// Headers of every request.
    pub headers: Rc<RefCell<Vec<(String, String)>>>,
    /// Who sends them.
    pub caller: Rc<RefCell<Caller>>,
}

impl Sim {
    /// A thread that does not exist yet, with these definitions.
    pub fn new(seed: u64, catalog: &Value) -> Sim {
        let catalog = Rc::new(Catalog::from_json(&catalog.to_string()).expect("the test's catalog is valid"));
        let catalog = Rc::new(RefCell::new(catalog));
        let current = catalog.clone();
        let world = World::new(seed, move |host| {
            let catalog = current.borrow().clone();
            match host.name().starts_with("o:") || host.name().starts_with("i/") {
                true => Rc::new(OpenedMemory::new(host, catalog)) as Rc<dyn Object>,
                false => Rc::new(Opened(open(host, catalog))),
            }
        });
        world.watch(watch);
        let born = json!({ "agent_id": "helper", "tags": ["t"] });
        Sim {
            member: world.root(),
            world,
            others: Rc::default(),
            accepted: Rc::default(),
            catalog,
            keys: Rc::default(),
            born: Rc::new(RefCell::new(born)),
            headers: Rc::default(),
            caller: Rc::new(RefCell::new(admin())),
        }
    }

    /// Another thread of the same world, by its id; always the same `Sim`.
    pub fn of(&self, id: &str) -> Sim {
        if id == self.member.id {
            return self.clone();
        }
        let known = self.others.borrow().get(id).cloned();
        known.unwrap_or_else(|| {
            let other = Sim { member: self.world.member(id), accepted: Rc::default(), ..self.clone() };
            self.others.borrow_mut().insert(id.into(), other.clone());
            other
        })
    }

    /// A client of the same thread whose requests have this header.
    pub fn with_header(&self, name: &str, value: &str) -> Sim {
        Sim { headers: Rc::new(RefCell::new(vec![(name.to_owned(), value.to_owned())])), ..self.clone() }
    }

    /// Drops everything, so that the cycles of a finished simulation do not stay in memory.
    pub fn dispose(&self) {
        let others = std::mem::take(&mut *self.others.borrow_mut());
        drop(others);
        self.world.dispose();
    }

    /// The threads that there are, in the order in which they were first addressed.
    pub fn family(&self) -> Vec<Sim> {
        let members = self.world.members().into_iter().filter(|member| member.exists());
        members.map(|member| self.of(&member.id)).collect()
    }

    /// Replaces the definitions: a deployment. The object is opened anew.
    pub fn deploy(&self, catalog: &Value) {
        let catalog = Catalog::from_json(&catalog.to_string()).expect("the test's catalog is valid");
        *self.catalog.borrow_mut() = Rc::new(catalog);
        self.world.kill();
    }

    /// One request, once.
    pub async fn once(
        &self,
        route: ThreadRoute,
        query: &[(&str, &str)],
        key: Option<&str>,
        body: String,
    ) -> Result<Seen, Lost> {
        let request = ThreadRequest {
            thread_id: self.member.id.clone(),
            life: None,
            caller: self.caller.borrow().clone(),
            route,
            query: Query(query.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()),
            idempotency_key: key.map(str::to_owned),
            headers: self.headers.borrow().clone(),
            body,
        };
        let reply = self
            .world
            .enter_at(&self.member, "request", move |object| async move {
                let thread = object.any().downcast::<Opened>().expect("the object is a thread").0.thread();
                thread.handle(request).await
            })
            .await?;
        let body = reply.body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap());
        Ok(Seen { status: reply.status, body, retry_after: reply.retry_after })
    }

    /// One request, repeated until it is answered: a lost connection, 500 and 503 are tried again.
    pub async fn insist(
        &self,
        route: ThreadRoute,
        query: &[(&str, &str)],
        key: Option<&str>,
        body: String,
    ) -> Seen {
        let mut last = None;
        for _ in 0..TRIES {
            match self.once(route.clone(), query, key, body.clone()).await {
                Ok(seen) if seen.status < 500 => return seen,
                other => last = Some(other),
            }
            let pause = 50_000 + self.world.below(SECOND_US as usize) as i64;
            self.world.pause(pause).await;
        }
        self.world.fail(format!("{route:?} was not answered in {TRIES} tries: {last:?}"));
        Seen { status: 599, body: Value::Null, retry_after: None }
    }

    /// One request to an endpoint, once.
    pub async fn reach(&self, ask: Ask) -> Result<Answered, Lost> {
        let target = Target::of(&format!("https://host/api/threads/{}{}", self.member.id, ask.path));
        let Ok(Matched { route: Route::Stream(_, route), .. }) = Route::of(ask.method, &target) else {
            panic!("{} {} is no route", ask.method, ask.path);
        };
        let sent = Sent {
            caller: ask.caller,
            query: target.query.0,
            headers: ask.headers,
            pieces: ask.body,
            ..Sent::new(route)
        };
        let Got { status, headers, body } = self.serve_once(sent).await?;
        Ok(Answered { status, headers, body: body.expect("an answer that is whole").into() })
    }

    /// The same, repeated until it is answered.
    pub async fn reach_surely(&self, ask: Ask) -> Answered {
        for _ in 0..TRIES {
            match self.reach(ask.clone()).await {
                Ok(answered) if answered.status < 500 => return answered,
                _ => self.world.pause(50_000 + self.world.below(SECOND_US as usize) as i64).await,
            }
        }
        panic!("{} {} was not answered in {TRIES} tries", ask.method, ask.path);
    }

    /// Creates the thread.
    pub async fn create(&self) {
        let body = self.born.borrow().to_string();
        let seen = self.insist(ThreadRoute::Create, &[], None, body).await;
        assert!(seen.status / 100 == 2, "the thread could not be created: {seen:?}");
    }

    /// A key that no other message has.
    pub fn key(&self) -> String {
        self.keys.set(self.keys.get() + 1);
        format!("key-{}", self.keys.get())
    }

    /// Posts a message until it is answered; its answer.
    pub async fn post(&self, body: Value) -> Seen {
        let key = self.key();
        self.post_with(&key, body, &[]).await
    }

    /// Posts with a key and a query.
    pub async fn post_with(&self, key: &str, body: Value, query: &[(&str, &str)]) -> Seen {
        let start = self.world.now_us();
        let seen = self.insist(ThreadRoute::PostMessage, query, Some(key), body.to_string()).await;
        if seen.status == 202 {
            let id = seen.body["messageId"].as_str().unwrap_or_default().to_owned();
            let span_us = (start, self.world.now_us());
            let known = self.accepted.borrow().iter().any(|a| a.key == key);
            if !known {
                self.accepted.borrow_mut().push(Accepted { id, body, key: key.into(), span_us });
            }
        }
        seen
    }

    /// A user's message; it must be accepted.
    pub async fn send(&self, text: &str) -> Accepted {
        let seen = self.post(json!({ "role": "user", "content": text })).await;
        assert_eq!(seen.status, 202, "“{text}” was not accepted: {}", seen.body);
        self.accepted.borrow().last().cloned().expect("it was just accepted")
    }

    /// Waits for the outcome of an accepted message.
    pub async fn outcome(&self, message: &Accepted) -> Value {
        let seen = self
            .insist(
                ThreadRoute::PostMessage,
                &[("wait", "true")],
                Some(&message.key),
                message.body.to_string(),
            )
            .await;
        assert_eq!(seen.status, 200, "no outcome for {}: {}", message.body, seen.body);
        seen.body
    }

    /// A user's message and the outcome of its run.
    pub async fn ask(&self, text: &str) -> Value {
        let message = self.send(text).await;
        self.outcome(&message).await
    }

    /// `POST …/stop`.
    pub async fn stop(&self) -> Seen {
        self.insist(ThreadRoute::Stop, &[], None, String::new()).await
    }

    /// `POST …/continue`.
    pub async fn go_on(&self) -> Seen {
        self.insist(ThreadRoute::Continue, &[], None, "{}".into()).await
    }

    /// `POST …/terminate`.
    pub async fn terminate(&self) -> Seen {
        self.insist(ThreadRoute::Terminate, &[], None, String::new()).await
    }

    /// Waits until something holds, looking every 5 ms.
    pub async fn until(&self, what: &str, holds: impl Fn(&Sim) -> bool) {
        for _ in 0..200_000 {
            if holds(self) {
                return;
            }
            self.world.pause(5_000).await;
        }
        // After a failure it may be that it never comes to this; then the story goes on without.
        assert!(!self.world.faults.borrow().fired.is_empty(), "never: {what}");
    }

    /// Waits until so many requests reached a model.
    pub async fn until_requests(&self, n: usize) {
        self.until("model requests", |sim| sim.world.outside.requests.borrow().len() >= n).await;
    }

    /// Waits until so many tool executions began.
    pub async fn until_executions(&self, n: usize) {
        self.until("executions", |sim| sim.world.outside.executions.borrow().len() >= n).await;
    }

    /// Waits until the object is idle, and lets the platform drop it from memory.
    pub async fn evict(&self) {
        self.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
        self.world.evict();
    }

    /// Opens a stream.
    pub async fn listen(&self, filter: Filter, last: Option<&str>) -> Result<Rc<Listener>, Lost> {
        let (world, member) = (self.world.clone(), self.member.clone());
        let last = last.map(str::to_owned);
        self.world
            .enter_at(&self.member, "request", move |object| async move {
                let thread = object.any().downcast::<Opened>().expect("the object is a thread").0.thread();
                let frames = thread.listen(&admin(), &filter, last.as_deref());
                let frames = frames.expect("the stream opens");
                let listener =
                    Rc::new(Listener { filter, frames: RefCell::new(frames), open: Cell::new(true) });
                let joined = listener.clone();
                // The socket joins in the same stretch of code: no frame falls between the two.
                world.when_durable(move || member.listeners.borrow_mut().push(joined));
                listener
            })
            .await
    }

    /// Follows one run; how the feed goes on behind what is there already.
    pub async fn follow(
        &self,
        of: FeedTarget,
        last: Option<&str>,
    ) -> Result<(Rc<Listener>, Continuation), Lost> {
        let (world, member) = (self.world.clone(), self.member.clone());
        let last = last.map(str::to_owned);
        let filter = Filter { events: true, waits: true, ..Filter::default() };
        self.world
            .enter_at(&self.member, "request", move |object| async move {
                let thread = object.any().downcast::<Opened>().expect("the object is a thread").0.thread();
                let start = thread.follow(&admin(), &filter, &of, last.as_deref());
                let FeedStart { frames, filter, then, .. } = start.expect("the feed opens");
                let open = Cell::new(then == Continuation::Live);
                let listener = Rc::new(Listener { filter, frames: RefCell::new(frames), open });
                let joined = listener.clone();
                world.when_durable(move || member.listeners.borrow_mut().push(joined));
                (listener, then)
            })
            .await
    }

    /// Any `GET`.
    pub async fn get(&self, route: ThreadRoute, query: &[(&str, &str)]) -> Value {
        let seen = self.insist(route.clone(), query, None, String::new()).await;
        assert_eq!(seen.status, 200, "{route:?}: {}", seen.body);
        seen.body
    }

    /// The whole history, oldest first, silent rows included.
    pub async fn history(&self) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let offset = all.len().to_string();
            let query =
                [("limit", "500"), ("offset", offset.as_str()), ("order", "asc"), ("includeSilent", "true")];
            let page = self.get(ThreadRoute::ListMessages, &query).await;
            let rows = page["messages"].as_array().cloned().unwrap_or_default();
            let none = rows.is_empty();
            all.extend(rows);
            if none || page["hasMore"] != true {
                return all;
            }
        }
    }

    /// What the database spent while `work` ran. Statements on the outbox are apart (docs/performance.md).
    pub async fn spent<T>(&self, work: impl Future<Output = T>) -> (T, Counters) {
        self.meter();
        let value = work.await;
        (value, self.metered())
    }

    /// Starts to count.
    pub fn meter(&self) {
        *self.member.database.log.borrow_mut() = Some(Vec::new());
    }

    /// What was spent since [`Sim::meter`]; statements on the outbox are apart.
    pub fn metered(&self) -> Counters {
        let log = self.member.database.log.borrow_mut().take().unwrap_or_default();
        let mut spent = Counters::default();
        for (_, read, written) in log.iter().filter(|(statement, _, _)| !statement.contains("outbox")) {
            spent.statements += 1;
            spent.read += read;
            spent.written += written;
        }
        if std::env::var_os("BOBBIN_SQL").is_some() {
            for (statement, read, written) in &log {
                let start: String = statement.chars().take(150).collect();
                eprintln!("{read:4} read {written:4} written  {start}");
            }
            eprintln!("{spent:?}");
        }
        spent
    }
}

/// Holds after every await of the process (docs/durability.md): what is due, and what is runnable, has an alarm in
/// time, or its handler runs.
fn watch(world: &World, member: &Member) {
    crate::memory::watch(world, member);
    if !["runs", "effects", "children"].iter().all(|table| member.has_table(table)) {
        return;
    }
    let due: Vec<String> = member.database.ask(
        "SELECT json_array(what, at) FROM (SELECT 'an effect' AS what, min(at_us) AS at FROM effects WHERE open > 0
         UNION ALL SELECT 'a letter', min(due_us) FROM outbox
         UNION ALL SELECT 'a child', min(due_us) FROM children WHERE open = 1) WHERE at IS NOT NULL",
    );
    let due = due.into_iter().chain(jobs(world, member));
    for due in due {
        let (what, due_us): (String, i64) = serde_json::from_str(&due).unwrap();
        let alarm = member.alarm.get();
        let in_time = alarm.due_us.is_some_and(|at| at <= due_us.max(world.now_us()));
        if !alarm.running && !alarm.retrying() && !in_time {
            world.fail(format!("{what} is due at {due_us}, and the alarm is {alarm:?}"));
        }
    }
    if member.has_table("waits") {
        let ends: Vec<Option<i64>> = member.database.ask("SELECT min(expires_us) FROM waits WHERE open = 1");
        let alarm = member.alarm.get();
        if let Some(end) = ends.first().copied().flatten()
            && !alarm.running
            && !alarm.retrying()
            && alarm.due_us.is_none_or(|at| at > end.max(world.now_us()))
        {
            world.fail(format!("a wait ends at {end}, and the alarm is {alarm:?}"));
        }
        let loose: Vec<i64> = member.database.ask(
            "SELECT id FROM waits WHERE open = 1 AND run IS NOT NULL AND run NOT IN (SELECT id FROM runs WHERE ended_us IS NULL)
                OR open = 1 AND run IS NULL AND kind <> 'budget'",
        );
        if !loose.is_empty() {
            world.fail(format!("the waits {loose:?} are open, and their runs are over"));
        }
        let forgotten: Vec<i64> = member.database.ask(
            "SELECT id FROM runs WHERE phase = 'parked_model' AND id NOT IN (SELECT run FROM waits WHERE open = 1)",
        );
        if !forgotten.is_empty() {
            world.fail(format!("the runs {forgotten:?} are parked, and wait for nothing"));
        }
        let unknown: Vec<i64> = member.database.ask("SELECT 1 FROM meta WHERE wait_next = 1");
        if !unknown.is_empty() {
            world.fail("there are waits, and the thread does not know of their table".to_owned());
        }
    }
    let runnable: Vec<Option<i64>> = member.database.ask(
        "SELECT coalesce(resume_us, 0) FROM runs WHERE id = (SELECT max(id) FROM runs) \
         AND phase NOT IN ('ended', 'parked', 'parked_start', 'parked_model')",
    );
    let Some(resume_us) = runnable.first().copied().flatten() else { return };
    let alarm = member.alarm.get();
    let in_time = |due: i64| due <= resume_us.max(world.now_us());
    if !alarm.running && !alarm.retrying() && !alarm.due_us.is_some_and(in_time) {
        world.fail(format!("a run is unfinished, and the alarm is {alarm:?} at {}", world.now_us()));
    }
}

/// When the first job is due; there are as many as the thread counts.
fn jobs(world: &World, member: &Member) -> Option<String> {
    let made = member.has_table("jobs");
    let counted: i64 = member.database.ask("SELECT jobs FROM meta").first().copied().unwrap_or(0);
    if !made {
        if counted != 0 {
            world.fail(format!("{counted} jobs are counted, and there is no table of them"));
        }
        return None;
    }
    let jobs: Vec<i64> = member.database.ask("SELECT count(*) FROM jobs");
    if jobs != [counted] {
        world.fail(format!("{counted} jobs are counted, and there are {jobs:?}"));
    }
    let due: Vec<String> = member
        .database
        .ask("SELECT json_array('the job ' || kind, due_us) FROM jobs ORDER BY due_us LIMIT 1");
    due.into_iter().next()
}

/// A caller who may do everything.
pub(crate) fn admin() -> Caller {
    Caller::admin()
}

/// A chat-completions model, as the catalog names it.
pub fn model(id: &str) -> Value {
    json!({ "provider": "openai", "model": id, "baseUrl": crate::host::MODEL_URL })
}

/// A native tool without arguments that matter.
pub fn native(idempotent: bool) -> Value {
    json!({ "description": "Works.", "args": { "type": "object", "properties": { "n": { "type": "integer" } } },
        "run": { "native": "work" }, "idempotent": idempotent })
}

/// The definitions most tests run on: agent `helper`, prompt `p`, model `m`, and these tools.
pub fn catalog(tools: &Value) -> Value {
    let names: Vec<&String> = tools.as_object().map(|tools| tools.keys().collect()).unwrap_or_default();
    json!({
        "models": { "m": model("m") },
        "prompts": { "p": { "toolDescription": "Helps.", "prompt": "You help.", "model": "m",
            "includeChat": true, "includePastTools": true, "tools": names } },
        "tools": tools,
        "agents": { "helper": { "sideA": { "prompt": "p" } } },
    })
}
