//! Search: by path with a pattern, or for a piece of text.
//!
//! A text is found by reading files line by line. An index of trigrams only selects the files to read. It is
//! created with the first text, so that a thread without texts has no cost. Every result is a line that was
//! read, so an outdated index cannot cause a wrong result.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde::Serialize;

use crate::engine::features::Files;
use crate::engine::files::glob::Glob;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::limits::FOUND_FILES;
use crate::page::{Page, json_bytes};
use crate::store::file_record::{FileRecord, GrepMatch, GrepResult};
use crate::store::files::{Row, Search, tree as places};
use crate::store::{chunks, file_texts, files as table};

/// Maximum number of trigrams of a pattern for the index. More would not narrow the result.
const GROUPS: usize = 32;

/// The result of a search by text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TextMatches {
    /// Files with the text, by path.
    pub(crate) results: Vec<GrepResult>,
    /// Whether there may be more. The search reads and returns a bounded amount.
    pub(crate) truncated: bool,
}

impl Files<'_> {
    /// Lines of text files that contain `pattern`, ignoring case.
    pub(crate) fn grep(&self, pattern: &str) -> Result<TextMatches> {
        check_pattern("grep", pattern)?;
        let wanted = fold(pattern);
        self.read(|_, sql| {
            let mut page = Page::new(FOUND_FILES);
            // No line contains a line break.
            if wanted.contains('\n') {
                return Ok(TextMatches { results: Vec::new(), truncated: false });
            }
            let (mut scanned, mut truncated) = (0, false);
            for (path, id, size) in candidates(sql, &wanted)? {
                scanned += size;
                truncated = page.room() == 0 || scanned > limits::GREP_SCAN_BYTES;
                if truncated {
                    break;
                }
                let Some(row) = table::by_id(sql, id)? else { continue };
                let matches = lines_with(&String::from_utf8_lossy(&content(sql, &row)?), &wanted);
                if !matches.is_empty() {
                    let result = GrepResult { path, matches };
                    let bytes = json_bytes(&result);
                    let _full = page.add_sized(|| Ok((result, bytes)))?;
                }
            }
            Ok(TextMatches { truncated: truncated || page.has_more(), results: page.into_rows() })
        })
    }

    /// Files and directories whose path matches, by path, and whether there may be more. Yields to other work
    /// from time to time.
    pub(crate) async fn find(&self, pattern: &str) -> Result<(Vec<FileRecord>, bool)> {
        let mut finding = Finding::new(pattern)?;
        while self.read(|_, sql| finding.slice(sql))? == Slice::More {
            self.host.sleep_until(self.host.now_us() + limits::FIND_PAUSE_US).await;
        }
        self.read(|_, sql| finding.found(sql))
    }

    /// The same without yielding, for code that cannot wait.
    pub(crate) fn find_now(&self, pattern: &str) -> Result<(Vec<FileRecord>, bool)> {
        let mut finding = Finding::new(pattern)?;
        self.read(|_, sql| {
            while finding.slice(sql)? == Slice::More {}
            finding.found(sql)
        })
    }
}

/// A search by path in progress.
struct Finding {
    glob: Glob,
    /// Matching paths with their ids: the first ones, and one more if there are more.
    paths: BTreeMap<String, i64>,
    /// The last id that was checked.
    after: i64,
    /// Number of remaining steps.
    left: u64,
    truncated: bool,
}

/// The end of a part of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slice {
    /// More paths remain.
    More,
    /// All paths were checked, or the limit of one search was reached.
    Last,
}

impl Finding {
    fn new(pattern: &str) -> Result<Finding> {
        check_pattern("find", pattern)?;
        let glob = Glob::new(pattern);
        Ok(Finding { glob, paths: BTreeMap::new(), after: 0, left: limits::FIND_STEPS, truncated: false })
    }

