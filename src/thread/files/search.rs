//! Searching: by path with a pattern, by text with a piece of it.
//!
//! A text is found by reading files line by line. An index of three-letter groups only says which files are worth
//! reading; it is made with the first text, so that a thread without texts pays nothing. Whatever the index says, a
//! result is a line that was read, so that it is never out of date.

use std::collections::BTreeSet;

use serde::Serialize;

use super::glob::Glob;
use super::record::{FileRecord, GrepMatch, GrepResult};
use super::table::{self, Row, Search, columns};
use crate::error::{Error, Result};
use crate::limits;
use crate::thread::Thread;
use crate::thread::host::{Host, Param, Sql};

/// Three-letter groups of a pattern that the index is asked for; more would not narrow it.
const GROUPS: usize = 32;

/// The answer to a search by text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    /// Files with the text, by path.
    pub(super) results: Vec<GrepResult>,
    /// Whether there may be more: the search reads, and tells, only so much.
    pub(super) truncated: bool,
}

impl<H: Host> Thread<H> {
    /// Lines of text files that have `pattern` in them, whatever its case.
    pub(super) fn grep(&self, pattern: &str) -> Result<Found> {
        check_pattern("grep", pattern)?;
        let wanted = fold(pattern);
        self.read(|_, sql| {
            let mut found = Found { results: Vec::new(), truncated: false };
            // No line has a line break in it.
            if wanted.contains('\n') {
                return Ok(found);
            }
            let mut scanned = 0;
            for row in candidates(sql, &wanted)? {
                scanned += row.size.unsigned_abs();
                if found.results.len() >= limits::FOUND_FILES || scanned > limits::GREP_SCAN_BYTES {
                    found.truncated = true;
                    break;
                }
                let content = content(sql, &row)?;
                let matches = lines_with(&String::from_utf8_lossy(&content), &wanted);
                if !matches.is_empty() {
                    found.results.push(GrepResult { path: row.path(), matches });
                }
            }
            Ok(found)
        })
    }

    /// Files and directories whose path matches, by path; and whether there are more.
    pub(super) fn find(&self, pattern: &str) -> Result<(Vec<FileRecord>, bool)> {
        check_pattern("find", pattern)?;
        let glob = Glob::new(pattern);
        let mut rows = self.read(|_, sql| {
            table::read(sql, concat!("SELECT ", columns!(), " FROM files WHERE parent IS NOT NULL"), &[])
        })?;
        rows.retain(|row| glob.matches(&row.path()));
        rows.sort_by_cached_key(Row::path);
        let more = rows.len() > limits::FOUND_FILES;
        rows.truncate(limits::FOUND_FILES);
        Ok((rows.iter().map(Row::record).collect::<Result<_>>()?, more))
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

/// Text files that may have a text, by path.
fn candidates<S: Sql>(sql: &S, wanted: &str) -> Result<Vec<Row>> {
    let question = question(wanted);
    let mut rows = match question.filter(|_| is_there(sql)) {
        None => table::read(sql, concat!("SELECT ", columns!(), " FROM files WHERE search > 0"), &[])?,
        Some(question) => {
            let statement = concat!(
                "SELECT ",
                columns!(),
                " FROM files WHERE search = 1 OR id IN (SELECT rowid FROM file_texts WHERE file_texts MATCH ?)"
            );
            table::read(sql, statement, &[Param::Text(&question)])?
        }
    };
    rows.sort_by_cached_key(Row::path);
    Ok(rows)
}

/// What the index is asked: for files with every group of the pattern. `None` for one that is too short.
fn question(wanted: &str) -> Option<String> {
    let letters: Vec<char> = indexed(wanted).chars().collect();
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
pub(super) fn content<S: Sql>(sql: &S, row: &Row) -> Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(row.size).unwrap_or(0));
    for index in 0..row.chunks {
        let chunk = table::chunk(sql, row.id, index)?;
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
        // Folding keeps the number of characters.
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

/// A text without its cases, character by character: what has no one small letter stays as it is.
pub(super) fn fold(text: &str) -> String {
    let small = |c: char| {
        let mut small = c.to_lowercase();
        match (small.next(), small.next()) {
            (Some(small), None) => small,
            _ => c,
        }
    };
    text.chars().map(small).collect()
}

/// The content of a file as it is compared.
pub(super) fn folded(content: &[u8]) -> String {
    fold(&String::from_utf8_lossy(content))
}

/// A text as the index has it: a NUL would end it there.
fn indexed(folded: &str) -> String {
    folded.replace('\0', "\u{1}")
}

/// Whether a file is a text that searches look into.
pub(super) fn is_text(mime: &str, size: u64) -> bool {
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

/// How a text is found. One that grew too large by folding is no row of the index.
pub(super) fn found_by(folded: &str) -> Search {
    if folded.len() as u64 <= limits::GREP_FILE_BYTES { Search::Index } else { Search::Scan }
}

/// Whether the index is there.
fn is_there<S: Sql>(sql: &S) -> bool {
    let statement = "SELECT 1 FROM sqlite_schema WHERE name = 'file_texts'";
    matches!(crate::thread::rows::integer(sql, statement, &[]), Ok(Some(_)))
}

/// Makes the index, if it is not there. Never in a transaction: when SQLite takes the making of an FTS5 table back, the
/// commit around it fails.
pub(super) fn make_index<S: Sql>(sql: &S) -> Result<()> {
    // Only the groups, neither the text nor where they are in it: candidates are read anyway.
    sql.run(
        "CREATE VIRTUAL TABLE IF NOT EXISTS file_texts USING fts5(text, content='', contentless_delete=1,
            detail=none, tokenize='trigram case_sensitive 1')",
        &[],
    )
}

/// Enters a text into the index, which must be there.
pub(super) fn enter<S: Sql>(sql: &S, id: i64, folded: &str) -> Result<()> {
    sql.run(
        "INSERT INTO file_texts (rowid, text) VALUES (?, ?)",
        &[Param::Int(id), Param::Text(&indexed(folded))],
    )
}

/// Takes a text out of the index.
pub(super) fn forget<S: Sql>(sql: &S, id: i64) -> Result<()> {
    sql.run("DELETE FROM file_texts WHERE rowid = ?", &[Param::Int(id)])
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
