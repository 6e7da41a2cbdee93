//! Summaries that stand in requests for older messages: made beside the run, stored once, and never in its way.

use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use serde_json::{Value, json};

use super::{ModelRequest, clerk, story, summary_sides};
use crate::contract::History;
use crate::host::{Answer, SECOND_US, Say};
use crate::sim::{Seen, Sim, model};
use crate::sweep::Scenario;

/// Whether it is asked for a summary.
pub(super) fn is_summary(request: &ModelRequest) -> bool {
    request.system().starts_with("You keep the memory")
}

/// What begins with `fact-` in what is to be summarised, each once.
fn facts(request: &ModelRequest) -> String {
    let mut facts: Vec<&str> =
        request.last_user().split_whitespace().filter(|word| word.starts_with("fact-")).collect();
    facts.sort_unstable();
    facts.dedup();
    format!("Known: {}.", facts.join(" "))
}

/// A clerk that repeats nothing, and a model that keeps facts.
pub(super) fn both(request: &ModelRequest) -> Say {
    if is_summary(request) { Say::text(facts(request)) } else { Say::text("Noted.") }
}

/// A thread of which requests may have some 900 tokens, and summaries 200.
pub(super) fn summarised(name: &'static str) -> Scenario {
    story(name)
        .define(|catalog| {
            catalog["models"]["cheap"] = model("cheap");
            catalog["prompts"]["p"]["context"] = json!({ "maxInputTokens": 900, "safetyTokens": 0 });
            catalog["prompts"]["p"]["summary"] = json!({ "model": "cheap", "minTurns": 2, "maxTokens": 200 });
        })
        .answers(|request| both(request).stream(request.index))
        .terms(|terms| {
            // A summary is asked for beside the run.
            terms.overlap = true;
            terms.one_answer = false;
            // How many are made depends on when they are stored.
            terms.more_requests = 12;
        })
}

/// A message of some 50 tokens.
pub(super) fn said(n: usize) -> String {
    format!("{n} {}", "word ".repeat(60))
}

pub(super) async fn settled(sim: &Sim) {
    sim.until("no job is open", |sim| {
        sim.member.database.ask::<i64>("SELECT jobs FROM meta") == [0]
            && sim.world.executor.waiting(false).is_empty()
    })
    .await;
}

async fn context(sim: &Sim) -> Value {
    sim.get(ThreadRoute::GetContext, &[("history", "true")]).await
}

/// Requests for replies.
fn replies(sim: &Sim) -> Vec<ModelRequest> {
    let requests = sim.world.outside.requests.borrow();
    requests.iter().filter(|request| !is_summary(request)).cloned().collect()
}

fn summaries(sim: &Sim) -> Vec<ModelRequest> {
    let requests = sim.world.outside.requests.borrow();
    requests.iter().filter(|request| is_summary(request)).cloned().collect()
}

/// About its tokens: all of it is plain words.
fn tokens(request: &ModelRequest) -> usize {
    let words = |m: &Value| m["content"].as_str().map_or(0, |text| text.split_whitespace().count());
    request.messages().iter().map(|m| words(m) * 82 / 100 + 5).sum()
}

/// The second system message.
fn summary_in(request: &ModelRequest) -> Option<&str> {
    request.texts("system").get(1).copied()
}

#[test]
fn a_fact_of_message_three_is_in_the_request_of_turn_401() {
    summarised("a fact")
        .drive(|sim| async move {
            for n in 0..401 {
                let text = if n == 2 { format!("Remember fact-blue. {}", said(n)) } else { said(n) };
                sim.ask(&text).await;
            }
        })
        .check(|sim, _| {
            let sent = replies(sim);
            assert_eq!(sent.len(), 401);
            let last = sent.last().unwrap();
            let summary = summary_in(last).expect("a summary");
            assert!(
                summary.starts_with("Summary of the conversation so far (the messages themselves are kept):"),
                "{summary}"
            );
            assert!(summary.contains("fact-blue"), "{summary}");
            for (n, request) in sent.iter().enumerate() {
                assert!(tokens(request) <= 900, "request {n} has {} tokens", tokens(request));
            }
            assert!(summaries(sim).iter().all(|request| request.body["model"] == "cheap"));
            assert!(summaries(sim)[0].body["tools"].is_null(), "it is sent no tools");
        })
        .once();
}

