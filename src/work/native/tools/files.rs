//! The thread's files as a model's folder.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::error::Result;
use crate::store::file_record::FileOptions;
use crate::text::first_bytes;
use crate::work::native::NativeCall;

/// Maximum bytes of a file that a model receives; a larger text would fill its context.
const SHOWN_BYTES: usize = 32 << 10;

/// Writes `content` to the file `path`.
pub(super) fn write_file(call: &NativeCall) -> ToolResult {
    let (Some(path), Some(content)) = (text(call, "path"), text(call, "content")) else {
        return ToolResult::error("path and content: required.");
    };
    tool_result(
        call.state
            .write_file(path, content, kind_of(path), FileOptions::default())
            .map(|file| format!("Wrote {} ({} bytes).", file.path, file.size)),
    )
}

/// Returns the text of the file `path`.
pub(super) fn read_file(call: &NativeCall) -> ToolResult {
    let Some(path) = text(call, "path") else { return ToolResult::error("path: required but missing.") };
    tool_result(call.state.read_file(path).map(|content| match content {
        None => format!("There is no file {path}."),
        Some(bytes) => shown(&bytes, |text| call.state.redact(text)),
    }))
}

/// Returns the entries of the directory `path`, or of the root.
pub(super) fn list_files(call: &NativeCall) -> ToolResult {
    let path = text(call, "path").unwrap_or("/");
    tool_result(call.state.readdir_file(path).map(|entries| {
        let lines = entries.iter().map(|entry| match entry.is_directory {
            true => format!("{}/", entry.path),
            false => format!("{} ({} bytes, {})", entry.path, entry.size, entry.mime_type),
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { format!("{path} has no entries.") } else { lines.join("\n") }
    }))
}

/// Returns lines with the text `text`, or paths that match `pattern`.
pub(super) fn search_files(call: &NativeCall) -> ToolResult {
    let found = match (text(call, "text"), text(call, "pattern")) {
        (Some(text), _) => call.state.grep_files(text).map(|results| {
            let lines = results.iter().flat_map(|result| {
                result.matches.iter().map(|found| format!("{}:{}: {}", result.path, found.line, found.text))
            });
            lines.collect::<Vec<_>>()
        }),
        (None, Some(pattern)) => call.state.find_files(pattern),
        (None, None) => return ToolResult::error("text or pattern: one of them is required."),
    };
    tool_result(
        found.map(|lines| if lines.is_empty() { "Nothing was found.".to_owned() } else { lines.join("\n") }),
    )
}

fn text<'a>(call: &'a NativeCall, name: &str) -> Option<&'a str> {
    call.args.get(name).and_then(Value::as_str)
}

fn tool_result(result: Result<String>) -> ToolResult {
    match result {
        Ok(text) => ToolResult::success(text),
        Err(error) => ToolResult::error(error.into_message()),
    }
}

/// Text of a file for the model. `clean` removes secrets before the text is cut.
fn shown(bytes: &[u8], clean: impl Fn(String) -> String) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return format!("The file is no text; it has {} bytes.", bytes.len());
    };
    let text = &clean(text.to_owned());
    if text.len() <= SHOWN_BYTES {
        return text.to_owned();
    }
    let kept = first_bytes(text, SHOWN_BYTES);
    let rest = text.len() - kept.len();
    format!("{kept}\n[{rest} more bytes are not shown; search_files finds lines in them.]")
}

/// The media type for a file name.
fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, kind)| kind) {
        Some("md") => "text/markdown",
        Some("html") => "text/html",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_text_is_shown_in_part_and_bytes_are_not() {
        assert_eq!(shown("short – ü".as_bytes(), |text| text), "short – ü");
        assert_eq!(shown(&[0xff, 0], |text| text), "The file is no text; it has 2 bytes.");
        let long = "ü".repeat(SHOWN_BYTES);
        let told = shown(long.as_bytes(), |text| text);
        assert!(
            told.starts_with("üü") && told.contains("[32768 more bytes are not shown"),
            "{}",
            &told[told.len() - 90..]
        );
    }
}
