//! The durability contract (docs/durability.md), as it can be checked from outside after any history of failures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use bobbin::definitions::{Implementation, Tier, Tool};
use bobbin::request::{ThreadRoute, thread_id};
use serde_json::Value;

use crate::books::{lent, paid};
use crate::family;
use crate::host::{DAY_US, Fault, TOOL_URL};
use crate::sim::Sim;

/// What a scenario expects of the contract's open numbers.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Outcomes that a message may get.
    pub outcomes: Vec<&'static str>,
    /// Requests to models beyond the undisturbed run, besides one per failure.
    pub more_requests: usize,
    /// Whether each completed run has exactly one reply without calls.
    pub one_answer: bool,
    /// Whether requests may be open at the same time (a stopped flow lets go of its request a moment later).
    pub overlap: bool,
    /// Whether alarms may stay set at the end.
    pub alarm_may_stay: bool,
    /// Whether calls may wait for children at the end.
    pub may_wait: bool,
    /// Whether calls and results pair in storage.
    pub pairs: bool,
    /// Whether texts repeat on purpose.
    pub texts_repeat: bool,
    /// Attempts at one occurrence of an effect.
    pub effect_attempts: usize,
    /// Times an idempotent tool may run with one key.
    pub idempotent_runs: usize,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            outcomes: vec!["completed"],
            more_requests: 0,
            one_answer: true,
            overlap: false,
            alarm_may_stay: false,
            may_wait: false,
            pairs: true,
            texts_repeat: false,
            effect_attempts: bobbin::limits::EFFECT_ATTEMPTS as usize,
            idempotent_runs: bobbin::limits::IDEMPOTENT_RUNS as usize,
        }
    }
}

/// What is seen of a thread at its end.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every message, oldest first.
    pub messages: Vec<Value>,
    /// The outcome of each accepted message, by its id.
    pub outcomes: BTreeMap<String, Value>,
    /// Failures that befell the process.
    pub faults: usize,
    /// The other threads, by their ids.
    pub family: BTreeMap<String, History>,
}

impl History {
    /// Texts of the messages with this role, status rows left out.
    pub fn texts<'a>(&'a self, role: &'a str) -> Vec<&'a str> {
        self.of(role).filter_map(|message| message["content"].as_str()).collect()
    }

    /// Messages with this role, status rows left out.
    pub fn of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Value> {
        self.messages.iter().filter(move |m| m["role"] == role && m["metadata"]["status_kind"].is_null())
    }

    /// Status rows of a kind.
    pub fn statuses(&self, kind: &str) -> Vec<&Value> {
        self.messages.iter().filter(|m| m["metadata"]["status_kind"] == kind).collect()
    }

