//! What a provider wants back with its replies goes back byte for byte, and only to the prompt, model and provider that
//! wrote it.

use bobbin::host::Filter;
use bobbin::limits;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{clerk, with_work, work};
use crate::host::claude::{redacted, thought};
use crate::host::outside::ModelRequest;
use crate::host::{Answer, Claude, MODEL_URL};
use crate::sim::{Sim, catalog, model};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![thinking(false), thinking(true), to_another(json!({}), "claude"), extra_content(), field()]
}

/// Escaped as no serializer of ours would.
const FIRST: &str = r"Let me \u0077ork\/ on \ud83e\uddf5";
const SECOND: &str = r"Again\u003f";

fn claude(id: &str) -> Value {
    json!({ "provider": "anthropic", "model": id, "baseUrl": MODEL_URL })
}

fn story(name: &'static str, prompt: Value) -> Scenario {
    Scenario::new(name, &with_work()).setup(work).answers(thinker).define(move |catalog| {
        catalog["models"]["m"] = claude("claude");
        catalog["prompts"]["p"]["reasoning"] = json!({ "effort": "low" });
        for (key, value) in prompt.as_object().into_iter().flatten() {
            catalog["prompts"]["p"][key] = value.clone();
        }
    })
}

/// Blocks of the messages, newest message first, up to the last thing that a person said.
fn results(request: &ModelRequest) -> usize {
    let blocks =
        request.messages().iter().rev().flat_map(|m| m["content"].as_array().into_iter().flatten().rev());
    blocks
        .take_while(|block| block["type"] != "text" || block["text"] == "Moment." || block["text"] == "And. ")
        .filter(|block| block["type"] == "tool_result")
        .count()
}

/// `use work` calls it twice, in two steps, thinking before each call; anything else is answered after a thought.
fn thinker(request: &ModelRequest) -> Answer {
    let last = request.messages().last().map(|last| last["content"].to_string()).unwrap_or_default();
    let serial = request.index;
    let thinks = !request.body["thinking"].is_null();
    let thinking = |reply: Claude, text: &str, signature: &str| {
        if thinks { reply.thinks(&text[..5], &text[5..], signature) } else { reply }
    };
    match results(request) {
        0 if last.contains("use work") => thinking(Claude::default(), FIRST, "S1+/=")
            .hides_if(thinks, "E1+/=")
            .text("Moment.")
            .call(&format!("toolu_{serial}"), "work", "{\"n\": 1.0e0}")
            .stream(),
        1 => thinking(Claude::default().text("And. "), SECOND, "S2==")
            .call(&format!("toolu_{serial}"), "work", "{}")
            .stream(),
        2 => Claude::default().text("done").stream(),
        _ => thinking(Claude::default(), FIRST, "S3").text("Well.").stream(),
    }
}

impl Claude {
    fn hides_if(self, thinks: bool, data: &str) -> Claude {
        if thinks { self.hides(data) } else { self }
    }
}

/// How often each kind of thinking is in a request.
fn counts(request: &ModelRequest) -> [usize; 4] {
    [thought(FIRST, "S1+/="), redacted("E1+/="), thought(SECOND, "S2=="), thought(FIRST, "S3")]
        .map(|block| request.text.matches(&block).count())
}

/// All that a client can read.
async fn readable(sim: &Sim) -> String {
    let history = sim.history().await;
    let logs = sim.get(ThreadRoute::ListLogs, &[]).await;
    let frames: Vec<String> =
        sim.world.frames.borrow().iter().map(|(_, frame)| frame.data.to_string()).collect();
    format!("{history:?} {logs} {frames:?}")
}

fn thinking(include: bool) -> Scenario {
    let name = if include { "thinking, included" } else { "thinking" };
    story(name, json!({ "reasoning": { "effort": "low", "include": include } }))
        .drive(|sim| async move {
            let outcome = sim.ask("use work").await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
            sim.ask("more").await;
            sim.ask("more").await;
            assert!(!readable(&sim).await.contains("E1+/="), "nobody is shown what only the provider reads");
        })
        .check(move |sim, history| {
            assert_eq!(history.answers(), ["done", "Well.", "Well."]);
            let metadata = |of: &Value| of["metadata"]["reasoning"].as_str().unwrap_or_default().to_owned();
            let shown: Vec<String> = history.of("assistant").map(metadata).collect();
            let first = "Let me work/ on 🧵";
            assert_eq!(shown, [first, "Again?", "", first, first]);
            for request in sim.world.outside.requests.borrow().iter() {
                let last = request.messages().last().unwrap()["content"].to_string();
                let past = request.messages().iter().filter(|m| m.to_string().contains("Well.")).count();
                let expected = match (results(request), last.contains("more")) {
                    (0, false) => [0, 0, 0, 0],
                    (1, false) => [1, 1, 0, 0],
                    (2, false) => [1, 1, 1, 0],
                    _ if include => [1, 1, 1, past],
                    _ => [0, 0, 0, 0],
                };
                assert_eq!(counts(request), expected, "request {}: {}", request.index, request.text);
                assert_eq!(request.body["thinking"], json!({ "type": "enabled", "budget_tokens": 10_560 }));
            }
        })
}

