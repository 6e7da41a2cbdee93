//! The thinking of a model whose server has a message field for it and needs it back with the calls that
//! followed: `reasoning_content` (DeepSeek, Kimi), `reasoning` (vLLM, Ollama, Groq), or parts of `content`
//! (Mistral). It goes back under the same name. A server that sends none of these receives none.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Delta;
use crate::lenient::literals;
use crate::literal::{Literal, shown};
use crate::openai::chunk::Message;
use crate::reasoning::FIELD;
use bobbin_definitions::definitions::opaque::Opaque;

/// The field of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    ReasoningContent,
    Reasoning,
    Content,
}

/// The thinking so far.
#[derive(Debug, Default)]
pub struct Thought {
    field: Option<Field>,
    text: Literal,
}

impl Thought {
    /// Reads the thinking in a message. Some servers send the same text under two names; the first one is
    /// used.
    pub(super) fn take(&mut self, message: &Message<'_>, out: &mut Vec<Delta>) {
        let fields = [
            (Field::ReasoningContent, strings(message.reasoning_content.as_slice())),
            (Field::Reasoning, strings(message.reasoning.as_slice())),
            (Field::Content, strings(&message.content.thinking)),
        ];
        for (field, pieces) in fields {
            // DeepSeek requires an empty one back, too.
            if !pieces.is_empty() {
                self.field = self.field.or(Some(field));
            }
            let text: String = pieces.iter().map(|piece| shown(piece)).collect();
            if text.is_empty() {
                continue;
            }
            if self.text.is_empty() {
                self.field = Some(field);
            }
            if self.field == Some(field) {
                pieces.iter().for_each(|piece| self.text.push(piece));
            }
            out.push(Delta::Reasoning(text));
            return;
        }
    }

    /// Passes on the data for the server.
    pub fn hand_over(&mut self, out: &mut Vec<Delta>) {
        let (before, after) = match self.field.take() {
            None => return,
            Some(Field::ReasoningContent) => (r#""reasoning_content":"#, ""),
            Some(Field::Reasoning) => (r#""reasoning":"#, ""),
            Some(Field::Content) => {
                (r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"#, "}]}]")
            }
        };
        let mut block = format!("{FIELD}{{{before}");
        self.text.write(&mut block);
        block.push_str(after);
        block.push_str("}}");
        out.extend(Opaque::parse(block).map(Delta::Payload));
    }
}

fn strings<'a>(texts: &[&'a RawValue]) -> Vec<&'a RawValue> {
    let mut strings = Vec::new();
    texts.iter().for_each(|text| literals(text, &mut strings));
    strings
}

/// The stored thinking, as fields of a message.
#[derive(Debug, Default, Deserialize)]
pub struct StoredThinking<'a> {
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<&'a RawValue>,
    /// Parts before the text.
    #[serde(borrow, default)]
    pub content: Vec<&'a RawValue>,
}

impl StoredThinking<'_> {
    pub(super) fn read(block: &Opaque) -> Option<StoredThinking<'_>> {
        let fields = block.get().strip_prefix(FIELD)?.strip_suffix('}')?;
        bobbin_definitions::json::from_str(fields).ok()
    }
}
