//! The request of a prompt that is called (spec §23): its own text, the message that the call begins with,
//! and the thread's history if the prompt includes it.

use serde_json::Value;

use crate::definitions::ToolEntry;
use crate::definitions::message::Role;
use crate::engine::attachments::images::{ImageAllowance, ImageMessages};
use crate::engine::definitions::Definitions;
use crate::engine::features::Subprompts;
use crate::error::{Error, Result};
use crate::models::{CONTINUE, CachedJson, ChatMessage, ChatRequest, Part};
use crate::store::messages::{Row, SharedRow};
use crate::store::opening::Opening;
use crate::store::runs::Step;
use crate::store::window::with_notes;

impl Subprompts<'_> {
    pub(super) fn inner_request(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        entry: &ToolEntry,
        args: &Value,
    ) -> Result<ChatRequest> {
        let prompt = definitions.prompt;
        let model = self.current_model(definitions, step)?;
        let text = prompt.render(&self.catalog, &|name| self.variables().prompt_env(definitions, name));
        let text = self.skills().with_skills(definitions, model, text)?;
        let system = CachedJson::from(ChatMessage::System(self.variables().redact(text)));
        let too_long = self.ephemeral.requests.halved.get() == Some(step.block);
        let opening = Opening::of(entry, args);
        let asked = opening.message.clone().or_else(|| spelled_out(args));
        // Its own images come before those of the history.
        let mut room = ImageAllowance::default();
        let asks = asked.is_some() || !opening.attachments.is_empty();
        let first = match asks {
            true => {
                let sees = model.capabilities.supports_images;
                Some(self.first_message(&opening, asked.unwrap_or_default(), sees, &mut room)?)
            }
            false => None,
        };
        let mut messages = match (prompt.include_chat || prompt.include_past_tools) && !too_long {
            true => self.model_context().history_for(definitions, model, system, &mut room)?,
            false => vec![system],
        };
        if let Some(first) = first {
            messages.push(first);
        } else if !messages.iter().any(|message| matches!(&**message, ChatMessage::User(_))) {
            messages.push(ChatMessage::User(vec![Part::Text(CONTINUE.into())]).into());
        }
        self.model_context().request_of(definitions, model, messages)
    }

    fn first_message(
        &self,
        opening: &Opening,
        text: String,
        sees: bool,
        room: &mut ImageAllowance,
    ) -> Result<CachedJson<ChatMessage>> {
        let now = self.host.now_us();
        self.read_mut(|state, sql| {
            let attachments = opening.files(state, sql, || self.host.random(), now)?;
            let row = SharedRow::new(Row { attachments, ..Row::new(0, Role::User, text, now) });
            let text = with_notes(row.content.clone().unwrap_or_default(), &row);
            let mut message = vec![ChatMessage::User(vec![Part::Text(text)]).into()];
            if sees {
                let mut pictured = ImageMessages::default();
                pictured.note(&[], &row);
                pictured.show(&mut message, room, sql)?;
            }
            message.pop().ok_or_else(|| Error::internal("a prompt has no first message"))
        })
    }
}

/// Arguments as a message, if none of their properties is one (spec §8.6).
fn spelled_out(args: &Value) -> Option<String> {
    let empty = args.as_object().is_none_or(serde_json::Map::is_empty);
    if empty { None } else { serde_json::to_string_pretty(args).ok() }
}