#[test]
fn thinking_goes_back_to_who_thought_it() {
    thinking(false).sweep();
}

#[test]
fn thinking_of_earlier_turns_goes_back_where_the_prompt_includes_it() {
    thinking(true).sweep();
}

/// The second step's request is refused, and another model steps in.
fn to_another(fields: Value, id: &'static str) -> Scenario {
    story("thinking, then another model", json!({ "reasoning": { "effort": "low", "include": true } }))
        .define(move |catalog| {
            catalog["models"]["m"]["fallbacks"] = json!(["m2"]);
            catalog["models"]["m"]["providerOptions"] = json!({ "stop_sequences": ["only for m"] });
            catalog["models"]["m2"] = if id == "chat" { model(id) } else { claude(id) };
            for (key, value) in fields.as_object().into_iter().flatten() {
                catalog["models"]["m2"][key] = value.clone();
            }
        })
        .answers(|request| match request.headers.iter().any(|(name, _)| name == "anthropic-version") {
            true if request.model == "m" && results(request) == 1 => Answer::status(401, "{}"),
            true if request.text.contains("only for m") && results(request) == 1 => Answer::status(401, "{}"),
            true => thinker(request),
            false => crate::host::Say::text("done").stream(request.index),
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["done"]);
            for request in sim.world.outside.requests.borrow().iter() {
                let own = request.text.contains("only for m");
                match (own, results(request)) {
                    (true, 1) => assert_eq!(counts(request), [1, 1, 0, 0]),
                    (true, _) => {}
                    // Not to be read, not even that there was any; and without thinking of its own in this exchange.
                    (false, _) => {
                        assert!(
                            !request.text.contains("S1+/=") && !request.text.contains("E1+/="),
                            "{}",
                            request.text
                        );
                        assert!(!request.text.contains("thinking"), "{}", request.text);
                    }
                }
            }
        })
}

#[test]
fn another_model_is_not_given_it() {
    to_another(json!({}), "claude-small").sweep();
}

#[test]
fn another_definition_of_the_same_model_is_not_given_it() {
    to_another(json!({}), "claude").calm();
}

#[test]
fn another_provider_is_not_given_it() {
    to_another(json!({}), "chat").calm();
}

#[test]
fn another_prompt_is_not_given_it() {
    let prompt = json!({ "reasoning": { "effort": "low", "include": true } });
    story("another prompt", prompt)
        .drive(|sim| async move {
            sim.ask("use work").await;
            let mut other = catalog(&with_work());
            other["models"]["m"] = claude("claude");
            other["prompts"]["p"]["reasoning"] = json!({ "effort": "low", "include": true });
            other["prompts"]["q"] = other["prompts"]["p"].clone();
            let with_p = other.clone();
            other["agents"]["helper"]["sideA"]["prompt"] = "q".into();
            sim.deploy(&other);
            sim.ask("more").await;
            sim.deploy(&with_p);
            sim.ask("more").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            let last: Vec<_> = requests.iter().map(counts).collect();
            assert_eq!(last, [[0; 4], [1, 1, 0, 0], [1, 1, 1, 0], [0; 4], [1, 1, 1, 0]]);
        })
        .calm();
}

#[test]
fn an_edited_reply_loses_it() {
    story("edited", json!({ "reasoning": { "effort": "low", "include": true } }))
        .drive(|sim| async move {
            sim.ask("hello").await;
            let reply = sim.history().await.iter().find(|m| m["role"] == "assistant").unwrap()["id"].clone();
            let id = reply.as_str().unwrap().to_owned();
            sim.ask("more").await;
            let body = json!({ "content": "Better." }).to_string();
            let seen = sim.insist(ThreadRoute::PatchMessage(id), &[], None, body).await;
            assert_eq!(seen.status, 200);
            sim.ask("more").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests.iter().map(|request| counts(request)[3]).collect::<Vec<_>>(), [0, 1, 1]);
        })
        .calm();
}

#[test]
fn what_is_too_large_is_dropped_and_the_exchange_goes_on_without() {
    let thought = "x".repeat(limits::PAYLOAD_BYTES);
    story("too large", json!({}))
        .answers(move |request| match results(request) {
            0 => Claude::default().thinks(&thought, "y", "S").call("toolu_1", "work", "{}").stream(),
            _ => Claude::default().text("done").stream(),
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["done"]);
            let requests = sim.world.outside.requests.borrow();
            assert!(requests[0].text.contains("thinking") && !requests[1].text.contains("thinking"));
            let told = sim.world.log.borrow().iter().any(|line| line.contains("is not kept"));
            assert!(told, "the log says so");
        })
        .calm();
}