#[test]
fn the_beginning_of_requests_changes_once_for_each_epoch() {
    summarised("a cache")
        .drive(|sim| async move {
            for n in 0..60 {
                sim.ask(&said(n)).await;
                settled(&sim).await;
            }
            let epochs = context(&sim).await["summary"]["epoch"].as_u64().unwrap() as usize;
            let sent = replies(&sim);
            let changes =
                sent.windows(2).filter(|pair| !pair[1].messages().starts_with(pair[0].messages())).count();
            assert!(epochs >= 4, "{epochs} epochs");
            assert!(changes <= epochs, "{changes} changes of the beginning in {epochs} epochs");
        })
        .once();
}

#[test]
fn the_route_shows_the_summary_and_those_before_it() {
    summarised("shown")
        .drive(|sim| async move {
            assert_eq!(context(&sim).await["summary"], Value::Null);
            for n in 0..60 {
                sim.ask(&format!("fact-{n} {}", said(n))).await;
                settled(&sim).await;
            }
            let shown = context(&sim).await;
            let (summary, all) = (&shown["summary"], shown["summaries"].as_array().unwrap());
            assert_eq!(summary["model"], "cheap");
            assert_eq!((&summary["stale"], &all[0]), (&json!(false), summary));
            assert!(summary["text"].as_str().unwrap().contains("fact-0 "), "{summary}");
            assert!(
                summary["tokens"].as_u64().unwrap() > 10 && shown["parts"]["summary"].as_u64().unwrap() > 10
            );
            assert!(all.len() <= 10 && all.len() >= 4, "{} are kept", all.len());
            let epochs: Vec<i64> = all.iter().map(|one| one["epoch"].as_i64().unwrap()).collect();
            assert!(epochs.windows(2).all(|pair| pair[0] == pair[1] + 1), "{epochs:?}");
            let history = sim.history().await;
            let at = |id: &Value| history.iter().position(|m| m["id"] == *id).expect("a message");
            assert_eq!(at(&summary["upto"]) + 1, at(&shown["history"]["from"]), "history begins behind it");
            assert_eq!(history.len(), 120, "nothing is deleted");
            let page = include_str!("../../../docs/context.md");
            let example = page.split("```json\n").filter_map(|rest| rest.split("```").next()).last().unwrap();
            let example: Value = serde_json::from_str(example).expect("the page has JSON");
            let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            for part in ["parts", "history", "summary"] {
                assert_eq!(fields(&shown[part]), fields(&example[part]), "docs/context.md, {part}");
            }
            assert_eq!(fields(&sim.get(ThreadRoute::GetContext, &[]).await), fields(&example));
            sim.evict().await;
            assert_eq!(context(&sim).await, shown, "read anew it is the same");
        })
        .once();
}

#[test]
fn without_the_key_nothing_is_asked_and_nothing_made() {
    summarised("none")
        .define(|catalog| {
            catalog["prompts"]["p"].as_object_mut().expect("a prompt").remove("summary");
        })
        .drive(|sim| async move {
            for n in 0..30 {
                sim.ask(&said(n)).await;
            }
            let refused = asked(&sim, ThreadRoute::Summarize).await;
            assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("conflict")));
        })
        .check(|sim, _| {
            assert!(summaries(sim).is_empty() && !sim.member.has_table("summaries"));
        })
        .calm();
}

/// A thread with seven turns, whose summary takes a while.
fn in_flight(name: &'static str) -> Scenario {
    summarised(name)
        .define(|catalog| catalog["prompts"]["p"]["context"]["maxInputTokens"] = 4_000.into())
        .answers(|request| {
            let answer = both(request).stream(request.index);
            if is_summary(request) { answer.after(20 * SECOND_US) } else { answer }
        })
}

async fn seven_turns(sim: &Sim) {
    for n in 0..7 {
        sim.ask(&format!("fact-{n} {}", said(n))).await;
    }
}

/// The first message says something else.
async fn change_first(sim: &Sim) {
    let first = sim.history().await[0]["id"].as_str().unwrap().to_owned();
    let body = json!({ "content": "fact-new" }).to_string();
    sim.insist(ThreadRoute::PatchMessage(first.clone()), &[], None, body).await;
    // It is not what was posted any more.
    sim.accepted.borrow_mut().retain(|message| message.id != first);
}

async fn asked(sim: &Sim, route: ThreadRoute) -> Seen {
    sim.insist(route, &[], None, String::new()).await
}

pub(super) async fn summarise(sim: &Sim) -> Value {
    let answered = asked(sim, ThreadRoute::Summarize).await;
    assert_eq!(answered.status, 202, "{}", answered.body);
    answered.body
}

