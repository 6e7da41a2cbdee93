//! The built-in model: deterministic, without network or key. A fresh checkout can reply with it, and
//! tests and demonstrations control what the model does.
//!
//! The last user message decides the reply:
//! * lines `call NAME {json}` call these tools, in order, in one reply; the next step replies `NAME
//!   said: <result>`, with a line for each result after that message;
//! * `count N` streams the numbers from 1 to N;
//! * anything else is answered with `You said: …`, and a list of the available tools.
//!
//! Two more lines apply to each reply until the next message: `cost N` reports N tokens of output, and
//! with `slow N` a reply takes N seconds.
//!
//! Words are [`WORD_US`] apart, and usage is counted in words. With the model id `demo-slow` they are
//! [`SLOW_WORD_US`] apart. `demo-fail` answers the first two streams with error 503.

use crate::{ChatMessage, ChatRequest, Delta, FinishReason, Part, ProviderCall, ProviderCode, ProviderError};
use bobbin_definitions::definitions::model::Usage;
use bobbin_definitions::definitions::prompt::ToolChoice;
use bobbin_definitions::limits::SECOND_US;

/// Microseconds between two words.
pub const WORD_US: i64 = 15_000;
/// Microseconds between two words of `demo-slow`.
pub const SLOW_WORD_US: i64 = 100_000;
/// Number of streams that `demo-fail` fails.
pub const FAILING_STREAMS: u64 = 2;
/// Maximum number of words of a message or a result that are repeated. A longer text is cut, so that
/// echoes of echoes end.
pub const ECHO_WORDS: usize = 500;
/// The largest N of `count N`.
pub const COUNT_MAX: u32 = 100_000;
/// The largest N of `cost N`.
pub const COST_MAX: u64 = 10_000_000;
/// The largest N of `slow N`.
pub const SLOW_MAX: u64 = 600;

/// An answer and its timing.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Microseconds to wait before each delta, and the delta.
    pub steps: Vec<(i64, Delta)>,
}

/// Answers a call at the script's pace.
pub async fn answer_call(call: ProviderCall) -> Result<(), ProviderError> {
    let mut at = call.now_us();
    for (delay_us, delta) in script(&call.request, u64::from(call.stream))?.steps {
        at += delay_us;
        call.sleep_until(at).await;
        call.send(delta).await;
    }
    Ok(())
}

/// The reply to a request. `stream` counts the streams of a reply, from 1: retries, fallbacks and
/// recoveries.
///
/// # Errors
/// `server_error` with status 503, from `demo-fail` for the first [`FAILING_STREAMS`] streams.
pub fn script(chat: &ChatRequest, stream: u64) -> Result<Script, ProviderError> {
    if chat.model == "demo-fail" && stream <= FAILING_STREAMS {
        return Err(ProviderError {
            code: ProviderCode::ServerError,
            status: Some(503),
            retry_after_ms: None,
            is_network: false,
            message: format!("demo-fail is unavailable (stream {stream} of {FAILING_STREAMS} that fail)"),
        });
    }
    let word_us = if chat.model == "demo-slow" { SLOW_WORD_US } else { WORD_US };
    let mut steps = Vec::new();
    let finish = match answer(chat) {
        ScriptedReply::Text(text) => {
            steps.extend(words(&text).map(|word| (word_us, Delta::Text(word.to_owned()))));
            FinishReason::Stop
        }
        ScriptedReply::Calls(calls) => {
            // Ids are unique in a thread, as a provider's are.
            let earlier = chat.messages.iter().map(|message| calls_of(message)).sum::<usize>();
            for (index, (name, arguments)) in calls.iter().enumerate() {
                let id = format!("call_demo_{}", earlier + index + 1);
                steps.push((word_us, Delta::CallStart { index, id, name: (*name).to_owned() }));
                let pieces = words(arguments);
                steps.extend(
                    pieces.map(|text| (word_us, Delta::CallArguments { index, text: text.to_owned() })),
                );
            }
            FinishReason::ToolCalls
        }
    };
    if let Some(seconds) = wish(chat, "slow ", SLOW_MAX) {
        pace(&mut steps, seconds);
    }
    // A provider does not exceed the limit of the request.
    let cost = wish(chat, "cost ", COST_MAX).map(|n| n.min(chat.max_output_tokens.unwrap_or(n)));
    let usage = Usage {
        input_tokens: chat.messages.iter().map(|message| words_of(message)).sum::<usize>() as u64,
        output_tokens: cost.unwrap_or(steps.len() as u64),
        ..Usage::default()
    };
    steps.push((0, Delta::Finish(finish)));
    steps.push((0, Delta::Usage(usage)));
    Ok(Script { steps })
}

