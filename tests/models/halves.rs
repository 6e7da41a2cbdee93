//! Characters that a server cut in half between two chunks.

use bobbin::models::{Decoder, anthropic, openai};

use super::decode_with;

fn openai(chunks: &[&str]) -> bobbin::models::Reply {
    let body: String =
        chunks.iter().map(|chunk| format!("data: {{\"choices\":[{{{chunk}}}]}}\n\n")).collect();
    let body = body + "data: [DONE]\n\n";
    decode_with(Decoder::Openai(openai::Decoder::new(None)), [body.as_bytes()]).unwrap()
}

#[test]
fn halves_in_two_chunks_are_one_character() {
    let reply = openai(&[
        r#""delta":{"content":"a\ud83d"}"#,
        r#""delta":{"reasoning":"\ud83d"}"#,
        r#""delta":{"content":"\ude00b"}"#,
        r#""delta":{"reasoning":"\ude00!"}"#,
        r#""delta":{"content":"\ud83d"},"finish_reason":"stop""#,
    ]);
    assert_eq!((reply.content.as_str(), reply.reasoning.as_str()), ("a\u{1f600}b\u{fffd}", "\u{1f600}!"));
}

#[test]
fn one_that_stays_alone_kills_no_answer_wherever_it_stands() {
    let reply = openai(&[
        r#""delta":{"content":"x\ude00","tool_calls":[{"index":0,"id":"c\ud83d","function":{"name":"f\ud83d","arguments":"{\"a\":\"\\ud83d\",\"b\":\"\ud83d"}}]}"#,
        r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\",\"c\":\"\\ud83d\\ude00\"}"}}]},"finish_reason":"tool_calls""#,
    ]);
    let [call] = &reply.tool_calls[..] else { panic!("{reply:?}") };
    assert_eq!(
        (reply.content.as_str(), call.id.as_str(), call.name.as_str()),
        ("x\u{fffd}", "c\u{fffd}", "f\u{fffd}")
    );
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
    assert_eq!(arguments, serde_json::json!({ "a": "\u{fffd}", "b": "\u{1f600}", "c": "\u{1f600}" }));
}

#[test]
fn anthropic_does_the_same_and_gets_its_thinking_back_as_it_was() {
    let events = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t\ud83d"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a\ud83d"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\ude00"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"\\ud83d"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"}"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let reply = decode_with(Decoder::Anthropic(anthropic::Decoder::new(None)), [body.as_bytes()]).unwrap();
    assert_eq!((reply.content.as_str(), reply.reasoning.as_str()), ("a\u{1f600}", "t\u{fffd}"));
    assert_eq!(reply.tool_calls[0].arguments, "{\"a\":\"\u{fffd}\"}");
    let bobbin::models::Payload::Blocks(blocks) = &reply.payload else { panic!("{reply:?}") };
    assert_eq!(blocks[0].block.get(), r#"{"type":"thinking","thinking":"t\ud83d","signature":"s="}"#);
}