#[test]
fn of_two_that_race_one_is_stored_and_the_other_thrown_away() {
    in_flight("a race")
        .drive(|sim| async move {
            seven_turns(&sim).await;
            summarise(&sim).await;
            sim.until("the first is asked for", |sim| summaries(sim).len() == 1).await;
            let gone = asked(&sim, ThreadRoute::DropSummary).await;
            assert_eq!(gone.status, 204);
            summarise(&sim).await;
            settled(&sim).await;
            let shown = context(&sim).await;
            assert_eq!(
                (&shown["summary"]["epoch"], shown["summaries"].as_array().unwrap().len()),
                (&json!(2), 1)
            );
            assert_eq!(summaries(&sim).len(), 2);
            let notes: Vec<String> =
                sim.member.database.ask("SELECT data ->> 'code' FROM logs WHERE kind = 'note'");
            assert_eq!(notes, ["summary_stale"]);
        })
        .calm();
}

#[test]
fn a_message_that_is_changed_meanwhile_has_it_made_again() {
    in_flight("changed meanwhile")
        .drive(|sim| async move {
            seven_turns(&sim).await;
            summarise(&sim).await;
            sim.until("it is asked for", |sim| summaries(sim).len() == 1).await;
            change_first(&sim).await;
            settled(&sim).await;
            let text = context(&sim).await["summary"]["text"].as_str().unwrap().to_owned();
            assert!(text.contains("fact-new") && !text.contains("fact-0"), "{text}");
            assert_eq!(summaries(&sim).len(), 2);
        })
        .calm();
}

#[test]
fn what_was_deleted_is_in_no_later_request() {
    in_flight("deleted")
        .drive(|sim| async move {
            seven_turns(&sim).await;
            summarise(&sim).await;
            settled(&sim).await;
            sim.ask("before").await;
            assert!(summary_in(replies(&sim).last().unwrap()).unwrap().contains("fact-0 "));
            let history = sim.history().await;
            let first = history[0]["id"].as_str().unwrap().to_owned();
            sim.insist(ThreadRoute::DeleteMessage(first.clone()), &[], None, String::new()).await;
            // Its outcome went with it.
            sim.accepted.borrow_mut().retain(|message| message.id != first);
            let before = sim.world.outside.requests.borrow().len();
            sim.ask("after").await;
            settled(&sim).await;
            sim.ask("and later").await;
            for request in sim.world.outside.requests.borrow().iter().skip(before) {
                assert!(!request.body.to_string().contains("fact-0 "), "{}", request.body);
            }
            let last = replies(&sim);
            let summary = summary_in(last.last().unwrap()).expect("a new summary");
            assert!(summary.contains("fact-1"), "{summary}");
            let kept: Vec<String> = sim.member.database.ask("SELECT text FROM summaries");
            assert!(kept.iter().all(|text| !text.contains("fact-0 ")), "{kept:?}");
        })
        .calm();
}

#[test]
fn a_model_that_always_fails_holds_up_no_turn() {
    summarised("always failing")
        .answers(|request| match is_summary(request) {
            true => Answer::status(500, "{}"),
            false => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            let mut told = 0;
            for n in 0..40 {
                let outcome = sim.ask(&said(n)).await;
                assert_eq!(outcome["outcome"], "completed", "{outcome}");
                settled(&sim).await;
                let found = outcome["diagnostics"].as_array().cloned().unwrap_or_default();
                told += found.iter().filter(|entry| entry["code"] == "summary_paused").count();
                if n == 16 {
                    assert!((1..=4).contains(&summaries(&sim).len()), "{}", summaries(&sim).len());
                }
            }
            assert!((1..=4).contains(&told), "told {told} times");
            assert!(summaries(&sim).len() <= 12, "{}", summaries(&sim).len());
            let sent = replies(&sim);
            assert!(sent.iter().all(|request| tokens(request) <= 900), "the cut does its work");
        })
        .once();
}

/// One turn of sixty steps.
fn long() -> Scenario {
    summarised("one turn")
        .setup(|sim| {
            sim.world.outside.native("work", |_, before| {
                let text = format!("{before} {}", "word ".repeat(60));
                crate::host::Native::Gives(SECOND_US, bobbin::definitions::message::ToolResult::success(text))
            });
        })
        .answers(|request| {
            if is_summary(request) {
                return Say::text("Some work was done.").stream(request.index);
            }
            match request.index {
                n if n < 60 => Say::call("work", &json!({ "n": n })).stream(n),
                n => Say::text("done").stream(n),
            }
        })
        .drive(|sim| async move {
            sim.ask("open and work long").await;
        })
}

