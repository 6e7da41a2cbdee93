//! The first user message of a called prompt or agent (spec §5.4): built from the arguments by the entry's
//! `initUserMessageProperty` and `initAttachmentsProperty`.

use serde_json::Value;

use crate::definitions::ToolEntry;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::sdk::messages::NewAttachment;
use crate::store::attachment::AttachmentRef;
use crate::store::opening::Opening;
use crate::store::state::State;

/// The folder of files that a call may show.
const FOLDER: &str = "/attachments/";

impl Opening {
    /// The opening for an entry and the arguments of its call. A value that is not a string becomes JSON.
    pub(super) fn of(entry: &ToolEntry, args: &Value) -> Opening {
        let value = |property: &Option<String>| property.as_ref().and_then(|property| args.get(property));
        let message = match value(&entry.init_user_message_property) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
        let paths = match value(&entry.init_attachments_property) {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let path = |item: &Value| item.as_str().or_else(|| item.get("path")?.as_str()).map(str::to_owned);
        let attachments = paths.iter().filter_map(path).filter(|path| path.starts_with(FOLDER));
        Opening {
            message: message.filter(|text| !text.trim().is_empty()),
            attachments: attachments.take(limits::ATTACHMENTS).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.message.is_none() && self.attachments.is_empty()
    }

    /// Its files as a message shows them; missing ones are left out (spec §23).
    pub(super) fn files(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        random: impl Fn() -> [u8; 16],
        now: i64,
    ) -> Result<Vec<AttachmentRef>> {
        let mut there = Vec::new();
        for path in &self.attachments {
            if matches!(crate::engine::files::attach::stat(sql, "path", path), Ok(Some(_))) {
                there.push(NewAttachment::Path { path: path.clone(), description: None });
            }
        }
        crate::engine::attachments::store::store(state, sql, &there, random, now)
    }
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn an_entry_makes_a_message_of_its_arguments() {
        let entry = ToolEntry {
            init_user_message_property: Some("question".into()),
            init_attachments_property: Some("files".into()),
            ..ToolEntry::unlisted("x")
        };
        let opening = |args: Value| {
            let Opening { message, attachments } = Opening::of(&entry, &args);
            (message, attachments.join(" "))
        };
        for (args, message, attachments) in [
            (json!({ "question": "Why?" }), Some("Why?"), ""),
            (json!({ "question": { "a": 1 } }), Some("{\"a\":1}"), ""),
            (json!({ "question": " ", "files": "/attachments/a.png" }), None, "/attachments/a.png"),
            (
                json!({ "question": null, "files": ["/attachments/a", "/secret", 1, { "path": "/attachments/b" }] }),
                None,
                "/attachments/a /attachments/b",
            ),
            (json!({}), None, ""),
        ] {
            assert_eq!(opening(args), (message.map(str::to_owned), attachments.to_owned()));
        }
        assert!(Opening::of(&ToolEntry::unlisted("x"), &json!({ "question": "Why?" })).is_empty());
    }
}
