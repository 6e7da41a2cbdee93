//! Decodes a response into deltas: a stream of chunks, or one JSON body from a server that ignores `stream`.

use serde_json::value::RawValue;

use crate::decoding::{End, EventError, Format, ResponseDecoder};
use crate::openai::calls::CallAssembler;
use crate::openai::chunk;
use crate::openai::chunk::{Choice, Chunk, Message, WholeCall};
use crate::openai::details::Details;
use crate::openai::thought::Thought;
use crate::response::SeenNames;
use crate::{Delta, FinishReason, ProviderError};

/// Decoder of one response. It is complete with a finish reason or with `[DONE]`.
pub type Decoder = ResponseDecoder<State>;

/// State of a response so far.
#[derive(Debug, Default)]
pub struct State {
    calls: CallAssembler,
    details: Details,
    thought: Thought,
    named: SeenNames,
    end: End,
}

impl Format for State {
    fn read(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), EventError> {
        let chunk: Chunk<'_> = bobbin_definitions::json::from_slice(json)?;
        self.take(&chunk, out)
    }

    fn is_last(&mut self, data: &[u8], out: &mut Vec<Delta>) -> bool {
        let last = data == b"[DONE]";
        if last {
            self.end = End::Done;
            self.hand_over(out);
        }
        last
    }

    fn end(&self) -> End {
        self.end
    }

    fn close(&mut self, whole: Option<usize>, out: &mut Vec<Delta>) {
        // Some servers give no finish reason in whole responses.
        if whole.is_some_and(|from| out.iter().skip(from).any(Delta::is_payload)) {
            self.end = End::Finished;
        }
        self.hand_over(out);
    }
}

impl State {
    /// Passes on the data for the server. Details, if there are any, include the thinking.
    fn hand_over(&mut self, out: &mut Vec<Delta>) {
        match self.details.is_empty() {
            false => {
                self.thought = Thought::default();
                self.details.hand_over(out);
            }
            true if self.calls.is_empty() => {}
            true => self.thought.hand_over(out),
        }
    }

    fn take(&mut self, chunk: &Chunk<'_>, out: &mut Vec<Delta>) -> Result<(), EventError> {
        let choice = chunk.choices.0.as_ref();
        let is_error = |error: Option<&RawValue>| {
            error.is_some_and(|raw| !matches!(raw.get(), "null" | "\"\"" | "{}" | "false"))
        };
        if is_error(chunk.error) || chunk.object.0 == "error" {
            return Err(EventError::Reports(None));
        }
        self.named.take(&chunk.id.0, &chunk.model.0, out);
        if choice.is_none() {
            self.without_choices(chunk, out);
        }
        if let Some(choice) = choice {
            if let Some(error) = choice.error.filter(|error| is_error(Some(error))) {
                return Err(EventError::Reports(Some(error.get().as_bytes().to_vec())));
            }
            self.choice(choice, out)?;
        }
        // A usage chunk has no choice.
        if let Some(usage) = chunk.usage.or(choice.and_then(|choice| choice.usage)).and_then(chunk::usage) {
            out.push(Delta::Usage(usage));
        }
        Ok(())
    }

    /// Reads text and calls of older models of Workers AI.
    fn without_choices(&mut self, chunk: &Chunk<'_>, out: &mut Vec<Delta>) {
        if !chunk.response.is_empty() {
            out.push(Delta::Text(chunk.response.0.clone().into_owned()));
        }
        let calls = chunk.tool_calls.0.iter().filter(|call| !call.name.is_empty());
        let calls: Vec<_> = calls.map(WholeCall::of).collect();
        self.calls.take(&calls, out);
    }

    fn choice(&mut self, choice: &Choice<'_>, out: &mut Vec<Delta>) -> Result<(), EventError> {
        if let Some(message) = choice.delta.0.as_ref().or(choice.message.0.as_ref()) {
            self.message(message, out);
        }
        let reason = &*choice.finish_reason.0;
        if reason == "error" {
            let error = ProviderError::server("the provider ended the stream with an error");
            return Err(EventError::Failed(error));
        }
        if !reason.is_empty() {
            self.end = End::Finished;
            out.push(Delta::Finish(finish_reason(reason)));
        }
        Ok(())
    }

    fn message(&mut self, message: &Message<'_>, out: &mut Vec<Delta>) {
        self.thought.take(message, out);
        for text in [&message.content.text, &message.refusal.0] {
            if !text.is_empty() {
                out.push(Delta::Text(text.clone().into_owned()));
            }
        }
        self.details.take(&message.reasoning_details);
        self.calls.take(&message.tool_calls.0, out);
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" => FinishReason::Stop,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" | "safety" | "SAFETY" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProviderCode, sse};
    use bobbin_definitions::definitions::opaque::Opaque;

    fn decode(body: &str) -> Result<Vec<Delta>, ProviderError> {
        let mut out = Vec::new();
        let mut decoder = Decoder::new(Some("sk-secret"));
        decoder.push(body.as_bytes(), &mut out)?;
        decoder.finish(&mut out)?;
        Ok(out)
    }