#[test]
fn a_summary_that_is_written_while_a_run_goes_on_is_a_span_of_it() {
    long()
        .drive(|sim| async move {
            sim.ask("open and work long").await;
            let told = "kind = 'llm_request' AND data ->> 'purpose' = 'summary' AND run = 1";
            let rows: Vec<i64> = sim.member.database.ask(&format!("SELECT count(*) FROM logs WHERE {told}"));
            let body = sim.get(ThreadRoute::GetSpans("r_1".to_owned()), &[]).await;
            let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
            let own = spans.iter().find(|span| span["name"].as_str().unwrap().starts_with("invoke_agent"));
            let of_summary = |span: &&Value| span.to_string().contains("\"bobbin.purpose\"");
            let found: Vec<&Value> = spans.iter().filter(of_summary).collect();
            assert!(rows[0] > 0 && found.len() as i64 == rows[0], "{rows:?} {found:?}");
            for span in found {
                assert_eq!(span["name"], "chat cheap");
                assert_eq!(span["parentSpanId"], own.unwrap()["spanId"]);
            }
        })
        .once();
}

#[test]
fn a_turn_that_is_too_long_is_summarised_between_its_steps() {
    long()
        .check(|sim, _| {
            let sent = replies(sim);
            assert!(summaries(sim).len() >= 2, "{} summaries", summaries(sim).len());
            for request in &sent {
                assert_eq!(
                    request.texts("user"),
                    ["open and work long"],
                    "what opened the turn is in its place"
                );
            }
            let last = sent.last().unwrap();
            assert!(summary_in(last).is_some_and(|text| text.ends_with("Some work was done.")));
            assert!(tokens(last) <= 900, "{}", tokens(last));
        })
        .once();
}

#[test]
fn a_step_may_wait_for_its_summary() {
    summarised("before the step")
        .define(|catalog| catalog["prompts"]["p"]["summary"]["mode"] = "before_step".into())
        .drive(|sim| async move {
            for n in 0..40 {
                sim.ask(&said(n)).await;
            }
        })
        .terms(|terms| terms.overlap = false)
        .check(|sim, _| {
            let requests = sim.world.outside.requests.borrow();
            let pairs: Vec<_> = requests.windows(2).filter(|pair| is_summary(&pair[0])).collect();
            assert!(pairs.len() >= 2);
            for pair in pairs {
                assert!(
                    summary_in(&pair[1]).is_some_and(|text| text.contains("Known:")),
                    "the next request has it"
                );
            }
        })
        .once();
}

#[test]
fn a_step_does_not_wait_for_ever() {
    summarised("waits a minute")
        .define(|catalog| catalog["prompts"]["p"]["summary"]["mode"] = "before_step".into())
        .answers(|request| match is_summary(request) {
            true => Answer::silence(),
            false => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            let mut longest = 0;
            for n in 0..14 {
                let begun = sim.world.now_us();
                assert_eq!(sim.ask(&said(n)).await["outcome"], "completed");
                longest = longest.max(sim.world.now_us() - begun);
            }
            assert!((60 * SECOND_US..75 * SECOND_US).contains(&longest), "{longest}");
        })
        .once();
}

#[test]
fn one_that_is_too_long_is_asked_for_again_and_then_cut() {
    in_flight("too long")
        .answers(|request| match is_summary(request) {
            true => Say::text("A sentence of six words here. ".repeat(100)).stream(request.index),
            false => clerk(request).stream(request.index),
        })
        .drive(|sim| async move {
            seven_turns(&sim).await;
            summarise(&sim).await;
            settled(&sim).await;
            let asked = summaries(&sim);
            assert_eq!(asked.len(), 2);
            assert!(!asked[0].system().contains("too long") && asked[1].system().contains("too long"));
            let summary = context(&sim).await["summary"].clone();
            assert!(summary["tokens"].as_u64().unwrap() <= 200, "{summary}");
            assert!(summary["text"].as_str().unwrap().ends_with("words here."), "{summary}");
        })
        .calm();
}

#[test]
fn a_history_that_fits_no_request_is_done_in_pieces() {
    in_flight("pieces")
        .define(|catalog| {
            catalog["models"]["cheap"]["capabilities"] = json!({ "maxContextTokens": 1_200 });
            catalog["prompts"]["p"]["summary"]["targetRatio"] = json!(0.1);
        })
        .drive(|sim| async move {
            for n in 0..30 {
                sim.ask(&format!("fact-{n} {}", said(n))).await;
            }
            summarise(&sim).await;
            settled(&sim).await;
            assert!(summaries(&sim).len() >= 3, "{} requests", summaries(&sim).len());
            let text = context(&sim).await["summary"]["text"].as_str().unwrap().to_owned();
            assert!(text.contains("fact-0") && text.contains("fact-15"), "{text}");
        })
        .calm();
}

