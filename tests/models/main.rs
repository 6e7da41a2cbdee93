//! Answers of many providers, decoded whole and cut at every byte: the same reply must come out.
//!
//! The files in `fixtures/` were written after the shape of real answers (keys, order, chunking), with short texts. Each
//! is also given with CR LF and with CR as line ends, since the standard allows all three.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod anthropic;
mod halves;
mod responses;

use bobbin::definitions::message::ToolCall;
use bobbin::definitions::opaque::Opaque;
use bobbin::models::{
    Decoder, Delta, FinishReason, Payload, PositionedBlock, ProviderCode, ProviderError, Reply, ReplyBuilder,
    Usage, openai,
};

macro_rules! fixture {
    ($name:literal) => {
        ($name, include_str!(concat!("fixtures/", $name, ".txt")))
    };
}
use fixture;

type Fixture = (&'static str, &'static str);

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Reply, ProviderError> {
    decode_with(Decoder::Openai(openai::Decoder::new(None)), chunks)
}

fn decode_with<'a>(
    mut decoder: Decoder,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Reply, ProviderError> {
    let mut builder = ReplyBuilder::default();
    let mut deltas = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut deltas)?;
        deltas.drain(..).try_for_each(|delta| builder.push(&delta))?;
    }
    decoder.finish(&mut deltas)?;
    deltas.drain(..).try_for_each(|delta| builder.push(&delta))?;
    Ok(builder.finish())
}

/// Decodes an answer whole, byte by byte, and cut in two at every byte, with every kind of line end (the longer ones
/// are cut in two with one kind only: the time grows with the square of their length).
fn decode_in_every_way(fixture: Fixture) -> Result<Reply, ProviderError> {
    in_every_way(fixture, &|| Decoder::Openai(openai::Decoder::new(None)))
}

fn in_every_way((name, text): Fixture, decoder: &dyn Fn() -> Decoder) -> Result<Reply, ProviderError> {
    let decode = |chunks: &mut dyn Iterator<Item = &[u8]>| decode_with(decoder(), chunks);
    let expected = decode(&mut [text.as_bytes()].into_iter());
    for line_end in ["\n", "\r\n", "\r"] {
        let text = text.replace('\n', line_end);
        let bytes = text.as_bytes();
        assert_eq!(decode(&mut bytes.chunks(1)), expected, "{name} byte by byte, line end {line_end:?}");
        assert_eq!(decode(&mut bytes.chunks(7)), expected, "{name} in sevens, line end {line_end:?}");
        if bytes.len() > 1000 && line_end != "\r\n" {
            continue;
        }
        for at in 0..=bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(
                decode(&mut [left, right].into_iter()),
                expected,
                "{name} cut at {at}, line end {line_end:?}"
            );
        }
    }
    expected
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into(), extra_content: None }
}

fn usage(input_tokens: u64, cached_tokens: u64, output_tokens: u64, reasoning_tokens: u64) -> Option<Usage> {
    Some(Usage { input_tokens, cached_tokens, written_tokens: 0, output_tokens, reasoning_tokens })
}

/// Bytes of text and calls before each piece, and the piece.
fn payload(blocks: &[(usize, usize, &str)]) -> Payload {
    let placed = |(text, calls, block): &(usize, usize, &str)| PositionedBlock {
        text: *text,
        calls: *calls,
        block: Opaque::parse((*block).into()).unwrap(),
    };
    Payload::Blocks(blocks.iter().map(placed).collect())
}

