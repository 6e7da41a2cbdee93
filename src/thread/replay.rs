//! What a provider wants back with its replies: thinking with signatures, and the like (spec §4.3, §5.3). Stored in the
//! reply's row, shown by no API, and sent again byte for byte, but only to the prompt, model and provider that wrote it.

use serde::{Deserialize, Serialize};

use super::Thread;
use super::host::Host;
use super::rows::Row;
use super::step::{Definitions, Step};
use crate::error::{Error, Result};
use crate::models::{Payload, Placed, Reply};
use crate::spec::{Model, Prompt, Provider};

/// Who wrote a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Author {
    provider: Provider,
    /// Name of the model's definition.
    definition: String,
    /// The provider's id of the model.
    model: String,
    prompt: String,
}

impl Author {
    pub(super) fn new(model: &Model, prompt: &Prompt) -> Author {
        Author {
            provider: model.provider,
            definition: model.name.clone(),
            model: model.model.clone(),
            prompt: prompt.name.clone(),
        }
    }
}

/// The column `reasoning` of a reply's row.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Replay {
    author: Author,
    pub(super) blocks: Vec<Placed>,
}

impl Replay {
    /// What a row holds. One that cannot be read is as good as none: the reply is then sent without.
    pub(super) fn read(row: &Row) -> Option<Replay> {
        serde_json::from_str(row.reasoning.as_deref()?).ok()
    }

    /// Whether it may be sent to this prompt on this model.
    pub(super) fn is_by(&self, author: &Author) -> bool {
        self.author == *author
    }
}

impl<H: Host> Thread<H> {
    /// The column for a reply. `None` when its provider wants nothing back, or too much.
    pub(super) fn replay_column(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        reply: &Reply,
    ) -> Result<Option<String>> {
        let blocks = match &reply.payload {
            Payload::Blocks(blocks) => blocks.clone(),
            // Its calls still may have something.
            Payload::None => Vec::new(),
            Payload::TooLarge(bytes) => {
                self.log(&format!("a reply's reasoning of {bytes} bytes or more is not kept"));
                Vec::new()
            }
        };
        if blocks.is_empty() && reply.tool_calls.iter().all(|call| call.extra_content.is_none()) {
            return Ok(None);
        }
        let author = Author::new(self.current_model(definitions, step)?, definitions.prompt);
        serde_json::to_string(&Replay { author, blocks }).map(Some).map_err(Error::internal)
    }
}