#[test]
fn listeners_are_told_and_the_log_says_what_it_was_for() {
    summarised("told")
        .drive(|sim| async move {
            sim.listen(Filter { events: true, ..Filter::default() }, None).await.unwrap();
            for n in 0..20 {
                sim.ask(&said(n)).await;
                settled(&sim).await;
            }
            let epoch = context(&sim).await["summary"]["epoch"].as_u64().unwrap();
            let frames = sim.world.frames.borrow();
            let frames: Vec<&Value> = frames.iter().map(|(_, frame)| &frame.data).collect();
            let updated = frames.iter().filter(|frame| frame["eventType"] == "summary_updated").count();
            assert_eq!(updated as u64, epoch, "one for each epoch");
            let lines: Vec<&&Value> =
                frames.iter().filter(|frame| frame["kind"] == "rolling_summary").collect();
            assert!(
                lines.len() as u64 >= epoch
                    && lines[0]["message"].as_str().unwrap().starts_with("Summarising ")
            );
            let text: Vec<&&Value> =
                frames.iter().filter(|frame| frame.to_string().contains("Known:")).collect();
            assert!(text.is_empty(), "nobody is streamed its text: {text:?}");
            let purposes: Vec<i64> = sim.member.database.ask(
                "SELECT count(*) FROM logs WHERE kind = 'llm_request' AND data ->> 'purpose' = 'summary'",
            );
            assert_eq!(purposes, [summaries(&sim).len() as i64]);
        })
        .once();
}

/// What must hold of summaries whatever failed.
fn nothing_lost(sim: &Sim, history: &History) {
    let users = history.texts("user").len();
    assert_eq!(users, history.texts("assistant").len());
    for request in replies(sim) {
        // What no summary covers is in the request, as far as it is the newest.
        assert!(request.texts("user").last().is_some());
    }
    summary_sides::facts_are_kept(sim);
}

/// Turns that need a summary.
fn growing() -> Scenario {
    summarised("growing")
        .drive(|sim| async move {
            for n in 0..12 {
                sim.ask(&format!("fact-{n} {}", said(n))).await;
            }
            settled(&sim).await;
        })
        .check(nothing_lost)
        .sampled(60)
}

/// One that is asked for, and a message that goes.
fn changing() -> Scenario {
    in_flight("changing")
        .drive(|sim| async move {
            for n in 0..4 {
                sim.ask(&format!("fact-{n} {}", said(n))).await;
            }
            summarise(&sim).await;
            change_first(&sim).await;
            settled(&sim).await;
            let text = context(&sim).await["summary"]["text"].as_str().unwrap_or_default().to_owned();
            assert!(!text.contains("fact-0"), "{text}");
        })
        .sampled(60)
}

/// A long turn, summarised between its steps.
fn stepping() -> Scenario {
    summarised("stepping")
        .setup(|sim| {
            sim.world.outside.native("work", |_, before| {
                let text = format!("{before} {}", "word ".repeat(100));
                crate::host::Native::Gives(SECOND_US, bobbin::definitions::message::ToolResult::success(text))
            });
        })
        .answers(|request| {
            if is_summary(request) {
                return Say::text("Some work was done.").stream(request.index);
            }
            // Results that are summarised cannot be counted: each says how many came before it.
            let last =
                request.results().last().and_then(|text| text.split(' ').next()?.parse::<usize>().ok());
            let say = match last {
                Some(13..) => Say::text("done"),
                last => Say::call("work", &json!({ "n": last.unwrap_or(0) })),
            };
            say.stream(request.index)
        })
        .drive(|sim| async move {
            sim.ask("work long").await;
            settled(&sim).await;
        })
        .check(|sim, history| {
            let (looking, route) = (sim.clone(), ThreadRoute::GetRun("r_1".into()));
            let run = sim.world.drive(async move { looking.get(route, &[("trace", "1")]).await });
            let trace = run["trace"].as_array().unwrap();
            let told = trace.iter().filter(|entry| entry["kind"] == "summary.updated").count();
            let stored = "SELECT count(*) FROM summaries, runs WHERE runs.id = 1 AND created_us <= ended_us";
            assert_eq!(sim.member.database.ask::<i64>(stored), [told as i64], "{trace:?}");
            assert!(told > 0 || history.faults > 0, "{trace:?}");
        })
        .sampled(60)
}

/// Stories for the soak.
pub fn all() -> Vec<Scenario> {
    vec![growing(), changing(), stepping()]
}

#[test]
fn epochs_grow_by_one_whatever_fails() {
    growing().sweep();
}

#[test]
fn a_change_is_never_lost_whatever_fails() {
    changing().sweep();
}

#[test]
fn no_summary_ends_between_a_call_and_its_result_whatever_fails() {
    stepping().sweep();
}