    fn text(deltas: &[Delta]) -> String {
        deltas.iter().map(|delta| if let Delta::Text(text) = delta { text } else { "" }).collect()
    }

    #[test]
    fn an_answer_needs_an_end() {
        let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        for (body, complete) in [
            (format!("{chunk}{finish}"), true),
            (format!("{chunk}data: [DONE]\n\n"), true),
            (format!("{chunk}data: [DONE]"), true),
            (chunk.to_owned(), false),
            (String::new(), false),
            (format!("{chunk}data: {{\"choices\":[{{\"delta\":{{\"con"), false),
            (format!("{chunk}data: {{\"choices\":[{{\"delta\":{{\"con\n\n"), false),
            ("{\"choices\":[{\"message\":{\"content\":\"a\"}}]}".to_owned(), true),
            ("{\"choices\":[{\"message\":{\"con".to_owned(), false),
            ("{\"choices\":[]}".to_owned(), false),
        ] {
            let decoded = decode(&body);
            assert_eq!(decoded.is_ok(), complete, "{body}: {decoded:?}");
            if let Err(error) = decoded {
                assert_eq!(error.code, ProviderCode::ServerError, "{body}");
                assert!(error.retryable(), "{body}");
            }
        }
        assert_eq!(decode(chunk).unwrap_err().message, "the stream broke off before the answer was complete");
    }

    #[test]
    fn a_page_is_no_stream_that_broke_off() {
        for page in ["<html>hello</html>", " \n<!doctype html><p>data: {}\n\n"] {
            let error = decode(page).unwrap_err();
            assert_eq!((error.code, error.retryable()), (ProviderCode::InvalidRequest, false));
            assert!(error.message.contains("a web page") && error.message.contains("baseUrl"), "{error}");
        }
    }

    #[test]
    fn nothing_is_read_after_done() {
        let body =
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\ndata: nonsense\n\n";
        assert_eq!(text(&decode(body).unwrap()), "a");
    }

    #[test]
    fn the_end_is_known_before_the_connection_closes() {
        let (mut decoder, mut out) = (Decoder::new(None), Vec::new());
        let mut push = |bytes: &[u8]| {
            decoder.push(bytes, &mut out).unwrap();
            decoder.is_done()
        };
        assert!(!push(
            b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n"
        ));
        assert!(!push(b"data: [DONE]\n"));
        assert!(push(b"\n"));
    }

