//! The result for the caller of a prompt (spec §23): its text, its calls, and its errors, as the entry
//! requests.

use crate::definitions::ToolEntry;
use crate::definitions::message::{ToolResult, ToolStatus};
use crate::limits;
use crate::store::messages::{Row, SharedRow};
use crate::store::window::with_notes;
use crate::text::first_bytes;

/// Maximum bytes of an inner result in the summary of a failure.
const SUMMARY_BYTES: usize = 1 << 10;

/// The result of a call of a prompt. It is an error if a call of the reply has failed.
pub(super) fn compose(entry: &ToolEntry, reply: &Row, results: &[SharedRow]) -> ToolResult {
    let wanted = |flag: Option<bool>| flag.unwrap_or(true);
    let said = with_notes(reply.content.clone().unwrap_or_default(), reply);
    let mut parts = Vec::new();
    if wanted(entry.include_text_response) && !said.trim().is_empty() {
        parts.push(said);
    }
    let failed: Vec<&SharedRow> =
        results.iter().filter(|row| row.status == Some(ToolStatus::Error)).collect();
    if !failed.is_empty() {
        let mut text = format!("{} of {} tool calls failed.", failed.len(), results.len());
        if wanted(entry.include_errors) {
            for row in &failed {
                text.push_str(&format!("\n{}: {}", name(row), first_bytes(content(row), SUMMARY_BYTES)));
            }
        }
        parts.insert(0, text);
    }
    if wanted(entry.include_tool_calls) && !results.is_empty() {
        parts.push(calls(reply, results));
    }
    let result = match failed.is_empty() {
        false => ToolResult::error(parts.join("\n\n")),
        true if parts.is_empty() => ToolResult::success("The prompt finished and gave no output."),
        true => ToolResult::success(parts.join("\n\n")),
    };
    // The caller of the prompt gets the files of its tools.
    let files = results.iter().flat_map(|row| &row.attachments).take(limits::ATTACHMENTS);
    files.fold(result, |result, file| result.with_path(&file.path))
}

/// The calls and their results.
fn calls(reply: &Row, results: &[SharedRow]) -> String {
    let mut text = "Tool calls:".to_owned();
    for (call, row) in reply.calls.iter().zip(results) {
        // The error's text is above, or is left out.
        let told = if row.status == Some(ToolStatus::Error) { "failed" } else { content(row) };
        text.push_str(&format!("\n- {}({})\n  {told}", call.name, call.arguments));
    }
    text
}

fn name(row: &Row) -> &str {
    row.name.as_deref().unwrap_or_default()
}

fn content(row: &Row) -> &str {
    row.content.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::message::{Role, ToolCall};

    fn reply(text: &str, calls: &[&str]) -> Row {
        let call = |name: &&str| ToolCall {
            id: (*name).into(),
            name: (*name).into(),
            arguments: "{}".into(),
            extra_content: None,
        };
        Row { calls: calls.iter().map(call).collect(), ..Row::new(1, Role::Assistant, text, 0) }
    }

    fn result(name: &str, status: ToolStatus, text: &str) -> SharedRow {
        let row = Row::new(2, Role::Tool, text, 0);
        SharedRow::new(Row { name: Some(name.into()), status: Some(status), ..row })
    }

    #[test]
    fn a_result_holds_what_its_entry_asks_for() {
        let entry = |text: bool, calls: bool, errors: bool| ToolEntry {
            include_text_response: Some(text),
            include_tool_calls: Some(calls),
            include_errors: Some(errors),
            ..ToolEntry::unlisted("x")
        };
        let (fine, bad) =
            (result("a", ToolStatus::Success, "done"), result("b", ToolStatus::Error, "no luck"));
        let (one, two) = (reply("Said.", &["a"]), reply("Said.", &["a", "b"]));
        let (alone, both) = (vec![fine.clone()], vec![fine, bad]);
        let (success, error) = (ToolStatus::Success, ToolStatus::Error);
        for (entry, reply, results, status, text) in [
            (ToolEntry::unlisted("x"), &one, &alone, success, "Said.\n\nTool calls:\n- a({})\n  done"),
            (entry(true, false, true), &one, &alone, success, "Said."),
            (entry(false, true, true), &one, &alone, success, "Tool calls:\n- a({})\n  done"),
            (entry(false, false, true), &one, &alone, success, "The prompt finished and gave no output."),
            (entry(true, false, true), &two, &both, error, "1 of 2 tool calls failed.\nb: no luck\n\nSaid."),
            (entry(false, false, false), &two, &both, error, "1 of 2 tool calls failed."),
            (
                entry(false, true, false),
                &two,
                &both,
                error,
                "1 of 2 tool calls failed.\n\nTool calls:\n- a({})\n  done\n- b({})\n  failed",
            ),
        ] {
            let composed = compose(&entry, reply, results);
            assert_eq!((composed.status, composed.text().as_str()), (status, text));
        }
    }
}