    /// Calls of a message: id and name.
    pub fn calls(message: &Value) -> Vec<(String, String)> {
        let parsed: Value = match &message["tool_calls"] {
            Value::String(text) => serde_json::from_str(text).unwrap(),
            other => other.clone(),
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        parsed
            .as_array()
            .map(|calls| calls.iter().map(|c| (text(&c["id"]), text(&c["function"]["name"]))).collect())
            .unwrap_or_default()
    }

    /// Replies without calls: what a person reads.
    pub fn answers(&self) -> Vec<&str> {
        self.of("assistant")
            .filter(|m| History::calls(m).is_empty())
            .filter_map(|m| m["content"].as_str())
            .filter(|text| !text.trim().is_empty())
            .collect()
    }
}

/// Looks at a thread that has come to rest, and at its family, and says everything that breaks the contract.
pub fn check(sim: &Sim, terms: &Terms, calm_requests: Option<usize>) -> (History, Vec<String>) {
    let mut broken = Vec::new();
    let world = &sim.world;
    let members = world.members().len();
    let (faults, again) = {
        let faults = world.faults.borrow();
        let again = |fault: Fault| if fault.is_of_all() { members } else { 1 };
        (faults.fired.len(), faults.fired.iter().map(|(_, fault)| again(*fault)).sum::<usize>())
    };
    world.faults.borrow_mut().plan(Box::new(|_| None));
    let requests = world.outside.requests.borrow().len();
    if let Some(calm) = calm_requests
        && requests > calm + terms.more_requests + again
    {
        broken.push(format!("{requests} model requests, {calm} without the {faults} failures"));
    }
    if world.open_calls.get() > 0 {
        broken.push(format!("{} calls between threads are still open", world.open_calls.get()));
    }
    let mut history = thread(sim, terms, faults, &mut broken);
    for other in sim.family().iter().filter(|other| other.member.place > 0) {
        let mut wrong = Vec::new();
        let seen = thread(other, terms, faults, &mut wrong);
        broken.extend(wrong.into_iter().map(|wrong| format!("thread {}: {wrong}", other.member.id)));
        history.family.insert(other.member.id.clone(), seen);
    }
    family::check(sim, terms, &mut broken);
    quiet(sim, terms, requests, &mut broken);
    broken.extend(world.failures.borrow_mut().drain(..));
    (history, broken)
}

/// What holds of each thread for itself.
fn thread(sim: &Sim, terms: &Terms, faults: usize, broken: &mut Vec<String>) -> History {
    let member = &sim.member;
    if member.most_open.get() > 1 && !terms.overlap {
        broken.push(format!("{} requests were open at once: two flows?", member.most_open.get()));
    }
    if member.open_requests.get() > 0 {
        broken.push(format!("{} requests are still open", member.open_requests.get()));
    }
    let looking = sim.clone();
    let accepted = sim.accepted.borrow().clone();
    let known = accepted.clone();
    let (messages, outcomes, diagnostics, runs) = sim.world.drive(async move {
        let mut outcomes = BTreeMap::new();
        for message in &known {
            outcomes.insert(message.id.clone(), looking.outcome(message).await);
        }
        let runs = traced_runs(&looking).await;
        (looking.history().await, outcomes, looking.get(ThreadRoute::Diagnostics, &[]).await, runs)
    });
    runs.iter().for_each(|run| traced(run, broken));
    let history = History { messages, outcomes, faults, family: BTreeMap::new() };
    delivery(&history, &accepted, terms, broken);
    if terms.pairs {
        pairing(&history, broken);
    }
    executions(sim, &history, terms, broken);
    attempts(sim, broken);
    paid(sim, broken);
    lent(sim, broken);
    summaries(sim, broken);
    open_calls(sim, broken);
    open_waits(sim, broken);
    if terms.one_answer && member.place == 0 {
        let completed: BTreeSet<&str> = history
            .outcomes
            .values()
            .filter(|outcome| outcome["outcome"] == "completed")
            .filter_map(|outcome| outcome["run"].as_str())
            .collect();
        let answers = history.answers();
        if answers.len() != completed.len() {
            broken.push(format!("{} completed runs, answers: {answers:?}", completed.len()));
        }
    }
    let queue = diagnostics["queue"].as_u64().or_else(|| diagnostics["queued"].as_u64());
    if queue.is_some_and(|queue| queue > 0) && !terms.outcomes.contains(&"stopped") {
        broken.push(format!("the queue is not empty: {diagnostics}"));
    }
    history
}

/// What came of each run, newest first, with its trace. Of a thread that is gone there are none.
async fn traced_runs(sim: &Sim) -> Vec<Value> {
    let listed = sim.get(ThreadRoute::ListRuns, &[("limit", "100")]).await;
    let mut runs = Vec::new();
    for run in listed["runs"].as_array().into_iter().flatten() {
        let id = run["run"].as_str().unwrap_or_default().to_owned();
        runs.push(sim.get(ThreadRoute::GetRun(id), &[("trace", "1")]).await);
    }
    runs
}

/// The endings that docs/http.md lists, by their outcome. A run of any simulation that ends otherwise breaks the contract.
pub fn endings() -> &'static BTreeSet<String> {
    static LISTED: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let page = include_str!("../../docs/http.md");
        let rows = ["| `completed` | `stop", "| `failed` | `session", "| `stopped` | `stopped_by"];
        let rows = page.lines().filter(|line| rows.iter().any(|start| line.starts_with(start)));
        let listed = rows.map(|row| row.splitn(3, '|').nth(2).unwrap().split(';').next().unwrap());
        listed.flat_map(|listed| listed.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
    });
    &LISTED
}

