//! Which files a folder of definitions holds.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use anyhow::{Context as _, Result};
use bobbin::sorted::SortedMap;
use bobbin::spec::references::Kind;
use bobbin::spec::skill::FILE;
use bobbin::validate::{Complaint, Severity};

use super::code;
use super::packages::Found;

/// Settings of the folder as a whole.
pub(super) const SETTINGS: &str = "bobbin.json";

/// What npm knows a folder by.
pub(super) const PACKAGE_FILE: &str = "package.json";

/// Folder of packages of agents.
pub(super) const PACKAGES: &str = "packages";

/// What npm and editors keep beside code.
const PACKAGE: [&str; 3] = [PACKAGE_FILE, "package-lock.json", "tsconfig.json"];

/// Folders that other runtimes know, and what is here instead.
const ELSEWHERE: [(&str, &str); 2] = [
    ("providers", "a provider of models is registered by a crate of your own: docs/models.md"),
    (
        "handlers",
        "a side is a person or a prompt; code of your own runs in hooks (`hooks/`) and endpoints (`api/`)",
    ),
];

/// A file that holds a definition.
pub(super) struct File {
    /// What it defines.
    pub(super) kind: Kind,
    /// Its name without the extension; of an endpoint, its path below the folder of endpoints.
    pub(super) name: String,
    /// Its path below the folder, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Of a skill: the files beside it, by their path in its folder.
    pub(super) beside: SortedMap<String, String>,
    /// The id of its package; none of the application's own.
    pub(super) package: Option<String>,
}

/// A folder's contents.
#[derive(Default)]
pub(super) struct Folder {
    pub(super) files: Vec<File>,
    /// Text of `bobbin.json`.
    pub(super) settings: Option<String>,
    pub(super) complaints: Vec<Complaint>,
}

/// Reads a folder; what does not belong in it is complained about. Fails only when the folder itself cannot be read.
pub(super) fn read(agents: &Path) -> Result<Folder> {
    let mut folder = Folder::default();
    let entries = entries(agents).with_context(|| format!("cannot read the folder {}", agents.display()))?;
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.path().is_dir();
        match Kind::ALL.into_iter().find(|kind| kind.folder() == name) {
            Some(Kind::Skill) if is_folder => folder.skills(&entry.path()),
            Some(kind) if is_folder => folder.definitions(kind, kind.folder(), &entry.path()),
            _ if is_folder && ELSEWHERE.iter().any(|(known, _)| *known == name) => {
                folder.elsewhere(&name, &entry.path())
            }
            _ if name == SETTINGS && !is_folder => folder.settings = folder.text(SETTINGS, &entry.path()),
            // Code that other code imports, and what it depends on.
            _ if is_folder && ["lib", "node_modules", PACKAGES].contains(&name.as_str()) => {}
            _ if is_readme(&name) || PACKAGE.contains(&name.as_str()) => {}
            _ => folder.stray(&name),
        }
    }
    Ok(folder)
}

/// Reads the definitions of a package, with their paths from the folder of the application.
pub(super) fn read_package(agents: &Path, package: &Found) -> Result<Folder> {
    let mut folder = read(&agents.join(&package.definitions))?;
    // What else npm packages hold is no mistake.
    folder
        .complaints
        .retain(|complaint| complaint.severity == Severity::Error || complaint.file.contains('/'));
    folder.settings = None;
    for path in folder.paths() {
        *path = format!("{}/{path}", package.definitions);
    }
    for file in &mut folder.files {
        file.package = Some(package.id.clone());
    }
    Ok(folder)
}

impl Folder {
    fn paths(&mut self) -> impl Iterator<Item = &mut String> {
        let complaints = self.complaints.iter_mut().map(|complaint| &mut complaint.file);
        self.files.iter_mut().map(|file| &mut file.path).chain(complaints)
    }

