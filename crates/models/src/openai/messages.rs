//! The history of a request, written directly from the engine's messages: only text with JSON escapes is
//! copied.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use crate::openai::thought::StoredThinking;
use crate::responses::input::is_item;
use crate::writing::result_text;
use crate::{CachedJson, ChatMessage, Part};
use bobbin_definitions::definitions::message::ToolCall;
use bobbin_definitions::definitions::opaque::Opaque;
use bobbin_definitions::json;

/// The history of a request.
pub struct Messages<'a>(pub &'a [CachedJson<ChatMessage>]);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut results = Vec::new();
        for message in self.0 {
            match &**message {
                ChatMessage::Tool { images, .. } if images.is_empty() => {}
                ChatMessage::Tool { .. } => results.push(&**message),
                _ => show(&mut results, &mut list)?,
            }
            list.serialize_element(&CachedMessage(message))?;
        }
        show(&mut results, &mut list)?;
        list.end()
    }
}

/// Writes the images of results. Results have no images in this API, so these follow in a user message after
/// all results, because many servers require results directly after the calls.
fn show<L: SerializeSeq>(results: &mut Vec<&ChatMessage>, list: &mut L) -> Result<(), L::Error> {
    if results.is_empty() {
        return Ok(());
    }
    list.serialize_element(&ImageMessage(&std::mem::take(results)))
}

/// A user message with the images of results.
struct ImageMessage<'a>(&'a [&'a ChatMessage]);

impl Serialize for ImageMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// The images of each result, after a label.
        struct Content<'a>(&'a [&'a ChatMessage]);
        impl Serialize for Content<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut list = serializer.serialize_seq(None)?;
                for message in self.0 {
                    if let ChatMessage::Tool { call_id, name, images, .. } = message {
                        let text = format!("[images of the result of {name}, call {call_id}]");
                        list.serialize_element(&LabelledValue("text", &text))?;
                        images.iter().try_for_each(|part| write_part(part, &mut list))?;
                    }
                }
                list.end()
            }
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", "user")?;
        map.serialize_entry("content", &Content(self.0))?;
        map.end()
    }
}

struct CachedMessage<'a>(&'a CachedJson<ChatMessage>);

impl Serialize for CachedMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(Message, serializer)
    }
}

struct Message<'a>(&'a ChatMessage);

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            ChatMessage::System(content) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", content)?;
            }
            ChatMessage::User(parts) => {
                map.serialize_entry("role", "user")?;
                map.serialize_entry("content", &Parts(parts))?;
            }
            ChatMessage::Assistant { content, tool_calls, payload } => {
                map.serialize_entry("role", "assistant")?;
                let kept = payload.iter().find_map(|placed| StoredThinking::read(&placed.block));
                let StoredThinking { reasoning_content, reasoning, content: parts } =
                    kept.filter(|_| !tool_calls.is_empty()).unwrap_or_default();
                if parts.is_empty() {
                    let content = (!content.is_empty() || tool_calls.is_empty()).then_some(content);
                    map.serialize_entry("content", &content)?;
                } else {
                    map.serialize_entry("content", &Thinking(&parts, content))?;
                }
                for (name, text) in [("reasoning_content", reasoning_content), ("reasoning", reasoning)] {
                    if let Some(text) = text {
                        map.serialize_entry(name, text)?;
                    }
                }
                // Data for the responses API is not used here.
                let details = payload.iter().filter(|placed| !placed.is_field() && !is_item(&placed.block));
                let details: Vec<_> = details.map(|placed| &placed.block).collect();
                if !details.is_empty() {
                    map.serialize_entry("reasoning_details", &details)?;
                }
                if !tool_calls.is_empty() {
                    map.serialize_entry("tool_calls", &ToolCallList(tool_calls))?;
                }
            }
            ChatMessage::Tool { call_id, content, status, .. } => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("tool_call_id", call_id)?;
                map.serialize_entry("content", &result_text(content, *status))?;
            }
        }
        map.end()
    }
}

/// The content of a reply with thinking among its parts, and its text.
struct Thinking<'a>(&'a [&'a RawValue], &'a str);