/// A run has a status that fits its outcome, and a trace with one beginning, and one end if it is over.
fn traced(run: &Value, broken: &mut Vec<String>) {
    let id = &run["run"];
    let status = match run["outcome"].as_str() {
        Some("completed") => "ok",
        Some("failed" | "stopped") => "error",
        Some("parked") => "paused",
        _ => "running",
    };
    if run["status"] != status || (status == "error") == run["error"].is_null() {
        broken.push(format!("{id} has the status {}, its outcome is {}", run["status"], run["outcome"]));
    }
    if run["outcome"] == "failed" && run["message"]["metadata"]["status_kind"] != "run_failed" {
        broken.push(format!("{id} failed, and says {}", run["message"]));
    }
    let kinds: Vec<&str> =
        run["trace"].as_array().into_iter().flatten().filter_map(|entry| entry["kind"].as_str()).collect();
    let times = |wanted: &str| kinds.iter().filter(|kind| **kind == wanted).count();
    let over = usize::from(matches!(status, "ok" | "error"));
    let last = run["trace"].as_array().and_then(|trace| trace.last());
    if over == 1
        && last.is_none_or(|end| end["data"]["reason"] != run["reason"] || end["data"]["status"] != status)
    {
        broken.push(format!("{id} ended with {}, its trace with {last:?}", run["reason"]));
    }
    let begins = kinds.first() == Some(&"run.start") && times("run.start") == 1;
    let ends = times("run.end") == over && (over == 0 || kinds.last() == Some(&"run.end"));
    let (well, badly) = (usize::from(status == "ok"), usize::from(status == "error"));
    if !begins || !ends || times("run.success") != well || times("run.error") != badly {
        broken.push(format!("the trace of {id}, which is {status}: {kinds:?}"));
    }
    let open = times("run.paused") as i64 - times("run.resumed") as i64;
    if open < 0
        || (status == "ok" && open != 0)
        || (status == "paused" && run["waits"] == Value::Array(vec![]))
    {
        broken.push(format!("{id}, which is {status}, waits for {}, its trace: {kinds:?}", run["waits"]));
    }
    if run["truncated"] == false && run["usage"]["modelCalls"] != times("model.attempt") {
        broken.push(format!("{id} has used {}, its trace: {kinds:?}", run["usage"]));
    }
}

/// Every accepted message is there once, in order, with one outcome.
fn delivery(history: &History, accepted: &[crate::sim::Accepted], terms: &Terms, broken: &mut Vec<String>) {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut texts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let said = |message: &Value| format!("{} {}", message["role"], message["content"]);
    for (place, message) in history.messages.iter().enumerate() {
        places.entry(message["id"].as_str().unwrap_or_default()).or_default().push(place);
        texts.entry(said(message)).or_default().0 += 1;
    }
    for message in accepted {
        texts.entry(said(&message.body)).or_default().1 += 1;
    }
    let place = |id: &str| places.get(id).and_then(|places| places.first());
    for message in accepted {
        let times = places.get(message.id.as_str()).map_or(0, Vec::len);
        let (same, posted) = texts[&said(&message.body)];
        if times != 1 || (same != posted && !terms.texts_repeat) {
            broken.push(format!("{}: {times} times by its id, {same} times by its text", message.body));
        }
        let outcome = &history.outcomes[&message.id];
        if !terms.outcomes.iter().any(|allowed| outcome["outcome"] == *allowed) {
            broken.push(format!("{}: its outcome is {outcome}", message.body));
        }
        let row = place(&message.id).map(|place| &history.messages[*place]);
        if row.is_some_and(|row| row["status"] == "pending") && !terms.outcomes.contains(&"stopped") {
            broken.push(format!("{} is still queued", message.body));
        }
    }
    // A message that was answered before another was sent comes before it.
    for (n, message) in accepted.iter().enumerate() {
        let later = accepted[n + 1..].iter().filter(|later| message.span_us.1 < later.span_us.0);
        for later in later.filter(|later| place(&message.id) > place(&later.id)) {
            broken.push(format!("{} comes after {}", message.body, later.body));
        }
    }
}

