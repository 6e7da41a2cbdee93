//! The JSON interface: files and bundled code in, a catalog and its mistakes out.

use std::collections::BTreeMap;

use bobbin_definitions::definitions::Strictness;
use bobbin_definitions::validate::{Complaint, Natives, Severity};
use serde::{Deserialize, Serialize};

use crate::code::Bundle;
use crate::files::Files;
use crate::{Compiled, compile, place};

/// A folder of definitions, as folder.mjs beside this crate reads it. Paths are relative to the folder, with
/// `/`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Request {
    /// The text of each file.
    files: BTreeMap<String, String>,
    /// Files that cannot be read, and the reasons.
    unreadable: BTreeMap<String, String>,
    /// Folders. Folders that hold something may be left out.
    folders: Vec<String>,
    /// Code with its dependencies (code.mjs), by path.
    bundles: BTreeMap<String, Bundle>,
    /// Whether warnings count as errors, whatever the folder's settings are.
    strict: bool,
    /// Whether the application's own crate registers natives that are not known here.
    own_natives: bool,
}

/// The result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// The text of `catalog.json`. `None` if there are errors.
    catalog: Option<String>,
    /// Whether warnings count as errors.
    strict: bool,
    findings: Vec<Finding>,
}

/// A mistake.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
    severity: &'static str,
    message: String,
}

/// Compiles the folder of a request. The answer is JSON. It has only `error` if the request is invalid.
pub fn compile_json(request: &[u8]) -> String {
    let answer =
        serde_json::from_slice(request).map(answer).and_then(|answer| serde_json::to_string(&answer?));
    answer.unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string())
}

fn answer(request: Request) -> Result<Answer, serde_json::Error> {
    let natives = Natives { complete: !request.own_natives, ..Natives::built_in() };
    let mut files = Files::default();
    request.folders.iter().for_each(|folder| files.insert_folder(folder));
    request.files.into_iter().for_each(|(path, text)| files.insert(&path, Ok(text)));
    request.unreadable.into_iter().for_each(|(path, why)| files.insert(&path, Err(why)));
    let Compiled { mut catalog, complaints } = compile(&files, request.bundles, &natives)?;
    let count = |severity| complaints.iter().filter(|complaint| complaint.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let strict = request.strict || catalog.settings.diagnostics == Strictness::Strict;
    catalog.warnings = u32::try_from(warnings).unwrap_or(u32::MAX);
    let text = match errors == 0 && !(strict && warnings > 0) {
        true => Some(serde_json::to_string(&catalog)? + "\n"),
        false => None,
    };
    let findings = complaints.into_iter().map(|complaint| finding(complaint, &files)).collect();
    Ok(Answer { catalog: text, strict, findings })
}

fn finding(complaint: Complaint, files: &Files) -> Finding {
    let Complaint { file, field, message, severity } = complaint;
    let severity = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    // If a text cannot be parsed, the file name contains its line and column.
    let told = file.rsplitn(3, ':').collect::<Vec<_>>();
    if let [column, line, file] = told.as_slice()
        && let (Ok(line), Ok(column)) = (line.parse(), column.parse())
    {
        let (file, line, column) = ((*file).to_owned(), Some(line), Some(column));
        return Finding { file, line, column, field, severity, message };
    }
    let place = files.text(&file).and_then(Result::ok).and_then(|text| place::of(&file, &text, &field));
    let (line, column) = place.map(|place| (place.line, place.column)).unzip();
    Finding { file, line, column, field, severity, message }
}