impl Serialize for Thinking<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.0.iter().try_for_each(|part| list.serialize_element(part))?;
        if !self.1.is_empty() {
            list.serialize_element(&LabelledValue("text", &self.1))?;
        }
        list.end()
    }
}

/// A user's content: a string when it is only text (joined by line feeds), because many compatible servers
/// accept lists only for models that see.
struct Parts<'a>(&'a [Part]);

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts =
            || self.0.iter().filter_map(|part| if let Part::Text(text) = part { Some(text) } else { None });
        if texts().count() == self.0.len() {
            return match self.0 {
                [Part::Text(text)] => serializer.serialize_str(text),
                _ => serializer.serialize_str(&texts().map(String::as_str).collect::<Vec<_>>().join("\n")),
            };
        }
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        self.0.iter().try_for_each(|part| write_part(part, &mut list))?;
        list.end()
    }
}

fn write_part<L: SerializeSeq>(part: &Part, list: &mut L) -> Result<(), L::Error> {
    match part {
        Part::Text(text) => list.serialize_element(&LabelledValue("text", text)),
        Part::Image { media_type, data } => {
            list.serialize_element(&LabelledValue("image_url", &Image { media_type, data }))
        }
    }
}

/// `{"type": label, label: value}`.
struct LabelledValue<'a, T>(&'static str, &'a T);

impl<T: Serialize> Serialize for LabelledValue<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", self.0)?;
        map.serialize_entry(self.0, self.1)?;
        map.end()
    }
}

struct Image<'a> {
    media_type: &'a str,
    data: &'a str,
}

impl Serialize for Image<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Written piece by piece, so that an image of megabytes is not copied.
        struct DataUrl<'a>(&'a Image<'a>);
        impl Serialize for DataUrl<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&format_args!("data:{};base64,{}", self.0.media_type, self.0.data))
            }
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("url", &DataUrl(self))?;
        map.end()
    }
}

struct ToolCallList<'a>(&'a [ToolCall]);

impl Serialize for ToolCallList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Call<'a> {
            id: &'a str,
            r#type: &'static str,
            function: Function<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            extra_content: Option<&'a Opaque>,
        }
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: Cow<'a, str>,
        }
        serializer.collect_seq(self.0.iter().map(|call| Call {
            id: &call.id,
            r#type: "function",
            function: Function { name: &call.name, arguments: parseable(&call.arguments) },
            extra_content: call.extra_content.as_ref(),
        }))
    }
}