    /// Checks the next paths. Only the paths are read, because the other columns may be large.
    fn slice(&mut self, sql: &dyn Sql) -> Result<Slice> {
        let (mut steps, mut seen) = (0, 0);
        places::each_path(sql, self.after, |id, path| {
            if steps >= limits::FIND_SLICE_STEPS.min(self.left) || seen >= limits::FIND_SLICE_PATHS {
                seen = usize::MAX;
                return ControlFlow::Break(());
            }
            seen += 1;
            self.after = id;
            if self.glob.matches(path.as_str(), &mut steps) {
                self.paths.insert(path.to_string(), id);
                if self.paths.len() > FOUND_FILES as usize + 1 {
                    self.paths.pop_last();
                }
            }
            ControlFlow::Continue(())
        })?;
        self.left = self.left.saturating_sub(steps);
        let more = seen == usize::MAX;
        self.truncated = more && self.left == 0;
        Ok(if more && self.left > 0 { Slice::More } else { Slice::Last })
    }

    /// The results in their current state.
    fn found(&self, sql: &dyn Sql) -> Result<(Vec<FileRecord>, bool)> {
        let mut page = Page::new(FOUND_FILES);
        for (path, id) in &self.paths {
            let row = table::by_id(sql, *id)?.filter(|row| row.parent.is_some() && row.path() == *path);
            let Some(row) = row else { continue };
            let full = page.add_sized(|| {
                let record = row.record()?;
                let bytes = json_bytes(&record);
                Ok((record, bytes))
            })?;
            if full.is_break() {
                break;
            }
        }
        let truncated = self.truncated || page.has_more();
        Ok((page.into_rows(), truncated))
    }
}

fn check_pattern(field: &str, pattern: &str) -> Result<()> {
    if pattern.is_empty() {
        return Err(Error::field(field, format!("`{field}` must not be empty.")));
    }
    if pattern.len() > limits::FILE_PATTERN_BYTES {
        return Err(Error::field(
            field,
            format!("`{field}` has {} bytes; the limit is {}.", pattern.len(), limits::FILE_PATTERN_BYTES),
        ));
    }
    Ok(())
}

/// Text files that may contain a text, by path: the path, the id, and the size of each.
fn candidates(sql: &dyn Sql, wanted: &str) -> Result<Vec<(String, i64, u64)>> {
    let question = question(wanted).filter(|_| file_texts::is_there(sql));
    let mut found = places::texts(sql, question.as_deref())?;
    found.sort();
    Ok(found)
}

/// The query for the index: files with every trigram of the pattern. `None` if the pattern is too short.
fn question(wanted: &str) -> Option<String> {
    let letters: Vec<char> = file_texts::indexed(wanted).chars().collect();
    let groups: BTreeSet<&[char]> = letters.windows(3).take(GROUPS).collect();
    if groups.is_empty() {
        return None;
    }
    let quoted = groups.into_iter().map(|group| {
        let text: String = group.iter().collect();
        format!("\"{}\"", text.replace('"', "\"\""))
    });
    Some(quoted.collect::<Vec<_>>().join(" AND "))
}

/// The content of a text file.
pub(super) fn content(sql: &dyn Sql, row: &Row) -> Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(row.size).unwrap_or(0));
    for index in 0..row.chunks {
        let chunk = chunks::find(sql, row.id, index)?;
        let chunk =
            chunk.ok_or_else(|| Error::internal(format!("chunk {index} of {} is missing", row.path())))?;
        content.extend_from_slice(&chunk);
    }
    Ok(content)
}

fn lines_with(text: &str, wanted: &str) -> Vec<GrepMatch> {
    let lines = (1..).zip(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)));
    let matching = lines.filter_map(|(line, text)| {
        let folded = fold(text);
        let at = folded.find(wanted)?;
        // Case folding keeps the number of characters.
        let before = folded.get(..at).map_or(0, |before| before.chars().count());
        Some(GrepMatch { line, text: shortened(text, before) })
    });
    matching.take(limits::FOUND_LINES).collect()
}

