//! Items: stored messages in the format of pages that show a run as a list of activities (docs/streams.md).
//! Derived from `message_data` and `snapshot` frames for listeners with `items=1`; not stored.

use serde_json::Value;

use crate::definitions::Catalog;
use crate::host::{Filter, Frame, FramePosition};
use crate::json;
use crate::protocols::responses::frames::{ItemFrame, ItemType};

/// The suffix of the item's id, because one reply may be several items.
const fn suffix(kind: ItemType) -> &'static str {
    match kind {
        ItemType::Reasoning => ".reasoning",
        ItemType::AgentMessage
        | ItemType::CommandExecution
        | ItemType::McpToolCall
        | ItemType::FileChange
        | ItemType::Error => "",
    }
}

/// The frame, followed by the items of its messages if the listener requests them.
pub(super) fn with_items(frame: Frame, filter: &Filter, catalog: &Catalog) -> Vec<Frame> {
    let items = if filter.items { items(&frame, catalog) } else { Vec::new() };
    std::iter::once(frame).chain(items).collect()
}

/// The items of a frame's messages, in the order of the rows. Reasoning precedes its reply.
pub(super) fn items(frame: &Frame, catalog: &Catalog) -> Vec<Frame> {
    let of_message = |message: &Value| {
        let silent = message.get("silent").and_then(Value::as_bool).unwrap_or(false);
        let depth = message.get("depth").and_then(Value::as_u64).and_then(|depth| u32::try_from(depth).ok());
        parts(message, catalog)
            .into_iter()
            .map(|(kind, data)| Frame {
                place: frame.place,
                ..item(message, kind, data, silent, depth.unwrap_or(0))
            })
            .collect::<Vec<_>>()
    };
    match (frame.kind, frame.data.get("data"), frame.data.get("messages").and_then(Value::as_array)) {
        ("message_data", Some(message), _) => of_message(message),
        ("snapshot", _, Some(messages)) => messages.iter().flat_map(of_message).collect(),
        _ => Vec::new(),
    }
}

fn item(message: &Value, kind: ItemType, data: Value, silent: bool, depth: u32) -> Frame {
    let id = message.get("id").and_then(Value::as_str).unwrap_or_default();
    Frame {
        kind: "item",
        id: None,
        data: json!(ItemFrame {
            event: "completed",
            item_id: format!("{id}{}", suffix(kind)),
            item_type: kind,
            data,
        }),
        silent,
        depth,
        place: FramePosition::Outside,
    }
}