#[test]
fn answers_give_their_reply_however_they_are_cut() {
    let cases: Vec<(Fixture, Reply)> = vec![
        (
            fixture!("openai_text"),
            Reply {
                content: "A bobbin is a small\nspool: “Spule” 🧵.".into(),
                finish_reason: Some(FinishReason::Stop),
                usage: usage(1043, 1024, 76, 64),
                ..Reply::default()
            },
        ),
        (
            fixture!("openai_parallel_calls"),
            Reply {
                tool_calls: vec![
                    call("call_9YpQ", "lookup", r#"{"word":"bobbin \"x\""}"#),
                    call("call_Zz01", "weather", r#"{"city":"Köln"}"#),
                ],
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(82, 0, 43, 0),
                ..Reply::default()
            },
        ),
        (
            fixture!("interleaved_calls"),
            Reply {
                content: "Both.".into(),
                tool_calls: vec![
                    call("call_b", "second", r#"{"n":2}"#),
                    call("call_a", "first", r#"{"n":1}"#),
                ],
                finish_reason: Some(FinishReason::ToolCalls),
                ..Reply::default()
            },
        ),
        (
            fixture!("vllm_reasoning"),
            Reply {
                content: "\n\nHello!".into(),
                reasoning: "The user asks.\n".into(),
                finish_reason: Some(FinishReason::Stop),
                usage: usage(21, 0, 7, 0),
                ..Reply::default()
            },
        ),
        (
            fixture!("llamacpp_call"),
            Reply {
                tool_calls: vec![call("yWgQcPZ1", "now", r#"{"zone":"UTC"}"#)],
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(211, 0, 18, 0),
                ..Reply::default()
            },
        ),
        (
            fixture!("workers_ai_old"),
            Reply {
                content: "Hello 🧵".into(),
                tool_calls: vec![call("", "lookup", r#"{"word":"bobbin"}"#), call("", "now", "{}")],
                usage: usage(20, 0, 8, 0),
                ..Reply::default()
            },
        ),
        (
            fixture!("openrouter_reasoning"),
            Reply {
                content: "Green tea.".into(),
                reasoning: "Hm, tea.".into(),
                payload: payload(&[(
                    10,
                    0,
                    r#"{"type":"reasoning.text","text":"Hm, tea.","format":"anthropic-claude-v1","index":0,"signature":"EqQB/+="}"#,
                )]),
                finish_reason: Some(FinishReason::Stop),
                usage: usage(14, 0, 61, 44),
                ..Reply::default()
            },
        ),
        (
            fixture!("azure_filtered"),
            Reply {
                content: "Guten Tag".into(),
                finish_reason: Some(FinishReason::ContentFilter),
                ..Reply::default()
            },
        ),
        (
            fixture!("ollama_whole_calls"),
            Reply {
                tool_calls: vec![
                    call("call_x1", "add", r#"{"a":1,"b":2}"#),
                    call("call_x2", "add", r#"{"a":3,"b":4}"#),
                ],
                finish_reason: Some(FinishReason::ToolCalls),
                ..Reply::default()
            },
        ),
        (
            fixture!("whole_body"),
            Reply {
                content: "Moment…".into(),
                reasoning: "Look it up.".into(),
                tool_calls: vec![
                    call("call_1", "lookup", r#"{"word":"bobbin"}"#),
                    call("call_2", "now", "{}"),
                ],
                payload: payload(&[(9, 2, r#"{"message":{"reasoning_content":"Look it up."}}"#)]),
                finish_reason: Some(FinishReason::ToolCalls),
                usage: usage(30, 0, 12, 0),
            },
        ),
        (fixture!("short"), short()),
    ];
    for (fixture, expected) in cases {
        assert_eq!(decode_in_every_way(fixture), Ok(expected), "{}", fixture.0);
    }
}

#[test]
fn failures_are_the_same_however_they_are_cut() {
    use ProviderCode::{ContextLength, ServerError};
    for (fixture, code, status, message) in [
        (
            fixture!("openai_error"),
            ServerError,
            None,
            "The server had an error while processing your request. Sorry about that!",
        ),
        (fixture!("openrouter_error"), ServerError, Some(502), "Provider returned error: Overloaded"),
        (
            fixture!("llamacpp_old_error"),
            ContextLength,
            Some(400),
            "the request exceeds the available context size. try increasing the context size or enable context shift",
        ),
        (fixture!("broke_off"), ServerError, None, "the stream broke off before the answer was complete"),
        (
            fixture!("whole_body_error"),
            ProviderCode::InvalidRequest,
            None,
            "model \"m\" not found, try pulling it first",
        ),
    ] {
        let error = decode_in_every_way(fixture).expect_err(fixture.0);
        assert_eq!(
            (error.code, error.status, error.message.as_str()),
            (code, status, message),
            "{}",
            fixture.0
        );
    }
}

/// What the provider calls its answer, in the order in which it is told.
fn names(mut decoder: Decoder, text: &str, cut: usize) -> Vec<(String, String)> {
    let mut deltas = Vec::new();
    text.as_bytes().chunks(cut).for_each(|bytes| decoder.push(bytes, &mut deltas).unwrap());
    decoder.finish(&mut deltas).unwrap();
    let named = deltas.into_iter().filter_map(|delta| match delta {
        Delta::Response { id, model } => Some((id, model)),
        _ => None,
    });
    named.collect()
}

#[test]
fn the_answer_of_a_provider_is_named_once() {
    let of = |id: &str, model: &str| vec![(id.to_owned(), model.to_owned())];
    for ((name, text), expected) in [
        (fixture!("openai_text"), of("chatcmpl-C8xq0aQmT7kZr2", "gpt-5-mini-2025-08-07")),
        (fixture!("azure_filtered"), of("chatcmpl-AzR1", "gpt-4o-2024-11-20")),
        (fixture!("ollama_whole_calls"), of("chatcmpl-411", "llama3.2")),
        (fixture!("whole_body"), of("chatcmpl-W1", "m")),
    ] {
        for cut in [1, 7, text.len()] {
            let decoder = Decoder::Openai(openai::Decoder::new(None));
            assert_eq!(names(decoder, text, cut), expected, "{name} in pieces of {cut}");
        }
    }
    for ((name, text), expected) in [
        (fixture!("anthropic_text"), of("msg_01XFDUDYJgAACzvnptvVoYEL", "claude-sonnet-4-5-20250929")),
        (fixture!("anthropic_whole"), of("msg_01", "claude-sonnet-4-5-20250929")),
    ] {
        for cut in [1, text.len()] {
            let decoder = Decoder::Anthropic(bobbin::models::anthropic::Decoder::new(None));
            assert_eq!(names(decoder, text, cut), expected, "{name} in pieces of {cut}");
        }
    }
}

fn short() -> Reply {
    Reply {
        content: "Grüße 🧵".into(),
        tool_calls: vec![call("c", "f", "{}")],
        finish_reason: Some(FinishReason::ToolCalls),
        ..Reply::default()
    }
}

#[test]
fn two_cuts_anywhere_change_nothing() {
    let text = fixture!("short").1.replace('\n', "\r\n");
    let bytes = text.as_bytes();
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(decode(chunks), Ok(short()), "cut at {first} and {second}");
        }
    }
}

#[test]
fn an_answer_cut_short_anywhere_is_never_taken_for_a_whole_one() {
    for (name, text) in [fixture!("openai_text"), fixture!("openai_parallel_calls"), fixture!("whole_body")] {
        let whole = decode([text.as_bytes()]).expect(name);
        for end in 0..text.len() {
            if let Ok(reply) = decode([&text.as_bytes()[..end]]) {
                // Only what tells the cost may be missing.
                assert_eq!(
                    Reply { usage: None, ..reply },
                    Reply { usage: None, ..whole.clone() },
                    "{name} up to {end}"
                );
            }
        }
    }
}