enum ScriptedReply<'a> {
    Text(String),
    /// Names and arguments.
    Calls(Vec<(&'a str, &'a str)>),
}

/// The last user message: its index and its parts.
fn last_user_message(chat: &ChatRequest) -> (Option<usize>, &[Part]) {
    let at = chat.messages.iter().rposition(|message| matches!(**message, ChatMessage::User(_)));
    match at.and_then(|at| chat.messages.get(at)).map(|message| &**message) {
        Some(ChatMessage::User(parts)) => (at, parts),
        _ => (at, &[]),
    }
}

/// The number on a line of the last user message that starts with `begins`.
fn wish(chat: &ChatRequest, begins: &str, most: u64) -> Option<u64> {
    let lines = last_user_message(chat).1.iter().filter_map(text_of).flat_map(str::lines);
    let number = |line: &str| line.trim().strip_prefix(begins)?.trim().parse::<u64>().ok();
    lines.filter_map(number).find(|n| *n <= most)
}

/// Spreads a reply over `seconds`.
fn pace(steps: &mut [(i64, Delta)], seconds: u64) {
    let (count, all) = (steps.len().max(1) as i64, seconds as i64 * SECOND_US);
    for (step, n) in steps.iter_mut().zip(1..) {
        step.0 = all * n / count - all * (n - 1) / count;
    }
}

fn answer(chat: &ChatRequest) -> ScriptedReply<'_> {
    let (trigger_at, said) = last_user_message(chat);
    let since = chat.messages.get(trigger_at.map_or(0, |at| at + 1)..).unwrap_or_default();
    let results: Vec<String> = since
        .iter()
        .filter_map(|message| match &**message {
            ChatMessage::Tool { name, content, .. } => Some(format!("{name} said: {}", shortened(content))),
            _ => None,
        })
        .collect();
    if !results.is_empty() {
        return ScriptedReply::Text(results.join("\n"));
    }
    let calls: Vec<_> = said.iter().filter_map(text_of).flat_map(str::lines).filter_map(call).collect();
    if !calls.is_empty() && chat.tool_choice != ToolChoice::None {
        return ScriptedReply::Calls(calls);
    }
    let text = said.iter().map(|part| text_of(part).unwrap_or("[image]")).collect::<Vec<_>>().join("\n");
    if let Some(last) = text.trim().strip_prefix("count ").and_then(|n| n.trim().parse().ok())
        && (1..=COUNT_MAX).contains(&last)
    {
        return ScriptedReply::Text((1..=last).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
    }
    let tools = chat.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    let tools = if tools.is_empty() { tools } else { format!("\n\nTools I may call: {tools}.") };
    ScriptedReply::Text(format!("You said: {}{tools}", shortened(text.trim())))
}

/// Parses `call NAME {json}`; the arguments are optional. The text after the brace need not be JSON, so
/// that malformed arguments can be tried.
fn call(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim().strip_prefix("call ")?.trim_start();
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match arguments.trim() {
        "" if !name.is_empty() => Some((name, "{}")),
        arguments if arguments.starts_with('{') => Some((name, arguments)),
        _ => None,
    }
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text),
        Part::Image { .. } => None,
    }
}

/// The words of a text, each with its trailing white space.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let gap = rest.find(|c: char| !c.is_whitespace())?;
        let word = rest.get(gap..)?.find(char::is_whitespace).map_or(rest.len(), |end| gap + end);
        let next = rest.get(word..)?.find(|c: char| !c.is_whitespace()).map_or(rest.len(), |end| word + end);
        let (piece, after) = rest.split_at(next);
        rest = after;
        Some(piece)
    })
}

fn shortened(text: &str) -> String {
    let mut rest = words(text);
    let mut kept: String = rest.by_ref().take(ECHO_WORDS).collect();
    if rest.next().is_some() {
        kept.truncate(kept.trim_end().len());
        kept.push_str(" …");
    }
    kept
}