/// Calls and results pair in the stored history.
fn pairing(history: &History, broken: &mut Vec<String>) {
    let mut open: Vec<String> = Vec::new();
    for message in &history.messages {
        // A tool that code has queued and that waits has no result yet.
        if message["depth"] != 0 || message["status"] == "pending" {
            continue;
        }
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
                if open.first() == Some(&id) {
                    open.remove(0);
                } else {
                    broken.push(format!("the result of {id} is not where it belongs"));
                }
            }
            Some("assistant" | "user")
                if message["role"] == "assistant" || !message["tool_calls"].is_null() =>
            {
                if !open.is_empty() {
                    broken.push(format!("calls without results: {}", open.join(", ")));
                }
                open = History::calls(message).into_iter().map(|(id, _)| id).collect();
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        broken.push(format!("calls without results at the end: {}", open.join(", ")));
    }
}

/// Whether an idempotency key is one of a thread, or of one that has had its id before or after it.
fn is_of(key: &str, thread: &str) -> bool {
    (1..9).any(|life| key.starts_with(&thread_id::of_life(thread, life)))
}

/// A call is one execution, unless its tool may be repeated.
fn executions(sim: &Sim, history: &History, terms: &Terms, broken: &mut Vec<String>) {
    let catalog = sim.catalog.borrow().clone();
    // Of a server that lists its tools while threads run, its own definition says it.
    let of_live = |name: &str| {
        let (server, tool) = name.split_once('/')?;
        catalog.mcp.get(server)?.idempotent.get(tool).copied()
    };
    let runs_as = |tool: &Tool, name: &str| match &tool.run {
        Implementation::Native(native) => native == name,
        Implementation::Http(http) => http.url == name,
        Implementation::Mcp(of) => format!("{}/{}", of.server, of.tool) == name,
        Implementation::Code(_) | Implementation::Client(_) => false,
    };
    let repeats = |tool: &Tool| tool.idempotent == Some(true) || tool.tier == Some(Tier::ReadOnly);
    let idempotent = |name: &str| {
        of_live(name) == Some(true) || catalog.tools.values().any(|tool| runs_as(tool, name) && repeats(tool))
    };
    let mut by_key: BTreeMap<(String, String), usize> = BTreeMap::new();
    let members = sim.world.members();
    let life: Vec<i64> = sim.member.database.ask("SELECT life FROM meta");
    let stem = thread_id::of_life(&sim.member.id, life.first().copied().unwrap_or(1));
    for execution in sim.world.outside.executions.borrow().iter() {
        match members.iter().find(|member| is_of(&execution.key, &member.id)) {
            None => broken.push(format!("the idempotency key “{}” names no thread", execution.key)),
            Some(of) if of.place == sim.member.place && execution.key.starts_with(&stem) => {
                *by_key.entry((execution.key.clone(), execution.name.clone())).or_default() += 1;
            }
            Some(_) => {}
        }
    }
    let of_effect = |key: &str| key.split_once('/').is_some_and(|(_, rest)| rest.starts_with('e'));
    let of_hook = |key: &str| key.split_once('/').is_some_and(|(_, rest)| rest.starts_with('h'));
    // A hook may be told again; what it does to the data is for its scenario to check.
    by_key.retain(|(key, _), _| !of_hook(key));
    for ((key, name), times) in &by_key {
        if of_effect(key) {
            if *times > terms.effect_attempts {
                broken.push(format!("the effect {name} was tried {times} times with key {key}"));
            }
            continue;
        }
        let most = if idempotent(name) { terms.idempotent_runs } else { 1 };
        if *times > most {
            broken.push(format!("{} ran {times} times with key {key}", name.trim_start_matches(TOOL_URL)));
        }
    }
    // Each has its receipt, also those within calls.
    let exists = sim.member.has_table("calls");
    if exists {
        let receipts: BTreeSet<String> = sim
            .member
            .database
            .ask::<String>(
                "SELECT CASE WHEN reply > 0 THEN 'r' || reply || '.' || (id - reply - 1) ELSE call_id END FROM calls",
            )
            .into_iter()
            .collect();
        for (key, name) in by_key.keys() {
            let own = key.rsplit_once('/').map_or(key.as_str(), |(_, own)| own);
            // A call that asked, and was made once more when it was approved.
            let own = own.strip_suffix(".approved").unwrap_or(own);
            if own.starts_with('r') && !own.starts_with("request-") && !receipts.contains(own) {
                broken.push(format!("{name} ran with key {key}, which has no receipt"));
            }
        }
    }
    let calls: usize = history.messages.iter().map(|message| History::calls(message).len()).sum();
    let within: Vec<i64> = match exists {
        true => sim.member.database.ask(
            "SELECT count(*) FROM calls LEFT JOIN messages ON seq = reply WHERE reply <= 0 OR messages.depth > 0",
        ),
        false => vec![0],
    };
    let calls = calls + within[0] as usize;
    let second = |key: &str| key.ends_with(".approved");
    let by_tools = by_key
        .keys()
        .filter(|(key, _)| !of_effect(key) && !key.contains("/request-") && !second(key))
        .count();
    let dropped: i64 = match exists {
        true => sim.member.database.ask("SELECT count(*) FROM calls WHERE state = 'dropped'")[0],
        false => 0,
    };
    let calls = calls + dropped as usize;
    if terms.pairs && by_tools > calls {
        broken.push(format!("{by_tools} executions by key for {calls} stored calls"));
    }
}