/// The items of a message. Messages of people and queued messages have none.
fn parts(message: &Value, catalog: &Catalog) -> Vec<(ItemType, Value)> {
    let text = |name: &str| message.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let metadata = |name: &str| message.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
    match text("role") {
        Some("assistant") => match (metadata("status_kind"), text("content")) {
            (Some(kind), said) => vec![(ItemType::Error, json!({ "code": kind, "message": said }))],
            (None, said) => {
                let reasoning = metadata("reasoning").filter(|text| !text.is_empty());
                let thought = reasoning.map(|text| (ItemType::Reasoning, json!({ "text": text })));
                let reply = said.map(|text| (ItemType::AgentMessage, json!({ "text": text })));
                thought.into_iter().chain(reply).collect()
            }
        },
        Some("tool") => {
            let tool = text("name").unwrap_or_default();
            let has_files =
                message.get("attachments").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
            let kind = match () {
                () if catalog.is_of_mcp(tool) => ItemType::McpToolCall,
                () if has_files => ItemType::FileChange,
                () => ItemType::CommandExecution,
            };
            let mut data = json!({
                "tool": tool, "callId": text("tool_call_id"), "status": text("tool_status"),
                "output": text("content"),
            });
            if let (true, Some(fields), Some(files)) =
                (has_files, data.as_object_mut(), message.get("attachments").and_then(Value::as_array))
            {
                fields.insert(
                    "files".into(),
                    files.iter().filter_map(|file| file.get("path")).cloned().collect(),
                );
            }
            vec![(kind, data)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let run = json!({ "mcp": { "server": "github", "tool": "search" } });
        let search = json!({ "description": "Searches.", "run": run });
        let live = json!({ "url": "https://a.example/mcp", "list": "live" });
        let catalog = json!({ "tools": { "github__search": search }, "mcp": { "shop": live } });
        Catalog::from_json(&catalog.to_string()).unwrap()
    }

    /// Type, id and data of each item.
    fn shown(message: Value) -> Vec<(String, String, Value)> {
        let data = json!({ "type": "message_data", "data": message });
        let frame = Frame {
            kind: "message_data",
            id: None,
            data,
            silent: false,
            depth: 0,
            place: FramePosition::Outside,
        };
        let field = |frame: &Frame, name: &str| frame.data[name].as_str().unwrap().to_owned();
        items(&frame, &catalog())
            .iter()
            .map(|item| (field(item, "itemType"), field(item, "itemId"), item.data["data"].clone()))
            .collect()
    }

    #[test]
    fn a_reply_is_its_reasoning_and_then_its_text() {
        let reply =
            json!({ "id": "m_1_2", "role": "assistant", "content": "42", "metadata": { "reasoning": "so" } });
        assert_eq!(
            shown(reply),
            [
                ("reasoning".into(), "m_1_2.reasoning".into(), json!({ "text": "so" })),
                ("agent_message".into(), "m_1_2".into(), json!({ "text": "42" })),
            ]
        );
        let calls = json!({ "id": "m_1_2", "role": "assistant", "content": null, "metadata": {} });
        assert_eq!(shown(calls), []);
    }

    #[test]
    fn a_result_is_what_its_tool_is() {
        let result = |name: &str, attachments: Value| {
            let message = json!({
                "id": "m_1_3", "role": "tool", "name": name, "content": "done", "tool_call_id": "call_1",
                "tool_status": "success", "attachments": attachments,
            });
            shown(message).remove(0)
        };
        assert_eq!(result("add", json!([])).0, "command_execution");
        assert_eq!(result("github__search", json!([])).0, "mcp_tool_call");
        assert_eq!(result("shop__find", json!([])).0, "mcp_tool_call", "of a list that is not known here");
        assert_eq!(result("shops__find", json!([])).0, "command_execution");
        let (kind, _, data) = result("draw", json!([{ "path": "/a.png" }]));
        assert_eq!((kind.as_str(), &data["files"]), ("file_change", &json!(["/a.png"])));
        assert_eq!(data["callId"], "call_1");
    }

    #[test]
    fn what_people_write_is_no_item_and_what_went_wrong_is_an_error() {
        assert_eq!(shown(json!({ "id": "m_1_1", "role": "user", "content": "hi" })), []);
        let failed = json!({ "id": "m_1_4", "role": "assistant", "content": "No.", "metadata": { "status_kind": "failed" } });
        assert_eq!(
            shown(failed),
            [("error".into(), "m_1_4".into(), json!({ "code": "failed", "message": "No." }))]
        );
    }

    #[test]
    fn a_snapshot_has_the_items_of_all_its_messages() {
        let data = json!({ "messages": [
            { "id": "m_1_1", "role": "user", "content": "hi" },
            { "id": "m_1_2", "role": "assistant", "content": "a", "silent": true, "depth": 1 },
        ] });
        let frame = Frame {
            kind: "snapshot",
            id: None,
            data,
            silent: false,
            depth: 0,
            place: FramePosition::Outside,
        };
        let without = Filter::default();
        assert_eq!(with_items(frame.clone(), &without, &catalog()).len(), 1);
        let all = with_items(frame, &Filter { items: true, ..without }, &catalog());
        assert_eq!(
            all.iter().map(|frame| (frame.kind, frame.silent, frame.depth)).collect::<Vec<_>>(),
            [("snapshot", false, 0), ("item", true, 1)]
        );
    }
}
