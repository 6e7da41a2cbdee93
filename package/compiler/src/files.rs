//! The files of a folder of definitions, in memory. The caller reads them.

use std::collections::BTreeMap;

use serde_json::Value;

/// The contents of a folder, by path with `/`, relative to the folder.
#[derive(Default)]
pub(crate) struct Files {
    /// The text of each file, or why it cannot be read.
    texts: BTreeMap<String, Result<String, String>>,
    /// The entries of each folder. The folder itself is `""`.
    folders: BTreeMap<String, BTreeMap<String, Entry>>,
}

/// The kind of an entry.
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

    /// Adds a folder, which may be empty.
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

    /// The entries of a folder, sorted by name, without hidden files.
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

    /// The text of a file with Unix line ends, or why it cannot be read. `None` if the file does not exist.
    pub(crate) fn text(&self, path: &str) -> Option<Result<String, String>> {
        let text = self.texts.get(path)?.as_deref();
        let plain = |text: &str| text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        Some(text.map(plain).map_err(|why| why.to_owned()))
    }

    /// The unchanged text of a file.
    pub(crate) fn raw(&self, path: &str) -> Option<&str> {
        self.texts.get(path)?.as_ref().ok().map(String::as_str)
    }

    /// A file parsed as JSON, if it is valid.
    pub(crate) fn json(&self, path: &str) -> Option<Value> {
        serde_json::from_str(self.raw(path)?).ok()
    }
}

/// The path of a name in a folder, which may be `""`.
pub(crate) fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