fn calls_of(message: &ChatMessage) -> usize {
    if let ChatMessage::Assistant { tool_calls, .. } = message { tool_calls.len() } else { 0 }
}

fn words_of(message: &ChatMessage) -> usize {
    let count = |text: &str| text.split_whitespace().count();
    match message {
        ChatMessage::System(content) | ChatMessage::Tool { content, .. } => count(content),
        ChatMessage::User(parts) => parts.iter().map(|part| text_of(part).map_or(1, count)).sum(),
        ChatMessage::Assistant { content, tool_calls, .. } => {
            count(content) + tool_calls.iter().map(|call| 1 + count(&call.arguments)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CachedJson, Reply, ReplyBuilder, ToolDefinition};
    use bobbin_definitions::definitions::message::{ToolCall, ToolStatus};

    fn user(text: &str) -> ChatMessage {
        ChatMessage::User(vec![Part::Text(text.into())])
    }

    fn calls(calls: &[(&str, &str, &str)]) -> ChatMessage {
        let call = |(id, name, arguments): &(&str, &str, &str)| ToolCall {
            id: (*id).into(),
            name: (*name).into(),
            arguments: (*arguments).into(),
            extra_content: None,
        };
        ChatMessage::Assistant {
            content: String::new(),
            tool_calls: calls.iter().map(call).collect(),
            payload: vec![],
        }
    }

    fn result(id: &str, name: &str, content: &str) -> ChatMessage {
        ChatMessage::Tool {
            call_id: id.into(),
            name: name.into(),
            content: content.into(),
            status: ToolStatus::Success,
            images: vec![],
        }
    }

    fn request(messages: Vec<ChatMessage>) -> ChatRequest {
        ChatRequest {
            model: "demo".into(),
            messages: messages.into_iter().map(CachedJson::from).collect(),
            ..ChatRequest::default()
        }
    }

    fn fold(script: &Script) -> Reply {
        let mut builder = ReplyBuilder::default();
        script.steps.iter().for_each(|(_, delta)| builder.push(delta).unwrap());
        builder.finish()
    }

    fn reply(messages: Vec<ChatMessage>) -> Reply {
        fold(&script(&request(messages), 1).unwrap())
    }

    #[test]
    fn it_repeats_what_was_said_word_by_word() {
        let script =
            script(&request(vec![ChatMessage::System("Be kind.".into()), user("Good  morning\n")]), 1)
                .unwrap();
        let text = |text: &str| Delta::Text(text.into());
        let usage = Usage { input_tokens: 4, output_tokens: 4, ..Usage::default() };
        assert_eq!(
            script.steps,
            [
                (15_000, text("You ")),
                (15_000, text("said: ")),
                (15_000, text("Good  ")),
                (15_000, text("morning")),
                (0, Delta::Finish(FinishReason::Stop)),
                (0, Delta::Usage(usage)),
            ]
        );
    }

    #[test]
    fn the_last_user_message_decides() {
        for (said, answer) in [
            (vec![], "You said: "),
            (
                vec![
                    user("a"),
                    ChatMessage::Assistant { content: "b".into(), tool_calls: vec![], payload: vec![] },
                    user("c"),
                ],
                "You said: c",
            ),
            (vec![user("count 3"), user("count 4")], "1 2 3 4"),
            (vec![user(" count 1 ")], "1"),
            (vec![user("count 0")], "You said: count 0"),
            (vec![user("count on me")], "You said: count on me"),
            (vec![user("count 4000000000")], "You said: count 4000000000"),
            (vec![user("call me maybe")], "You said: call me maybe"),
            (vec![user("Please call lookup {}")], "You said: Please call lookup {}"),
        ] {
            assert_eq!(reply(said.clone()).content, answer, "{said:?}");
        }
        let image = Part::Image { media_type: "image/png".into(), data: "AA".into() };
        let seen = ChatMessage::User(vec![Part::Text("Look".into()), image]);
        assert_eq!(reply(vec![seen]).content, "You said: Look\n[image]");
    }

    #[test]
    fn it_lists_its_tools() {
        let offer = |name: &str| ToolDefinition {
            name: name.into(),
            description: String::new(),
            parameters: bobbin_definitions::json!({}),
            strict: false,
        };
        let chat =
            ChatRequest { tools: vec![offer("lookup"), offer("add")].into(), ..request(vec![user("hi")]) };
        assert_eq!(
            fold(&script(&chat, 1).unwrap()).content,
            "You said: hi\n\nTools I may call: lookup, add."
        );
    }

    #[test]
    fn it_calls_tools_in_order() {
        let said = "Please:\ncall lookup {\"word\": \"bobbin\"}\n  call now\ncall lookup {broken\n";
        let reply = reply(vec![
            user("call x"),
            calls(&[("call_demo_1", "x", "{}")]),
            result("call_demo_1", "x", "y"),
            user(said),
        ]);
        let ChatMessage::Assistant { tool_calls, .. } = calls(&[
            ("call_demo_2", "lookup", "{\"word\": \"bobbin\"}"),
            ("call_demo_3", "now", "{}"),
            ("call_demo_4", "lookup", "{broken"),
        ]) else {
            panic!()
        };
        assert_eq!((reply.content.as_str(), reply.tool_calls), ("", tool_calls));
        assert_eq!(reply.finish_reason, Some(FinishReason::ToolCalls));
    }

    #[test]
    fn it_calls_nothing_when_it_must_not() {
        let chat = ChatRequest { tool_choice: ToolChoice::None, ..request(vec![user("call now")]) };
        assert_eq!(fold(&script(&chat, 1).unwrap()).content, "You said: call now");
    }

    #[test]
    fn the_next_step_tells_what_the_tools_said() {
        let step = vec![
            user("call lookup {}\ncall now"),
            calls(&[("a", "lookup", "{}"), ("b", "now", "{}")]),
            result("a", "lookup", "A spool."),
            result("b", "now", "Noon."),
        ];
        assert_eq!(reply(step.clone()).content, "lookup said: A spool.\nnow said: Noon.");
        let later = [step, vec![user("Thanks")]].concat();
        assert_eq!(reply(later).content, "You said: Thanks", "results before the current message are old");
    }

    #[test]
    fn a_long_message_has_a_short_echo() {
        let content = reply(vec![user(&"word ".repeat(10_000))]).content;
        assert_eq!(content.split_whitespace().count(), 2 + ECHO_WORDS + 1);
        assert!(content.ends_with("word …"));
        let exact = reply(vec![user(&"word ".repeat(ECHO_WORDS))]).content;
        assert!(exact.ends_with("word"), "nothing was left out");
    }

    #[test]
    fn a_reply_costs_and_takes_what_the_message_says() {
        let of = |chat: &ChatRequest| {
            let script = script(chat, 1).unwrap();
            (fold(&script).usage.unwrap().output_tokens, script.steps.iter().map(|(us, _)| us).sum::<i64>())
        };
        let said = |text: &str| request(vec![user(text)]);
        assert_eq!(of(&said("hello\ncost 5000\nslow 7")), (5_000, 7_000_000));
        let working = request(vec![
            user("call lookup {}\ncost 800\nslow 2"),
            calls(&[("a", "lookup", "{}")]),
            result("a", "lookup", "A spool."),
        ]);
        assert_eq!(of(&working), (800, 2_000_000), "each reply until the next message");
        assert_eq!(fold(&script(&said("call lookup {}\ncost 800"), 1).unwrap()).tool_calls.len(), 1);
        assert_eq!(of(&ChatRequest { max_output_tokens: Some(300), ..said("cost 5000") }).0, 300);
        assert_eq!(of(&said("cost of living")), (5, 75_000));
        assert_eq!(of(&said("slow 601")).1, 60_000, "no longer than it may");
        assert_eq!(of(&request(vec![user("cost 9"), user("hi")])).0, 3, "of the last message alone");
    }

    #[test]
    fn its_slow_and_failing_forms() {
        let model = |model: &str| ChatRequest { model: model.into(), ..request(vec![user("hi")]) };
        let slow = script(&model("demo-slow"), 1).unwrap();
        assert_eq!(slow.steps.iter().map(|(us, _)| us).sum::<i64>(), 300_000);
        for stream in [1, 2] {
            let error = script(&model("demo-fail"), stream).unwrap_err();
            assert_eq!((error.code, error.status), (ProviderCode::ServerError, Some(503)));
            assert!(error.retryable());
        }
        assert_eq!(script(&model("demo-fail"), 3), script(&model("demo"), 1));
    }
}
