//! Session tools (spec §7.4): the messages of their calls to the parent, and the files that they may name.

use crate::definitions::message::{ToolCall, ToolResult, ToolStatus};
use crate::definitions::{SessionTool, SideConfig};
use crate::engine::definitions::Definitions;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::json;
use crate::store::runs::session_result::{arguments, mapped, paths};

/// The tools of a side that end the session, in the order of their checks.
fn bound(side: &SideConfig) -> impl Iterator<Item = &SessionTool> {
    [&side.session_fail, &side.session_stop].into_iter().flatten()
}

impl Thread {
    /// Checks the result of a call. A call that ends the session must name existing files; otherwise its
    /// result is an error, and the session continues.
    pub(in crate::engine) fn checked_for_session(
        &self,
        definitions: &Definitions<'_>,
        call: &ToolCall,
        result: ToolResult,
    ) -> Result<ToolResult> {
        let Some(tool) = bound(definitions.side).find(|tool| tool.name == call.name) else {
            return Ok(result);
        };
        if result.status == ToolStatus::Error {
            return Ok(result);
        }
        let named = match paths(tool, &arguments(call)) {
            Ok(named) => named,
            Err(problem) => return Ok(ToolResult::error(format!("The session continues: {problem}."))),
        };
        let mut missing = Vec::new();
        for path in named {
            // A directory or an invalid path is not a file either.
            let file = self.read(|_, sql| Ok(crate::engine::files::attach::stat(sql, "path", &path)));
            if !matches!(file?, Ok(Some(_))) {
                missing.push(path);
            }
        }
        if missing.is_empty() {
            return Ok(result);
        }
        let missing = missing.join(", ");
        Ok(ToolResult::error(format!("The session continues: these files do not exist here: {missing}.")))
    }

    /// Reports the status to the parent and listeners, if the call is of the status tool (spec §24.3).
    pub(in crate::engine) fn announce_status(
        &self,
        definitions: &Definitions<'_>,
        call: &ToolCall,
        result: &ToolResult,
    ) -> Result<()> {
        let Some(tool) = definitions.side.session_status.as_ref().filter(|tool| tool.name == call.name)
        else {
            return Ok(());
        };
        let status = mapped(tool, &arguments(call)).unwrap_or_else(|| result.text());
        if status.trim().is_empty() {
            return Ok(());
        }
        self.emit("session_status", json!({ "status": status, "side": definitions.active.as_str() }));
        self.subagents().set_status(&status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::runs::session_result::SessionResult;
    use serde_json::Value;

    fn call(arguments: &Value) -> ToolCall {
        ToolCall {
            id: "c".into(),
            name: "finish".into(),
            arguments: arguments.to_string(),
            ..ToolCall::default()
        }
    }

    #[test]
    fn the_mapped_argument_speaks_and_else_the_result() {
        let tool = SessionTool {
            name: "finish".into(),
            message_property: Some("summary".into()),
            attachments_property: None,
        };
        for (arguments, text) in [
            (json!({ "summary": "All done." }), "All done."),
            (json!({ "summary": { "n": 1 } }), r#"{"n":1}"#),
            (json!({ "summary": " " }), "result"),
            (json!({ "summary": null }), "result"),
            (json!({}), "result"),
        ] {
            assert_eq!(SessionResult::of(&tool, &call(&arguments), "result").text, text, "{arguments}");
        }
        let plain = SessionTool { message_property: None, ..tool };
        assert_eq!(SessionResult::of(&plain, &call(&json!({ "summary": "x" })), "result").text, "result");
    }

    #[test]
    fn files_are_named_alone_or_in_a_list() {
        let tool = SessionTool {
            name: "finish".into(),
            message_property: None,
            attachments_property: Some("files".into()),
        };
        let paths = |arguments: Value| paths(&tool, &arguments);
        assert_eq!(paths(json!({ "files": "/a" })), Ok(vec!["/a".to_owned()]));
        assert_eq!(paths(json!({ "files": ["/a", { "path": "/b" }] })), Ok(vec!["/a".into(), "/b".into()]));
        assert_eq!(paths(json!({ "files": [] })), Ok(Vec::new()));
        assert_eq!(paths(json!({})), Ok(Vec::new()));
        assert!(paths(json!({ "files": [7] })).unwrap_err().contains("7 names no file"));
        assert!(paths(json!({ "files": [{ "name": "x" }] })).is_err());
    }
}
