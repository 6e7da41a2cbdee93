//! Paths of files (spec §16.3), with a leading `/` and no doubled or trailing one.

use crate::env::Redacted;
use crate::error::{Error, Result};
use crate::host::Param;
use crate::limits;

/// A normalized path. The root is `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePath(String);

impl FilePath {
    /// Normalizes a path.
    ///
    /// # Errors
    /// `invalid_field`, with this field, for an invalid path: a segment `.` or `..`, control characters,
    /// U+FFFD (the replacement for invalid UTF-8), or excessive length of a segment or the path.
    pub(crate) fn parse(field: &str, text: &str) -> Result<FilePath> {
        let mut path = String::with_capacity(text.len() + 1);
        for name in text.split('/').filter(|name| !name.is_empty()) {
            check_name(field, name)?;
            path.push('/');
            path.push_str(name);
        }
        if path.len() > limits::FILE_PATH_BYTES {
            return Err(too_long(field, path.len()));
        }
        if path.is_empty() {
            path.push('/');
        }
        Ok(FilePath(path))
    }

    /// Normalizes a path from code.
    pub(crate) fn shown(field: &str, text: &Redacted) -> Result<FilePath> {
        FilePath::parse(field, text)
    }

    /// The path of a directory entry that comes from the tables.
    pub(super) fn of(parent: &str, name: &str) -> FilePath {
        FilePath(if parent == "/" { format!("/{name}") } else { format!("{parent}/{name}") })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0 == "/"
    }

    /// The parent directory and the name; `None` for the root.
    pub(crate) fn split(&self) -> Option<(&str, &str)> {
        let (parent, name) = self.0.rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
        Some((if parent.is_empty() { "/" } else { parent }, name))
    }

    /// The range of paths below this directory, which must not be the root.
    pub(crate) fn below(&self) -> SubtreeRange {
        SubtreeRange { directory: self.0.clone(), first: format!("{self}/"), end: format!("{self}0") }
    }

    /// The parent directories, outermost first, without the root.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = FilePath> {
        let ends = self.0.char_indices().skip(1).filter(|(_, c)| *c == '/').map(|(at, _)| at);
        ends.filter_map(|at| self.0.get(..at)).map(|path| FilePath(path.to_owned()))
    }

    /// Whether the path is below `directory` at any depth.
    pub(crate) fn is_below(&self, directory: &FilePath) -> bool {
        directory.is_root() && !self.is_root()
            || self.0.strip_prefix(&directory.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl std::fmt::Display for FilePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn check_name(field: &str, name: &str) -> Result<()> {
    let wrong = |why: &str| Err(Error::field(field, format!("`{field}` is no path of a file: {why}.")));
    if name == "." || name == ".." {
        return wrong("a part of it is “.” or “..”; give the whole path");
    }
    if name.chars().any(char::is_control) {
        return wrong("it has a control character");
    }
    if name.contains('\u{fffd}') {
        return wrong("it is not valid UTF-8");
    }
    if name.len() > limits::FILE_NAME_BYTES {
        return Err(Error::field(
            field,
            format!(
                "A part of `{field}` has {} bytes; the limit is {}.",
                name.len(),
                limits::FILE_NAME_BYTES
            ),
        ));
    }
    Ok(())
}

/// The error for a path of this length.
pub(crate) fn too_long(field: &str, bytes: usize) -> Error {
    Error::field(field, format!("`{field}` has {bytes} bytes; the limit is {}.", limits::FILE_PATH_BYTES))
}

/// The range of parents below a directory. It consists of the directory itself and, for `/a`, the range from
/// `/a/` up to `/a0`, the first text after all that begin with `/a/`.
pub(crate) struct SubtreeRange {
    directory: String,
    first: String,
    end: String,
}

impl SubtreeRange {
    pub(super) fn directory(&self) -> &str {
        &self.directory
    }

    /// The parameters of `parent = ? OR (parent >= ? AND parent < ?)`.
    pub(super) fn params(&self) -> [Param<'_>; 3] {
        [Param::Text(&self.directory), Param::Text(&self.first), Param::Text(&self.end)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> FilePath {
        FilePath::parse("path", text).unwrap()
    }

    #[test]
    fn paths_have_one_form() {
        for (text, form) in [
            ("", "/"),
            ("/", "/"),
            ("//", "/"),
            ("a", "/a"),
            ("/a/", "/a"),
            ("a//b///c/", "/a/b/c"),
            ("/ü/日本 🧵/…", "/ü/日本 🧵/…"),
            ("...", "/..."),
            (".hidden", "/.hidden"),
            ("a/..b", "/a/..b"),
            ("a b/%2e", "/a b/%2e"),
        ] {
            assert_eq!(parsed(text).as_str(), form, "{text}");
            assert_eq!(parsed(form), parsed(text), "the form is its own form");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_by_name() {
        let long = "n".repeat(256);
        let deep = "abc/".repeat(257);
        for (text, says) in [
            ("..", "“..”"),
            ("/a/../b", "“..”"),
            ("a/.", "“.”"),
            ("a\0b", "control"),
            ("a\u{7f}", "control"),
            ("a\u{85}", "control"),
            ("a\n", "control"),
            ("a\u{fffd}", "UTF-8"),
            (&long, "256 bytes; the limit is 255"),
            (&deep, "1028 bytes; the limit is 1024"),
        ] {
            let error = FilePath::parse("path", text).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (crate::Code::InvalidField, Some("path")));
            assert!(error.message.contains(says), "{error}");
        }
        assert!(FilePath::parse("path", &"n".repeat(255)).is_ok());
        assert!(FilePath::parse("path", &"abc/".repeat(256)).is_ok());
    }

    #[test]
    fn a_path_knows_what_it_is_in() {
        assert_eq!(parsed("/").split(), None);
        assert_eq!(parsed("/a").split(), Some(("/", "a")));
        assert_eq!(parsed("/ü/b/c").split(), Some(("/ü/b", "c")));
        let above = |text: &str| parsed(text).ancestors().map(|path| path.to_string()).collect::<Vec<_>>();
        assert_eq!(above("/ü/b/c"), ["/ü", "/ü/b"]);
        assert!(above("/a").is_empty() && above("/").is_empty());
        assert!(parsed("/a/b").is_below(&parsed("/a")) && parsed("/a").is_below(&parsed("/")));
        assert!(!parsed("/ab").is_below(&parsed("/a")) && !parsed("/a").is_below(&parsed("/a")));
        assert!(!parsed("/").is_below(&parsed("/")));
        assert_eq!(FilePath::of("/", "a"), parsed("/a"));
        assert_eq!(FilePath::of("/a", "b"), parsed("/a/b"));
    }
}