    #[test]
    fn errors_in_a_stream_keep_their_kind() {
        for (body, code) in [
            (r#"data: {"error":{"message":"busy","type":"server_error"}}"#, ProviderCode::ServerError),
            (r#"data: {"error":{"message":"slow down","code":429}}"#, ProviderCode::RateLimit),
            (
                r#"data: {"object":"error","message":"max_tokens must be positive","type":"BadRequestError","code":400}"#,
                ProviderCode::InvalidRequest,
            ),
            (
                "event: error\ndata: {\"message\":\"invalid key\",\"type\":\"authentication_error\"}",
                ProviderCode::AuthError,
            ),
            (
                r#"error: {"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}"#,
                ProviderCode::ContextLength,
            ),
            (
                r#"data: {"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}"#,
                ProviderCode::ServerError,
            ),
            (
                r#"data: {"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
                ProviderCode::ServerError,
            ),
            (
                r#"{"error":{"message":"no such model","type":"invalid_request_error"}}"#,
                ProviderCode::InvalidRequest,
            ),
            ("data: not json\n\n", ProviderCode::ServerError),
        ] {
            assert_eq!(decode(&format!("{body}\n\n")).unwrap_err().code, code, "{body}");
        }
        let fine = r#"data: {"error":null,"choices":[{"delta":{"content":"a"},"finish_reason":"stop","error":null}]}"#;
        assert!(decode(fine).is_ok());
        let leak = decode("data: {\"error\":\"the key sk-secret is wrong\"}\n\n").unwrap_err();
        assert_eq!(leak.message, "the key [redacted] is wrong");
    }

    #[test]
    fn a_character_cut_in_half_costs_only_itself() {
        let mut body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xF0\x9F\"}}]}\n\n".to_vec();
        body.extend_from_slice(
            b"data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n",
        );
        let mut out = Vec::new();
        Decoder::new(None).push(&body, &mut out).unwrap();
        assert_eq!(text(&out), "a\u{fffd}b");
    }

    #[test]
    fn an_oversized_body_is_refused() {
        let mut decoder = Decoder::new(None);
        decoder.push(b"{\"choices\":", &mut Vec::new()).unwrap();
        let error = decoder.push(&vec![b' '; sse::EVENT_BYTES], &mut Vec::new()).unwrap_err();
        assert_eq!((error.code, error.retryable()), (ProviderCode::Unknown, false));
    }

    #[test]
    fn finish_reasons() {
        for (reason, expected) in [
            ("stop", FinishReason::Stop),
            ("tool_calls", FinishReason::ToolCalls),
            ("function_call", FinishReason::ToolCalls),
            ("length", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
            ("weird", FinishReason::Other),
        ] {
            let body = format!("data: {{\"choices\":[{{\"finish_reason\":\"{reason}\"}}]}}\n\n");
            assert_eq!(decode(&body).unwrap(), [Delta::Finish(expected)], "{reason}");
        }
        let blank = "data: {\"choices\":[{\"finish_reason\":\"\",\"delta\":{}}]}\n\n";
        assert!(decode(blank).is_err(), "an empty reason is none");
    }

    #[test]
    fn no_type_of_a_field_costs_the_answer() {
        let call = r#"{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}"#;
        for odd in ["null", "\"\"", "\"0\"", "-1", "1.5", "false", "[]", "[null]", "{}"] {
            for chunk in [
                format!(r#"{{"choices":{odd}}}"#),
                format!(r#"{{"choices":[{odd}]}}"#),
                format!(r#"{{"choices":[{{"index":{odd},"delta":{odd},"message":{odd},"usage":{odd}}}]}}"#),
                format!(r#"{{"choices":[{{"delta":{{"tool_calls":{odd},"reasoning":{odd}}}}}]}}"#),
                format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"function":{odd}}}]}}}}]}}"#),
                format!(r#"{{"usage":{odd},"id":{odd},"model":{odd},"tool_calls":{odd}}}"#),
            ] {
                let body = format!(
                    "data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\",\"tool_calls\":[{call}]}}}}]}}\n\ndata: {chunk}\n\ndata: [DONE]\n\n"
                );
                let deltas = decode(&body).unwrap_or_else(|error| panic!("{chunk}: {error}"));
                assert_eq!(text(&deltas).get(..1), Some("a"), "{chunk}");
                let begun = deltas.iter().filter(|delta| matches!(delta, Delta::CallStart { .. })).count();
                assert_eq!(begun, 1, "{chunk}");
            }
        }
    }

    /// The displayed reasoning, and the data to send back, for deltas of these kinds.
    fn thought(messages: &[&str]) -> (String, Option<String>) {
        let chunk = |message: &&str| format!("data: {{\"choices\":[{{\"delta\":{message}}}]}}\n\n");
        let body: String = messages.iter().map(chunk).collect();
        let (mut shown, mut kept) = (String::new(), None);
        for delta in decode(&format!("{body}data: [DONE]\n\n")).unwrap() {
            match delta {
                Delta::Reasoning(text) => shown.push_str(&text),
                Delta::Payload(block) => kept = Some(block.get().to_owned()),
                _ => {}
            }
        }
        (shown, kept)
    }

    #[test]
    fn what_was_thought_goes_back_with_calls_under_its_name() {
        let call = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}"#;
        let field = |json: &str| Some(format!(r#"{{"message":{{{json}}}}}"#));
        for (messages, shown, expected) in [
            (
                vec![r#"{"reasoning_content":"a\n\ud83e"}"#, r#"{"reasoning_content":"\uddf5"}"#, call],
                "a\n🧵",
                field(r#""reasoning_content":"a\n\ud83e\uddf5""#),
            ),
            (vec![r#"{"reasoning":"a"}"#, call], "a", field(r#""reasoning":"a""#)),
            (
                vec![r#"{"reasoning_content":"a","reasoning":"a"}"#, call],
                "a",
                field(r#""reasoning_content":"a""#),
            ),
            (
                vec![
                    r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#,
                    r#"{"content":[{"type":"thinking","thinking":"b"},{"type":"text","text":"T"}]}"#,
                    call,
                ],
                "ab",
                field(r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"ab"}]}]"#),
            ),
            (vec![r#"{"reasoning_content":""}"#, call], "", field(r#""reasoning_content":"""#)),
            (vec![r#"{"reasoning_content":null}"#, call], "", None),
            (vec![r#"{"reasoning_content":"a"}"#, r#"{"content":"T"}"#], "a", None),
            (vec![r#"{"content":"T"}"#, call], "", None),
        ] {
            assert_eq!(thought(&messages), (shown.to_owned(), expected), "{messages:?}");
        }
        let both = [r#"{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}"#, call];
        assert_eq!(thought(&both).1.as_deref(), Some(r#"{"type":"reasoning.text","text":"a"}"#));
        let whole = r#"{"choices":[{"message":{"reasoning_content":"a","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}"#;
        let payload = decode(whole).unwrap().into_iter().find(|delta| matches!(delta, Delta::Payload(_)));
        let expected = Opaque::parse(r#"{"message":{"reasoning_content":"a"}}"#.into()).map(Delta::Payload);
        assert_eq!(payload, expected);
    }

    #[test]
    fn reasoning_is_taken_once() {
        let body = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"r\",\"reasoning_content\":\"r\",\"content\":null}}]}\n\ndata: [DONE]\n\n";
        assert_eq!(decode(body).unwrap(), [Delta::Reasoning("r".to_owned())]);
    }
}