#[test]
fn excluded_reasoning_is_read_by_nobody_and_goes_back_all_the_same() {
    story("excluded", json!({ "reasoning": { "maxTokens": 2000, "exclude": true } }))
        .drive(|sim| async move {
            let filter = Filter { events: true, reasoning: true, ..Filter::default() };
            sim.listen(filter, None).await.unwrap();
            sim.ask("use work").await;
            let readable = readable(&sim).await;
            assert!(!readable.contains("Let me") && !readable.contains("Again"), "{readable}");
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests.iter().map(counts).collect::<Vec<_>>(), [[0; 4], [1, 1, 0, 0], [1, 1, 1, 0]]);
            assert_eq!(requests[0].body["thinking"]["budget_tokens"], 2000);
        })
        .calm();
}

#[test]
fn after_a_turn_that_ended_with_calls_their_thinking_still_goes_back() {
    story("stop tool", json!({}))
        .define(|catalog| catalog["agents"]["helper"]["sideA"]["stopTool"] = "work".into())
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.ask("more").await;
            sim.ask("more").await;
        })
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            assert_eq!(requests.iter().map(counts).collect::<Vec<_>>(), [[0; 4], [1, 1, 0, 0], [0; 4]]);
        })
        .terms(|terms| terms.one_answer = false)
        .calm();
}

/// What compatible servers want back: OpenRouter's details with a reply, Gemini's signatures with a call.
const EXTRA: &str = r#"{"google":{"thought_signature":"CpQ\u002b\/=="}}"#;
const DETAIL: &str = r#"{"type":"reasoning.encrypted","data":"gAAA\u002b\/=","id":"rs_1", "index":0}"#;

fn extra_content() -> Scenario {
    Scenario::new("extra content", &with_work())
        .setup(work)
        .define(|catalog| catalog["prompts"]["p"]["includeChat"] = true.into())
        .answers(|request| {
            if !request.results().is_empty() || request.last_user() != "use work" {
                return clerk(request).stream(request.index);
            }
            let chunk = format!(
                r#"data: {{"choices":[{{"index":0,"delta":{{"reasoning_details":[{DETAIL}],"tool_calls":[{{"index":0,"id":"call_{}","type":"function","function":{{"name":"work","arguments":"{{}}"}},"extra_content":{EXTRA}}}]}},"finish_reason":"tool_calls"}}]}}"#,
                request.index
            );
            Answer::status(200, format!("{chunk}\n\ndata: [DONE]\n\n"))
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.ask("hello").await;
        })
        .check(|sim, _| {
            let details = format!(r#""reasoning_details":[{}]"#, DETAIL.replace(", ", ","));
            let extra = format!(r#""extra_content":{EXTRA}"#);
            for request in sim.world.outside.requests.borrow().iter() {
                let in_exchange = !request.results().is_empty();
                let found = [request.text.contains(&details), request.text.contains(&extra)];
                assert_eq!(found, [in_exchange; 2], "{}", request.text);
            }
        })
}

/// A server that refuses calls without the reasoning that it sent before them, also those of earlier turns.
fn field() -> Scenario {
    const THOUGHT: &str = "I work.";
    Scenario::new("a field of the message", &with_work())
        .setup(work)
        .answers(|request| {
            let lacks = |m: &&Value| m["tool_calls"].is_array() && m["reasoning_content"] != THOUGHT;
            if request.messages().iter().any(|message| lacks(&message)) {
                return Answer::status(400, r#"{"error":{"message":"reasoning_content is missing"}}"#);
            }
            if !request.results().is_empty() || request.last_user() != "use work" {
                return clerk(request).stream(request.index);
            }
            let delta = json!({ "reasoning_content": THOUGHT, "tool_calls": [
                { "index": 0, "id": format!("c{}", request.index), "function": { "name": "work", "arguments": "{}" } },
            ] });
            let chunk = json!({ "choices": [{ "delta": delta, "finish_reason": "tool_calls" }] });
            Answer::status(200, format!("data: {chunk}\n\ndata: [DONE]\n\n"))
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.evict().await;
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers().last(), Some(&"re: hello"));
            let requests = sim.world.outside.requests.borrow();
            let last = requests.last().unwrap();
            assert!(last.text.contains("reasoning_content"), "{}", last.text);
        })
}

#[test]
fn reasoning_goes_back_with_the_calls_of_every_turn_whatever_fails() {
    field().sweep();
}

#[test]
fn what_compatible_servers_want_back_goes_back_in_the_same_turn() {
    extra_content().sweep();
}