/// No receipt says that a call is under way which nothing works on. Whoever looks at the thread finds it so.
fn open_calls(sim: &Sim, broken: &mut Vec<String>) {
    let database = &sim.member.database;
    if !database.has_table("calls") {
        return;
    }
    let open: Vec<String> = database
        .ask("SELECT id || ' ' || call_id || ' ' || name || ' ' || ifnull(data, '') FROM calls WHERE state = 'started'");
    if !open.is_empty() {
        broken.push(format!("calls are `started` that nothing works on: {}", open.join("; ")));
    }
}

/// What is open is asked for a run that is parked, or for a subagent, and by no other. That it ends in time, sim.rs sees.
fn open_waits(sim: &Sim, broken: &mut Vec<String>) {
    if !sim.member.has_table("waits") {
        return;
    }
    let stray: Vec<String> = sim.member.database.ask(
        "SELECT waits.id || ' of ' || ifnull(run, 'none') || ' ' || ifnull(phase, '') FROM waits
         LEFT JOIN runs ON runs.id = run WHERE open = 1 AND ifnull(phase, '') NOT LIKE 'parked%'
         AND (run IS NOT NULL OR kind <> 'budget')",
    );
    if !stray.is_empty() {
        broken.push(format!("waits are open, and their runs are not parked: {}", stray.join("; ")));
    }
}

/// Every request to a model has its row in the log, numbered without gaps under its reply.
fn attempts(sim: &Sim, broken: &mut Vec<String>) {
    let member = &sim.member;
    let database = &member.database;
    // Another thread may have had the place before.
    let since: i64 = match database.has_table("meta") {
        true => database.ask("SELECT ifnull(max(iif(life > 1, created_us, 0)), 0) FROM meta")[0],
        false => 0,
    };
    let of_it = |thread: &str| thread == member.id || (thread.is_empty() && member.place == 0);
    let requests = sim.world.outside.requests.borrow();
    let requests = requests.iter().filter(|sent| of_it(&sent.thread) && sent.at_us >= since).count();
    if !database.has_table("logs") {
        return;
    }
    let rows: Vec<i64> = database.ask("SELECT count(*) FROM logs WHERE kind = 'llm_request'");
    if rows[0] < requests as i64 {
        broken.push(format!("{requests} model requests, but {} rows for attempts", rows[0]));
    }
    let odd: Vec<String> = database.ask(
        "SELECT reply || ': ' || group_concat(data ->> 'attempt') FROM logs
         WHERE kind = 'llm_request' AND data ->> 'purpose' IS NULL GROUP BY reply
         HAVING count(*) != count(DISTINCT data ->> 'attempt') OR count(*) != max(data ->> 'attempt')",
    );
    if !odd.is_empty() {
        broken.push(format!("attempts are missing or doubled in the log: {}", odd.join("; ")));
    }
}