/// Arguments in a form that a history may contain. vLLM, llama.cpp and others parse the arguments of past
/// calls as a JSON object and refuse the whole request on failure, so that one malformed call would block the
/// thread for good. The call's result has explained the error to the model (spec §35.21).
pub fn parseable(arguments: &str) -> Cow<'_, str> {
    let text = arguments.trim();
    if text.is_empty() {
        "{}".into()
    } else if text.starts_with('{') && bobbin_definitions::json::from_str::<IgnoredAny>(text).is_ok() {
        arguments.into()
    } else {
        json!({ "malformed_arguments": arguments }).to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::definitions::message::ToolStatus;

    #[test]
    fn messages_of_every_kind() {
        let call = |id: &str, arguments: &str| ToolCall {
            id: id.into(),
            name: "lookup".into(),
            arguments: arguments.into(),
            extra_content: None,
        };
        let reply = |content: &str, tool_calls: Vec<ToolCall>| ChatMessage::Assistant {
            content: content.into(),
            tool_calls,
            payload: vec![],
        };
        let image = Part::Image { media_type: "image/png".into(), data: "iVBO/+=".into() };
        let messages = [
            ChatMessage::User(vec![Part::Text("Look:".into()), image]),
            ChatMessage::User(vec![Part::Text("one".into()), Part::Text("two".into())]),
            ChatMessage::User(vec![]),
            reply("", vec![call("c1", r#"{"w":1}"#)]),
            ChatMessage::Tool {
                call_id: "c1".into(),
                name: "lookup".into(),
                content: "A spool.".into(),
                status: ToolStatus::Success,
                images: vec![],
            },
            reply("Both.", vec![call("c2", "")]),
            reply("", vec![]),
        ]
        .map(CachedJson::from);
        let wire = |id: &str, arguments: &str| json!([{ "id": id, "type": "function", "function": { "name": "lookup", "arguments": arguments } }]);
        assert_eq!(
            serde_json::to_value(Messages(&messages)).unwrap(),
            json!([
                { "role": "user", "content": [
                    { "type": "text", "text": "Look:" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBO/+=" } },
                ] },
                { "role": "user", "content": "one\ntwo" },
                { "role": "user", "content": "" },
                { "role": "assistant", "content": null, "tool_calls": wire("c1", r#"{"w":1}"#) },
                { "role": "tool", "tool_call_id": "c1", "content": "A spool." },
                { "role": "assistant", "content": "Both.", "tool_calls": wire("c2", "{}") },
                { "role": "assistant", "content": "" },
            ])
        );
    }

    #[test]
    fn what_was_thought_goes_back_as_the_field_that_it_was() {
        let written = |block: &str, content: &str, calls: bool| {
            let call = ToolCall { id: "c".into(), name: "f".into(), ..ToolCall::default() };
            let block = Opaque::parse(block.to_owned()).unwrap();
            let message = ChatMessage::Assistant {
                content: content.into(),
                tool_calls: if calls { vec![call] } else { Vec::new() },
                payload: vec![crate::PositionedBlock { text: 0, calls: 0, block }],
            };
            let mut wire = serde_json::to_value(Messages(&[message.into()])).unwrap();
            wire[0].as_object_mut().unwrap().remove("tool_calls");
            wire[0].clone()
        };
        let thinking =
            r#"{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}}"#;
        for (block, content, expected) in [
            (
                r#"{"message":{"reasoning_content":"a\u00e9"}}"#,
                "T",
                json!({ "role": "assistant", "content": "T", "reasoning_content": "aé" }),
            ),
            (
                r#"{"message":{"reasoning":""}}"#,
                "",
                json!({ "role": "assistant", "content": null, "reasoning": "" }),
            ),
            (
                thinking,
                "T",
                json!({ "role": "assistant", "content": [
                    { "type": "thinking", "thinking": [{ "type": "text", "text": "a" }] },
                    { "type": "text", "text": "T" },
                ] }),
            ),
        ] {
            assert_eq!(written(block, content, true), expected, "{block}");
            let without = json!({ "role": "assistant", "content": "T" });
            assert_eq!(written(block, "T", false), without, "without calls nothing goes back");
        }
    }

    #[test]
    fn images_of_results_follow_all_results_of_a_step() {
        let result = |id: &str, images: Vec<Part>| ChatMessage::Tool {
            call_id: id.into(),
            name: "draw".into(),
            content: "Done.".into(),
            status: ToolStatus::Success,
            images,
        };
        let image = || vec![Part::Image { media_type: "image/png".into(), data: "AA==".into() }];
        let said = |text: &str| ChatMessage::User(vec![Part::Text(text.into())]);
        let messages = [
            result("a", image()),
            result("b", vec![]),
            result("c", image()),
            said("And?"),
            result("d", image()),
        ]
        .map(CachedJson::from);
        let written = serde_json::to_value(Messages(&messages)).unwrap();
        let roles: Vec<&str> =
            written.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["tool", "tool", "tool", "user", "user", "tool", "user"]);
        let url = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } });
        let text = |id: &str| json!({ "type": "text", "text": format!("[images of the result of draw, call {id}]") });
        assert_eq!(written[3]["content"], json!([text("a"), url, text("c"), url]));
        assert_eq!(written[6]["content"], json!([text("d"), url]));
        assert_eq!(written[0], json!({ "role": "tool", "tool_call_id": "a", "content": "Done." }));
    }

    #[test]
    fn malformed_arguments_stay_readable_for_servers_that_parse_them() {
        for (arguments, sent) in [
            (r#" {"a": 1} "#, r#" {"a": 1} "#),
            ("", "{}"),
            (r#"{"a": "#, r#"{"malformed_arguments":"{\"a\": "}"#),
            ("[1]", r#"{"malformed_arguments":"[1]"}"#),
            ("null", r#"{"malformed_arguments":"null"}"#),
        ] {
            assert_eq!(parseable(arguments), sent, "{arguments}");
        }
    }
}