    /// Reads `folder`, a path below the folder of definitions. Folders of endpoints may hold folders.
    fn definitions(&mut self, kind: Kind, folder: &str, path: &Path) {
        let entries = match entries(path) {
            Ok(entries) => entries,
            Err(error) => return self.complain(folder, format!("cannot be read: {error}"), Severity::Error),
        };
        for entry in entries {
            let file = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}/{file}");
            if kind == Kind::Endpoint && entry.path().is_dir() {
                self.definitions(kind, &path, &entry.path());
                continue;
            }
            let within = |name: String| match folder.split_once('/') {
                Some((_, within)) => format!("{within}/{name}"),
                None => name,
            };
            match name(kind, &entry) {
                Some(name) => {
                    if let Some(text) = self.text(&path, &entry.path()) {
                        self.files.push(File {
                            kind,
                            name: within(name),
                            path,
                            text,
                            beside: SortedMap::new(),
                            package: None,
                        });
                    }
                }
                None if kind == Kind::Endpoint && is_route(&entry) => {
                    let stem = file.rsplit_once('.').map_or(file.as_str(), |(stem, _)| stem).to_owned();
                    let text = serde_json::json!({ "run": { "code": file } }).to_string();
                    self.files.push(File {
                        kind,
                        name: within(stem),
                        path,
                        text,
                        beside: SortedMap::new(),
                        package: None,
                    });
                }
                None if is_readme(&file) || code::is_beside(&file) => {}
                None => self.stray(&path),
            }
        }
    }

    /// Reads the skills: a folder each.
    fn skills(&mut self, path: &Path) {
        let entries = match entries(path) {
            Ok(entries) => entries,
            Err(error) => {
                return self.complain("skills", format!("cannot be read: {error}"), Severity::Error);
            }
        };
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let folder = format!("skills/{name}");
            if !entry.path().is_dir() {
                if !is_readme(&name) {
                    self.stray(&folder);
                }
                continue;
            }
            let mut beside = SortedMap::new();
            self.beside(&folder, "", &entry.path(), &mut beside);
            let path = format!("{folder}/{FILE}");
            match beside.remove(FILE) {
                Some(text) => {
                    self.files.push(File { kind: Kind::Skill, name, path, text, beside, package: None });
                }
                None => self.complain(&path, "there is none: it holds the skill".to_owned(), Severity::Error),
            }
        }
    }

    /// Reads the files of a skill, by their path in its folder.
    fn beside(&mut self, folder: &str, within: &str, path: &Path, found: &mut SortedMap<String, String>) {
        let entries = match entries(path) {
            Ok(entries) => entries,
            Err(error) => return self.complain(folder, format!("cannot be read: {error}"), Severity::Error),
        };
        for entry in entries {
            let name = format!("{within}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                self.beside(folder, &format!("{name}/"), &entry.path(), found);
            } else if let Some(text) = self.text(&format!("{folder}/{name}"), &entry.path()) {
                found.insert(name, text);
            }
        }
    }

    fn elsewhere(&mut self, name: &str, path: &Path) {
        let holds = |entry: &DirEntry| !is_readme(&entry.file_name().to_string_lossy());
        let instead = ELSEWHERE.iter().find(|(known, _)| *known == name);
        if let Some((_, instead)) = instead
            && entries(path).is_ok_and(|entries| entries.iter().any(holds))
        {
            self.complain(name, (*instead).to_owned(), Severity::Error);
        }
    }

    fn text(&mut self, path: &str, file: &Path) -> Option<String> {
        let read = fs::read(file).map_err(|error| format!("cannot be read: {error}"));
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned()));
        match text {
            Ok(text) => Some(text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n")),
            Err(message) => {
                self.complain(path, message, Severity::Error);
                None
            }
        }
    }

    fn stray(&mut self, path: &str) {
        let (folder, file) = path.split_once('/').unwrap_or(("", path));
        let message = match folder {
            "prompts" => "not read: prompts are .md or .json files".to_owned(),
            "api" => "not read: endpoints are .json, .ts or .js files".to_owned(),
            "skills" => format!("not read: a skill is a folder with a {FILE}"),
            "" => {
                let known = Kind::ALL.map(Kind::folder).join(", ");
                format!("not read: definitions are in the folders {known}; settings in {SETTINGS}")
            }
            folder if file.ends_with(".md") => {
                format!("not read: {folder} are .json files; only prompts may be .md")
            }
            folder => format!("not read: {folder} are .json files"),
        };
        self.complain(path, message, Severity::Warning);
    }

    fn complain(&mut self, path: &str, message: String, severity: Severity) {
        self.complaints.push(Complaint { file: path.to_owned(), field: String::new(), message, severity });
    }
}

/// Whether a file of code is an endpoint by itself: no definition beside it says more of it, and `_` does not hide it.
fn is_route(entry: &DirEntry) -> bool {
    let file = entry.file_name().to_string_lossy().into_owned();
    let defined = entry.path().with_extension("json").exists();
    code::is_code(&file) && !file.starts_with('_') && !defined && entry.path().is_file()
}

/// The name of the definition in a file, if it can hold one of this kind.
fn name(kind: Kind, entry: &DirEntry) -> Option<String> {
    let path = entry.path();
    let extension = path.extension().and_then(OsStr::to_str)?;
    let fits = extension == "json" || (extension == "md" && kind == Kind::Prompt);
    let name = path.file_stem().and_then(OsStr::to_str)?;
    (fits && path.is_file() && !is_readme(&entry.file_name().to_string_lossy())).then(|| name.to_owned())
}

fn is_readme(file: &str) -> bool {
    file.eq_ignore_ascii_case("readme.md")
}

/// What is in a folder, by name. Hidden files are left to their owners.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.retain(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}
