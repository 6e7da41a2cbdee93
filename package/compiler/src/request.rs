//! The JSON that comes in and goes out: files and what was bundled of them; a catalog, and what is wrong.

use std::collections::BTreeMap;

use bobbin::spec::Strictness;
use bobbin::validate::{Complaint, Natives, Severity};
use serde::{Deserialize, Serialize};

use crate::code::Bundle;
use crate::files::Files;
use crate::{Compiled, compile, place};

/// A folder of definitions, as folder.mjs beside this crate reads it. Paths are from the folder, with `/`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Request {
    /// What is in each file.
    files: BTreeMap<String, String>,
    /// Files that cannot be read, and why.
    unreadable: BTreeMap<String, String>,
    /// Folders; those that hold something need not be among them.
    folders: Vec<String>,
    /// Code with its dependencies (code.mjs), by path.
    bundles: BTreeMap<String, Bundle>,
    /// Whether warnings count as errors, whatever the folder says.
    strict: bool,
    /// Whether a crate of the application's own registers natives that are not known here.
    own_natives: bool,
}

/// What came of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// The text of `catalog.json`; nothing while something is wrong that counts.
    catalog: Option<String>,
    /// Whether warnings count as errors.
    strict: bool,
    findings: Vec<Finding>,
}

/// Something that is wrong.
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

/// Compiles the folder of a request. The answer is JSON; one that has only `error` is to a request that is none.
pub fn compile_json(request: &[u8]) -> String {
    let answer =
        serde_json::from_slice(request).map(answer).and_then(|answer| serde_json::to_string(&answer?));
    answer.unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string())
}

fn answer(request: Request) -> Result<Answer, serde_json::Error> {
    let natives = Natives { complete: !request.own_natives, ..Natives::registered() };
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
    // A text that cannot be parsed has its place with its name.
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
