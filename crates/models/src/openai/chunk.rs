//! One chunk of a streamed response, or a whole response, as JSON. A field that is absent, `null` or of an
//! unexpected type is empty, and never fails the chunk.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::lenient::{List, Number, Object, Text};
use crate::surrogates;
use bobbin_definitions::definitions::model::Usage;

/// A chunk of a stream (`choices[].delta`) or a whole response (`choices[].message`).
#[derive(Debug, Default, Deserialize)]
pub struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Choices<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// `error` when vLLM reports one without an `error` key.
    #[serde(borrow, default)]
    pub object: Text<'a>,
    /// Id of the response; the same in each chunk.
    #[serde(borrow, default)]
    pub id: Text<'a>,
    /// The model that replies.
    #[serde(borrow, default)]
    pub model: Text<'a>,
    /// The text in older models of Workers AI, which have no choices.
    #[serde(borrow, default)]
    pub response: Text<'a>,
    /// Their calls, each complete.
    #[serde(borrow, default)]
    pub tool_calls: List<WholeCall<'a>>,
}

/// A call of an older model of Workers AI.
#[derive(Debug, Deserialize)]
pub struct WholeCall<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl<'a> WholeCall<'a> {
    /// Converts it to a call of chat completions.
    pub(super) fn of(&self) -> Call<'a> {
        let name = Text(self.name.0.clone());
        let function = Function { name, arguments: self.arguments };
        Call {
            index: Number(None),
            id: Text(self.id.0.clone()),
            function: Object(Some(function)),
            extra_content: None,
        }
    }
}

/// The choice with index 0. Others, if options request several, are ignored.
#[derive(Debug, Default)]
pub(super) struct Choices<'a>(pub Option<Choice<'a>>);

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    index: Number,
    #[serde(borrow, default)]
    pub(super) delta: Object<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) message: Object<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
    /// Moonshot puts it here.
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
    /// OpenRouter may put it here.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Content<'a>,
    /// Text instead of a reply, for the user.
    #[serde(borrow, default)]
    pub refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<&'a RawValue>,
    /// OpenRouter's data to send back: pieces, or the whole list.
    #[serde(borrow, default)]
    pub reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_calls: List<Call<'a>>,
}

/// The text of a message, and the thinking among its parts (Mistral).
#[derive(Debug, Default)]
pub struct Content<'a> {
    pub(super) text: Cow<'a, str>,
    /// Each a text or a list of parts.
    pub thinking: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(default)]
    pub(super) index: Number,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    function: Object<Function<'a>>,
    /// Data to send back with the call, such as Gemini's thought signatures.
    #[serde(borrow, default)]
    pub extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl<'a> Call<'a> {
    /// The function's name, or a piece of it.
    pub(super) fn name(&self) -> &str {
        self.function.0.as_ref().map_or("", |function| &*function.name.0)
    }

    /// A piece of the arguments' JSON text. An object instead of a string is accepted too.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        let arguments = self.function.0.as_ref().and_then(|function| function.arguments);
        let raw = arguments.map(RawValue::get).unwrap_or_default();
        match raw.as_bytes().first() {
            Some(b'"') => match bobbin_definitions::json::from_str::<Text<'a>>(raw) {
                Ok(text) => text.0,
                // The text contains a lone half of a character.
                Err(_) => Cow::Owned(
                    surrogates::marked(raw)
                        .and_then(|raw| bobbin_definitions::json::from_str(&raw).ok())
                        .unwrap_or_default(),
                ),
            },
            Some(b'{') => Cow::Borrowed(raw),
            _ => Cow::Borrowed(""),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content of a message")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content { text: Cow::Borrowed(text), thinking: Vec::new() })
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content { text: Cow::Owned(text.to_owned()), thinking: Vec::new() })
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Content::default())
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Content::default())
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Content { text: Cow::Owned(number.to_string()), thinking: Vec::new() })
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Content { text: Cow::Owned(number.to_string()), thinking: Vec::new() })
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Content::default())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut whole = Content::default();
        while let Some(Content { text, thinking }) = parts.next_element()? {
            whole.text += text;
            whole.thinking.extend(thinking);
        }
        Ok(whole)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut part = Content::default();
        while let Some(Text(key)) = members.next_key()? {
            match &*key {
                "text" => part.text = members.next_value::<Text<'de>>()?.0,
                "thinking" => part.thinking.push(members.next_value()?),
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(part)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let List(choices) = List::<Choice<'a>>::deserialize(deserializer)?;
        Ok(Choices(choices.into_iter().find(|choice| choice.index.0.unwrap_or(0) == 0)))
    }
}