/// Each summary follows the one before it, and none ends between a call and its result.
fn summaries(sim: &Sim, broken: &mut Vec<String>) {
    if !sim.member.has_table("summaries") {
        return;
    }
    let database = &sim.member.database;
    let odd: Vec<String> = database.ask(
        "SELECT later.epoch || ' covers ' || later.upto || ' and the one before ' || before.upto
         FROM summaries later JOIN summaries before ON before.epoch = later.epoch - 1
         WHERE later.upto <= before.upto AND before.stale = 0",
    );
    let count: Vec<i64> = database.ask("SELECT count(*) FROM summaries");
    let span: Vec<i64> = database.ask("SELECT ifnull(max(epoch) - min(epoch) + 1, 0) FROM summaries");
    let beyond: Vec<i64> =
        database.ask("SELECT epoch FROM summaries WHERE epoch > (SELECT summary ->> 'epoch' FROM meta)");
    let cut: Vec<String> = database.ask(
        "SELECT 'epoch ' || epoch || ' up to ' || upto || ', call of ' || reply.seq || ', result ' || result.seq
         FROM summaries, messages reply, json_each(reply.tool_calls) call, messages result
         WHERE reply.depth = 0 AND reply.tool_calls IS NOT NULL AND reply.seq <= upto
           AND result.depth = 0 AND result.role = 'tool' AND result.seq > upto AND result.seq < reply.seq + 257
           AND result.tool_call_id = call.value ->> 'id'",
    );
    if count != span || !beyond.is_empty() || !odd.is_empty() || !cut.is_empty() {
        broken.push(format!(
            "summaries: {count:?} rows, {span:?} epochs, beyond {beyond:?}, {odd:?}, cut {cut:?}"
        ));
    }
}

/// After the end nothing happens any more, also when the objects are woken.
fn quiet(sim: &Sim, terms: &Terms, requests: usize, broken: &mut Vec<String>) {
    let world = &sim.world;
    if let Some(due) = world.next_alarm_us()
        && !terms.alarm_may_stay
    {
        broken.push(format!("an alarm stays set, for {due}"));
    }
    for member in world.members() {
        let newest = world
            .outside
            .siblings
            .borrow()
            .iter()
            .filter(|(_, call)| call["call"] == "activity" && call["id"] == member.id.as_str())
            .max_by_key(|(_, call)| call["version"].as_i64())
            .map(|(_, call)| call.clone());
        // Of a thread that was deleted it forgets everything.
        let forgotten = world
            .outside
            .siblings
            .borrow()
            .iter()
            .any(|(_, call)| call["call"] == "delete" && call["id"] == member.id.as_str());
        if let Some(newest) = newest.filter(|_| !forgotten) {
            if newest["executing"] != false {
                broken.push(format!("the directory believes that a run of {} is active", member.id));
            }
            let failed = "SELECT CASE outcome WHEN 'failed' THEN reason ELSE '' END FROM runs ORDER BY id DESC LIMIT 1";
            let failed = member.database.ask::<String>(failed).pop().unwrap_or_default();
            if newest["failed"].as_str().unwrap_or_default() != failed {
                broken.push(format!(
                    "the directory knows of {:?}, {} has {failed:?}",
                    newest["failed"], member.id
                ));
            }
        }
        if let Some((bytes, table)) = member.database.row_beyond(crate::host::database::ROW_BYTES) {
            broken.push(format!("a row of {bytes} bytes in {table}"));
        }
    }
    world.evict();
    let mut woken = sim.family();
    if woken.iter().all(|thread| thread.member.place > 0) {
        woken.push(sim.clone());
    }
    for waking in woken {
        world.drive(async move { waking.get(ThreadRoute::Get, &[]).await });
    }
    if !world.rest(DAY_US) && !terms.alarm_may_stay {
        broken.push("it does not come to rest after it was woken".into());
    }
    let now = world.outside.requests.borrow().len();
    if now != requests {
        broken.push(format!("{} model requests after the end", now - requests));
    }
}
