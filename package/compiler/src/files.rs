//! The files of a folder of definitions, in memory: whoever calls has read them.

use std::collections::BTreeMap;

use serde_json::Value;

/// What is in a folder, by path with `/`, from the folder itself.
#[derive(Default)]
pub(crate) struct Files {
    /// What is in each, or why it cannot be read.
    texts: BTreeMap<String, Result<String, String>>,
    /// What each folder holds; the folder itself is `""`.
    folders: BTreeMap<String, BTreeMap<String, Entry>>,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    File,
    Folder,
}

impl Files {
    pub(crate) fn insert(&mut self, path: &str, text: Result<String, String>) {
        self.enter(path, Entry::File);
        self.texts.insert(path.to_owned(), text);
    }

    /// A folder, which may be empty.
    pub(crate) fn insert_folder(&mut self, path: &str) {
        self.enter(path, Entry::Folder);
        self.folders.entry(path.to_owned()).or_default();
    }

    fn enter(&mut self, path: &str, entry: Entry) {
        let (mut path, mut entry) = (path, entry);
        loop {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let known = self.folders.entry(folder.to_owned()).or_default();
            if known.insert(name.to_owned(), entry).is_some() || folder.is_empty() {
                return;
            }
            (path, entry) = (folder, Entry::Folder);
        }
    }

    /// What is in a folder, sorted by name. Hidden files are left to their owners.
    pub(crate) fn entries(&self, folder: &str) -> impl Iterator<Item = (&str, Entry)> {
        let all = self.folders.get(folder).into_iter().flatten();
        all.filter(|(name, _)| !name.starts_with('.')).map(|(name, entry)| (name.as_str(), *entry))
    }

    pub(crate) fn is_folder(&self, path: &str) -> bool {
        self.folders.contains_key(path)
    }

    pub(crate) fn is_file(&self, path: &str) -> bool {
        self.texts.contains_key(path)
    }

    /// The text of a file with the line ends of Unix, or why it cannot be read; nothing when it is not there.
    pub(crate) fn text(&self, path: &str) -> Option<Result<String, String>> {
        let text = self.texts.get(path)?.as_deref();
        let plain = |text: &str| text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        Some(text.map(plain).map_err(|why| why.to_owned()))
    }

    /// The text of a file as it is.
    pub(crate) fn raw(&self, path: &str) -> Option<&str> {
        self.texts.get(path)?.as_ref().ok().map(String::as_str)
    }

    /// A file as JSON, if it is some.
    pub(crate) fn json(&self, path: &str) -> Option<Value> {
        serde_json::from_str(self.raw(path)?).ok()
    }
}

/// A path below a folder; the folder may be `""`.
pub(crate) fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