/// Token counts, read as `f64` because some servers write `12.0`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Option<f64>,
    completion_tokens: Option<f64>,
    total_tokens: Option<f64>,
    /// In DeepSeek.
    prompt_cache_hit_tokens: Option<f64>,
    prompt_tokens_details: Option<TokenDetails>,
    completion_tokens_details: Option<TokenDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenDetails {
    cached_tokens: Option<f64>,
    reasoning_tokens: Option<f64>,
}

/// The usage in a chunk; `None` when it is unreadable, which must not fail the response.
pub fn usage(raw: &RawValue) -> Option<Usage> {
    let wire: WireUsage = bobbin_definitions::json::from_str(raw.get()).ok()?;
    // `as` saturates: a negative count is 0.
    let count = |tokens: Option<f64>| tokens.unwrap_or(0.0) as u64;
    let details =
        |of: &Option<TokenDetails>, pick: fn(&TokenDetails) -> Option<f64>| of.as_ref().and_then(pick);
    let input_tokens = count(wire.prompt_tokens);
    // Some servers leave reasoning out of `completion_tokens`, but include it in the total.
    let output_tokens =
        count(wire.completion_tokens).max(count(wire.total_tokens).saturating_sub(input_tokens));
    let cached = details(&wire.prompt_tokens_details, |d| d.cached_tokens).or(wire.prompt_cache_hit_tokens);
    Some(Usage {
        input_tokens,
        cached_tokens: count(cached),
        written_tokens: 0,
        output_tokens,
        reasoning_tokens: count(details(&wire.completion_tokens_details, |d| d.reasoning_tokens)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Chunk<'_> {
        bobbin_definitions::json::from_str(json).unwrap()
    }

    fn content<'a>(chunk: &'a Chunk<'_>) -> &'a str {
        &chunk.choices.0.as_ref().unwrap().delta.0.as_ref().unwrap().content.text
    }

    #[test]
    fn a_plain_text_is_borrowed() {
        let chunk = parse(r#"{"choices":[{"index":0,"delta":{"content":"héllo"}}]}"#);
        let delta = chunk.choices.0.unwrap().delta.0.unwrap();
        assert!(matches!(delta.content.text, Cow::Borrowed("héllo")));
    }

    #[test]
    fn content_of_any_type_is_read() {
        for (json, expected) in [
            (r#""a\nb""#, "a\nb"),
            ("null", ""),
            ("false", ""),
            (
                r#"[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"text":"x"}]},{"text":"b"}]"#,
                "ab",
            ),
            (r#"{"type":"text","text":"a"}"#, "a"),
            ("[]", ""),
        ] {
            let chunk = format!(r#"{{"choices":[{{"delta":{{"content":{json}}}}}]}}"#);
            assert_eq!(content(&parse(&chunk)), expected, "{json}");
        }
    }

    #[test]
    fn only_the_first_choice_counts() {
        let chunk =
            parse(r#"{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}"#);
        assert_eq!(content(&chunk), "a");
        assert!(parse(r#"{"choices":[]}"#).choices.0.is_none());
        assert!(parse(r#"{"choices":null,"usage":null,"error":null}"#).choices.0.is_none());
        assert!(parse(r#"{"usage":null}"#).usage.is_none());
    }

    #[test]
    fn usage_of_many_servers() {
        let usage = |json: &str| {
            let owned = RawValue::from_string(json.to_owned()).unwrap();
            crate::openai::chunk::usage(&owned)
                .map(|u| [u.input_tokens, u.cached_tokens, u.output_tokens, u.reasoning_tokens])
        };
        for (json, expected) in [
            (
                r#"{"prompt_tokens":20,"completion_tokens":8,"total_tokens":28,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":4}}"#,
                Some([20, 16, 8, 4]),
            ),
            (
                r#"{"prompt_tokens":20,"completion_tokens":8,"prompt_cache_hit_tokens":5}"#,
                Some([20, 5, 8, 0]),
            ),
            (
                r#"{"prompt_tokens":20,"completion_tokens":8,"total_tokens":40,"completion_tokens_details":{"reasoning_tokens":12}}"#,
                Some([20, 0, 20, 12]),
            ),
            (
                r#"{"prompt_tokens":20.0,"completion_tokens":null,"prompt_tokens_details":null}"#,
                Some([20, 0, 0, 0]),
            ),
            (r#"{"prompt_tokens":-1}"#, Some([0, 0, 0, 0])),
            (r#"{"prompt_tokens":"many"}"#, None),
        ] {
            assert_eq!(usage(json), expected, "{json}");
        }
    }
}