/// A line, or the part of it around its character `at`.
fn shortened(line: &str, at: usize) -> String {
    if line.len() <= limits::FOUND_LINE_CHARS || line.chars().count() <= limits::FOUND_LINE_CHARS {
        return line.to_owned();
    }
    line.chars()
        .skip(at.saturating_sub(limits::FOUND_LINE_CHARS / 4))
        .take(limits::FOUND_LINE_CHARS)
        .collect()
}

/// A text in lower case, character by character. A character without a single lower-case form is unchanged.
fn fold(text: &str) -> String {
    let small = |c: char| {
        let mut small = c.to_lowercase();
        match (small.next(), small.next()) {
            (Some(small), None) => small,
            _ => c,
        }
    };
    text.chars().map(small).collect()
}

/// The content of a file in the form in which it is compared.
pub(super) fn folded(content: &[u8]) -> String {
    fold(&String::from_utf8_lossy(content))
}

/// Whether a file is a text that is searched.
pub(crate) fn is_text(mime: &str, size: u64) -> bool {
    size <= limits::GREP_FILE_BYTES && is_text_type(mime)
}

fn is_text_type(mime: &str) -> bool {
    let essence = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some(("application", kind)) = essence.split_once('/') else { return essence.starts_with("text/") };
    let kind = kind.strip_prefix("x-").unwrap_or(kind);
    let known = [
        "csv",
        "ecmascript",
        "graphql",
        "javascript",
        "json",
        "json5",
        "jsonl",
        "latex",
        "markdown",
        "ndjson",
        "perl",
        "php",
        "python",
        "rtf",
        "ruby",
        "rust",
        "sh",
        "shellscript",
        "sql",
        "tex",
        "toml",
        "typescript",
        "xml",
        "yaml",
    ];
    known.contains(&kind) || kind.ends_with("+json") || kind.ends_with("+xml") || kind.ends_with("+yaml")
}

/// The search for a text. A text that grew too large by case folding is scanned instead of indexed.
pub(super) fn found_by(folded: &str) -> Search {
    if folded.len() as u64 <= limits::GREP_FILE_BYTES { Search::Index } else { Search::Scan }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_keeps_the_number_of_characters() {
        for text in ["HELLO Wörld ÄÖÜ", "İstanbul", "ẞß", "Ⱥ", "日本 🧵\0", "ΣΑΣ"] {
            assert_eq!(fold(text).chars().count(), text.chars().count(), "{text}");
        }
        assert_eq!(fold("ÄÖÜ Ω ЖЩ"), "äöü ω жщ");
    }

    #[test]
    fn the_index_is_asked_for_groups() {
        assert_eq!(question("ab"), None);
        assert_eq!(question("abc").as_deref(), Some("\"abc\""));
        assert_eq!(question("a\"b\0").as_deref(), Some("\"\"\"b\u{1}\" AND \"a\"\"b\""));
        let long: String = ('a'..='z').cycle().take(900).collect();
        assert_eq!(question(&long).unwrap().matches(" AND ").count(), 25, "each group once");
    }

    #[test]
    fn texts_are_known_by_their_types() {
        for text in [
            "text/plain",
            "TEXT/html; charset=utf-8",
            "application/json",
            "application/x-sh",
            "application/ld+json",
        ] {
            assert!(is_text_type(text), "{text}");
        }
        for other in [
            "image/png",
            "application/octet-stream",
            "application/pdf",
            "application/zip",
            "",
            "image/svg+xml",
        ] {
            assert!(!is_text_type(other), "{other}");
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let line = format!("{}needle{}", "ü".repeat(1_000), "x".repeat(1_000));
        let [GrepMatch { line: 2, text }] = &lines_with(&format!("\r\n{line}\r\n"), "needle")[..] else {
            panic!()
        };
        assert_eq!(text.chars().count(), limits::FOUND_LINE_CHARS);
        assert!(text.contains("needlex"));
        assert_eq!(lines_with("a\nb\na", "a").iter().map(|found| found.line).collect::<Vec<_>>(), [1, 3]);
    }
}
