//! Whatever becomes of a history, every strict provider takes the requests that are made of it: random models, hooks, edits,
//! deletions, stops, kills, fallbacks, hand-offs and called prompts. A story follows from its seed, which is printed when a
//! request of it is refused: `BOBBIN_STORY_SEED=N cargo test --test engine any_history`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use bobbin::definitions::message::Role;
use bobbin::engine::{HookCall, NewMessage};
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::hooks::react;
use super::work;
use crate::host::claude::{redacted, thought};
use crate::host::outside::ModelRequest;
use crate::host::rng::Rng;
use crate::host::{Answer, Claude, DAY_US, MODEL_URL, Say};
use crate::sample;
use crate::sim::{Sim, catalog, model, native};

const STORIES: u64 = 250;
/// Those of a sample.
const SAMPLE: usize = 80;
const HOOKS: [&str; 7] = [
    "filter_messages",
    "prefilter_llm_history",
    "before_create_message",
    "after_create_message",
    "before_store_tool_result",
    "after_tool_call_success",
    "after_tool_call_failure",
];
/// Ids that servers give which number calls anew, and such that are the same to a provider which takes fewer letters.
const IDS: [&str; 6] = ["call_0", "call_1", "a.b:c", "a_b_c", "", "call_0_2"];

/// A choice that the story makes once, by its seed and a name: the same whenever it is asked.
fn choice(seed: u64, what: &str, n: usize) -> usize {
    let hash = what.bytes().fold(seed.wrapping_mul(31) + 7, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Rng::new(hash).below(n)
}

fn definitions(seed: u64) -> Value {
    let is = |what: &str| choice(seed, what, 2) == 0;
    let mut all = catalog(&json!({ "work": native(is("idempotent")) }));
    if is("reads") {
        all["tools"]["work"] =
            json!({ "tier": "read_only", "description": "Works.", "run": { "native": "work" } });
    }
    let claude = |id: &str| json!({ "provider": "anthropic", "model": id, "baseUrl": MODEL_URL });
    let (first, second) =
        if is("claude first") { (claude("c"), model("o")) } else { (model("o"), claude("c")) };
    all["models"] = json!({ "m": first, "m2": second });
    all["models"]["m"]["fallbacks"] = json!(["m2"]);
    for prompt in ["p", "q", "called"] {
        let of = |what: &str| is(&format!("{prompt} {what}"));
        all["prompts"][prompt] = json!({
            "toolDescription": "Helps.", "prompt": "You help.", "model": if of("m2") { "m2" } else { "m" },
            "includeChat": of("chat"), "includePastTools": of("tools"), "parallelToolCalls": true,
            "parallelReadOnly": of("at once"),
            "reasoning": { "effort": "low", "include": of("include") }, "tools": ["work"],
        });
    }
    all["prompts"]["p"]["tools"] = json!(["work", "called", "other"]);
    all["prompts"]["q"]["tools"] = json!(["work", "called", "helper"]);
    for (agent, prompt) in [("helper", "p"), ("other", "q")] {
        all["agents"][agent] = json!({ "exposeAsTool": true, "toolDescription": "Takes over.",
            "sideA": { "prompt": prompt, "maxSteps": 8 } });
    }
    if is("hooks") {
        let hooks: Vec<&str> = HOOKS.into_iter().filter(|hook| is(hook)).collect();
        for hook in &hooks {
            all["hooks"][hook] = json!({ "hook": hook, "run": { "native": hook } });
        }
        for agent in ["helper", "other"] {
            all["agents"][agent]["hooks"] = json!(hooks);
        }
    }
    all
}

/// What a hook makes of its arguments: mostly nothing, at times anything that it may.
fn meddles(call: &HookCall, rng: &mut Rng) -> Result<Value, String> {
    let name = call.hook.as_str();
    if rng.one_in(12) {
        return Err("broken".into());
    }
    match name {
        "after_tool_call_success" | "after_tool_call_failure" | "before_store_tool_result" => {
            Ok(match rng.below(3) {
                0 => Value::Null,
                1 => json!({ "status": "success", "result": "other" }),
                _ => call.args[1].clone(),
            })
        }
        "before_create_message" => {
            let mut message = call.args[0].clone();
            match rng.below(4) {
                0 => message["content"] = "".into(),
                1 => message["content"] = "changed".into(),
                2 => message["silent"] = true.into(),
                _ => {}
            }
            Ok(message)
        }
        "filter_messages" | "prefilter_llm_history" => Ok(list(&call.args[0], rng)),
        _ => Ok(Value::Null),
    }
}

/// A list of messages in which some are gone, doubled, moved, empty or new.
fn list(messages: &Value, rng: &mut Rng) -> Value {
    let mut list = messages.as_array().cloned().unwrap_or_default();
    for _ in 0..rng.below(3) {
        let at = rng.below(list.len());
        match rng.below(7) {
            0 if !list.is_empty() => drop(list.remove(at)),
            1 if !list.is_empty() => {
                let again = list[at].clone();
                list.push(again);
            }
            2 if !list.is_empty() => {
                let other = rng.below(list.len());
                list.swap(at, other);
            }
            3 => list.push(json!({ "role": "system", "content": "Be brief." })),
            4 => list.push(json!({ "role": "user", "content": "" })),
            5 if !list.is_empty() => list[at]["content"] = "changed".into(),
            6 => {
                for message in &mut list {
                    if let Some(calls) = message["tool_calls"].as_array_mut().filter(|calls| calls.len() > 1)
                    {
                        calls.remove(rng.below(calls.len()));
                    }
                }
            }
            _ => {}
        }
    }
    list.into()
}

/// What was thought, as it must come back.
type Thoughts = Rc<RefCell<BTreeSet<String>>>;

/// A model that says anything.
fn says(seed: u64, request: &ModelRequest, thoughts: &Thoughts) -> Answer {
    let mut rng = Rng::new(seed * 7_919 + request.index as u64);
    let names = ["work", "work", "work", "called", "other", "helper", "nothing"];
    let is_claude = request.headers.iter().any(|(name, _)| name == "anthropic-version");
    match rng.below(14) {
        0 => return Answer::status(401, "{}"),
        1 => return Say::text("cut off").stream(request.index).cut_after(1),
        _ => {}
    }
    let calls = if rng.one_in(2) { 0 } else { 1 + rng.below(3) };
    let text = if rng.one_in(3) { "" } else { "Well. " };
    let call = |rng: &mut Rng| {
        let id = if rng.one_in(2) {
            format!("id_{}_{}", request.index, rng.below(99))
        } else {
            IDS[rng.below(6)].into()
        };
        (id, names[rng.below(names.len())])
    };
    if !is_claude {
        let say = (0..calls).fold(Say::text(text), |say, _| {
            let (id, name) = call(&mut rng);
            say.and_call_id(&id, name, "{}")
        });
        return say.stream(request.index);
    }
    let thinks = !request.body["thinking"].is_null();
    let thinking = |reply: Claude, rng: &mut Rng| {
        let (number, signature) = (rng.below(1_000), format!("S{}/{}", request.index, rng.below(1_000)));
        if rng.one_in(4) {
            thoughts.borrow_mut().insert(redacted(&signature));
            return reply.hides(&signature);
        }
        let (first, second) = (format!(r"Let \u006de {number} "), "see.");
        thoughts.borrow_mut().insert(thought(&format!("{first}{second}"), &signature));
        reply.thinks(&first, second, &signature)
    };
    let mut reply = Claude::default();
    if thinks {
        reply = thinking(reply, &mut rng);
    }
    if !text.is_empty() {
        reply = reply.text(text);
    }
    for _ in 0..calls {
        if thinks && rng.one_in(2) {
            reply = thinking(reply, &mut rng);
        }
        let (id, name) = call(&mut rng);
        reply = reply.call(&id, name, "{}");
    }
    // Cut off while it thought.
    if thinks && calls == 0 && rng.one_in(5) {
        reply = thinking(reply, &mut rng);
    }
    reply.stream()
}

/// Thinking that nobody has thought, or two pieces as one that were two.
fn changed(request: &ModelRequest, thoughts: &Thoughts) -> Vec<String> {
    let read = |text: &String| serde_json::from_str::<Value>(text).unwrap().to_string();
    let known: BTreeSet<String> = thoughts.borrow().iter().map(read).collect();
    let blocks = request.messages().iter().flat_map(|m| m["content"].as_array().into_iter().flatten());
    let of = blocks.filter(|block| block["type"].as_str().is_some_and(|kind| kind.ends_with("thinking")));
    of.map(Value::to_string).filter(|block| !known.contains(block)).collect()
}

async fn anything(sim: &Sim, rng: &mut Rng) {
    let ids = |history: &[Value]| -> Vec<String> {
        history.iter().filter_map(|m| m["id"].as_str().map(str::to_owned)).collect()
    };
    match rng.below(12) {
        0..=3 => drop(sim.ask("go on").await),
        4 => drop(sim.send("and this").await),
        5 => {
            let body = json!({ "role": "system", "content": "Be kind.", "silent": rng.one_in(2) });
            drop(sim.post(body).await);
        }
        6 | 7 => {
            let ids = ids(&sim.history().await);
            if !ids.is_empty() {
                let id = ids[rng.below(ids.len())].clone();
                let (route, body) = match rng.below(2) {
                    0 => (ThreadRoute::PatchMessage(id), json!({ "content": "edited" }).to_string()),
                    _ => (ThreadRoute::DeleteMessage(id), String::new()),
                };
                drop(sim.insist(route, &[], None, body).await);
            }
        }
        8 => drop(sim.stop().await),
        9 => drop(sim.go_on().await),
        10 => sim.world.kill(),
        _ => sim.world.pause(500_000 * (1 + rng.below(4) as i64)).await,
    }
}

fn tell(seed: u64) -> usize {
    let sim = Sim::new(seed, &definitions(seed));
    let thoughts = Thoughts::default();
    work(&sim);
    let (known, seen) = (thoughts.clone(), Rc::downgrade(&sim.world));
    sim.world.outside.model(move |request| {
        for block in changed(request, &known) {
            if let Some(world) = seen.upgrade() {
                world.fail(format!("model request {}: changed thinking {block}", request.index));
            }
        }
        says(seed, request, &known)
    });
    for hook in HOOKS {
        let rng = RefCell::new(Rng::new(seed ^ 0x0bed));
        react(&sim, hook, move |call| meddles(call, &mut rng.borrow_mut()));
    }
    sim.world.outside.hook("after_create_message", move |call| {
        let injects = choice(seed, &call.hook_call_id, 3);
        Box::pin(async move {
            let role = if injects == 0 { Role::System } else { Role::User };
            if injects < 2 {
                let aside = NewMessage { role, ..NewMessage::user("aside") };
                call.state.inject_message(aside).await.map_err(|error| error.into_message())?;
            }
            Ok(Value::Null)
        })
    });
    let client = sim.clone();
    sim.world.client(async move {
        let mut rng = Rng::new(seed);
        client.create().await;
        client.ask("hello").await;
        for _ in 0..4 + rng.below(6) {
            anything(&client, &mut rng).await;
        }
        // What was stopped goes on.
        client.ask("so?").await;
        client.go_on().await;
    });
    let rested = sim.world.rest(9 * DAY_US);
    let failures = sim.world.failures.borrow().clone();
    let requests = sim.world.outside.requests.borrow().len();
    let waiting = sim.world.executor.waiting(true);
    sim.dispose();
    assert!(
        failures.is_empty() && rested,
        "BOBBIN_STORY_SEED={seed}: rested {rested} {waiting:?} {failures:#?}"
    );
    requests
}

#[test]
fn strict_providers_take_any_history() {
    let seed = std::env::var("BOBBIN_STORY_SEED").ok().and_then(|text| text.parse().ok());
    let seeds =
        seed.map_or_else(|| sample::some("any history", (1..=STORIES).collect(), SAMPLE), |seed| vec![seed]);
    let at_least = if seed.is_some() { 0 } else { 4 * seeds.len() };
    let requests: usize = seeds.into_iter().map(tell).sum();
    assert!(requests > at_least, "only {requests} requests were made");
}
