//! Finds the definitions in a folder.

use std::collections::BTreeMap;

use bobbin_definitions::definitions::references::Kind;
use bobbin_definitions::definitions::skill::FILE;
use bobbin_definitions::validate::{Complaint, Severity};

use crate::code;
use crate::files::{Entry, Files, below};
use crate::mcp;
use crate::packages::Found;

/// The settings of the whole folder.
pub(super) const SETTINGS: &str = "bobbin.json";

/// npm's file about a package.
pub(super) const PACKAGE_FILE: &str = "package.json";

/// The folder of packages of agents.
pub(super) const PACKAGES: &str = "packages";

/// Files of npm and editors beside code.
const PACKAGE: [&str; 3] = [PACKAGE_FILE, "package-lock.json", "tsconfig.json"];

/// Folders of other runtimes, and their replacements here.
const ELSEWHERE: [(&str, &str); 2] = [
    ("providers", "a provider of models is registered by a crate of your own: docs/models.md"),
    (
        "handlers",
        "a side is a person or a prompt; code of your own runs in hooks (`hooks/`) and endpoints (`api/`)",
    ),
];

/// A file that holds a definition.
pub(super) struct File {
    /// The kind of definition.
    pub(super) kind: Kind,
    /// The file's name without extension. For an endpoint, its path below the folder of endpoints.
    pub(super) name: String,
    /// The path below the folder, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// For a skill: the files beside it, by path in its folder. For an MCP server: the list of its tools, by
    /// file name.
    pub(super) beside: BTreeMap<String, String>,
    /// The package's id. `None` for the application's own files.
    pub(super) package: Option<String>,
}

/// The contents of a folder.
pub(super) struct Folder<'f> {
    pub(super) files: Vec<File>,
    /// The text of `bobbin.json`.
    pub(super) settings: Option<String>,
    pub(super) complaints: Vec<Complaint>,
    all: &'f Files,
    /// The path of this folder.
    base: &'f str,
}

/// Reads a folder and reports files that do not belong in it.
pub(super) fn read<'f>(all: &'f Files, base: &'f str) -> Folder<'f> {
    let mut folder = Folder { files: Vec::new(), settings: None, complaints: Vec::new(), all, base };
    for (name, entry) in all.entries(base) {
        let is_folder = entry == Entry::Folder;
        match Kind::ALL.into_iter().find(|kind| kind.folder() == name) {
            Some(Kind::Skill) if is_folder => folder.skills(),
            Some(Kind::Mcp) if is_folder => folder.servers(),
            Some(kind) if is_folder => folder.definitions(kind, kind.folder()),
            _ if is_folder && ELSEWHERE.iter().any(|(known, _)| *known == name) => folder.elsewhere(name),
            _ if name == SETTINGS && !is_folder => folder.settings = folder.text(SETTINGS),
            // Code that other code imports, and its dependencies.
            _ if is_folder && ["lib", "node_modules", PACKAGES].contains(&name) => {}
            _ if is_readme(name) || PACKAGE.contains(&name) => {}
            _ => folder.stray(name),
        }
    }
    folder
}

/// Reads the definitions of a package. Their paths are relative to the application's folder.
pub(super) fn read_package<'f>(all: &'f Files, package: &'f Found) -> Folder<'f> {
    let mut folder = read(all, &package.definitions);
    // Other files of an npm package are not mistakes.
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
    folder
}

impl<'f> Folder<'f> {
    fn paths(&mut self) -> impl Iterator<Item = &mut String> {
        let complaints = self.complaints.iter_mut().map(|complaint| &mut complaint.file);
        self.files.iter_mut().map(|file| &mut file.path).chain(complaints)
    }

    fn entries(&self, folder: &str) -> Vec<(&'f str, Entry)> {
        self.all.entries(&below(self.base, folder)).collect()
    }

    /// Reads `folder`, a path below the folder of definitions. Folders of endpoints may be nested.
    fn definitions(&mut self, kind: Kind, folder: &str) {
        for (file, entry) in self.entries(folder) {
            let path = format!("{folder}/{file}");
            if kind == Kind::Endpoint && entry == Entry::Folder {
                self.definitions(kind, &path);
                continue;
            }
            let within = |name: &str| match folder.split_once('/') {
                Some((_, within)) => format!("{within}/{name}"),
                None => name.to_owned(),
            };
            let is_file = entry == Entry::File;
            match name(kind, file).filter(|_| is_file) {
                Some(name) => {
                    if let Some(text) = self.text(&path) {
                        self.push(kind, within(name), path, text);
                    }
                }
                None if kind == Kind::Endpoint && is_file && self.is_route(folder, file) => {
                    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
                    let text = serde_json::json!({ "run": { "code": file } }).to_string();
                    self.push(kind, within(stem), path, text);
                }
                None if is_readme(file) || code::is_beside(file) => {}
                None => self.stray(&path),
            }
        }
    }

    fn push(&mut self, kind: Kind, name: String, path: String, text: String) {
        self.files.push(File { kind, name, path, text, beside: BTreeMap::new(), package: None });
    }

    /// Returns whether a file of code is an endpoint by itself: no definition beside it describes it, and its
    /// name does not begin with `_`.
    fn is_route(&self, folder: &str, file: &str) -> bool {
        let defined = file
            .rsplit_once('.')
            .is_some_and(|(stem, _)| self.all.is_file(&below(self.base, &format!("{folder}/{stem}.json"))));
        code::is_code(file) && !file.starts_with('_') && !defined
    }

    /// Reads the MCP servers: one file each, with the list of its tools beside it.
    fn servers(&mut self) {
        let folder = Kind::Mcp.folder();
        for (file, entry) in self.entries(folder) {
            let path = format!("{folder}/{file}");
            let Some(stem) = name(Kind::Mcp, file).filter(|_| entry == Entry::File) else {
                if !is_readme(file) {
                    self.stray(&path);
                }
                continue;
            };
            if let Some(server) = stem.strip_suffix(mcp::LIST) {
                if !self.all.is_file(&below(self.base, &format!("{folder}/{server}.json"))) {
                    let message =
                        format!("lists tools of a server that {server}.json would define: there is none");
                    self.complain(&path, message, Severity::Error);
                }
                continue;
            }
            let Some(text) = self.text(&path) else { continue };
            let list = format!("{stem}{}.json", mcp::LIST);
            let beside =
                self.text(&format!("{folder}/{list}")).map(|text| (list, text)).into_iter().collect();
            let (kind, name) = (Kind::Mcp, stem.to_owned());
            self.files.push(File { kind, name, path, text, beside, package: None });
        }
    }

    /// Reads the skills: one folder each.
    fn skills(&mut self) {
        for (name, entry) in self.entries("skills") {
            let folder = format!("skills/{name}");
            if entry == Entry::File {
                if !is_readme(name) {
                    self.stray(&folder);
                }
                continue;
            }
            let mut beside = BTreeMap::new();
            self.beside(&folder, "", &mut beside);
            let (name, path) = (name.to_owned(), format!("{folder}/{FILE}"));
            match beside.remove(FILE) {
                Some(text) => {
                    self.files.push(File { kind: Kind::Skill, name, path, text, beside, package: None });
                }
                None => self.complain(&path, "there is none: it holds the skill".to_owned(), Severity::Error),
            }
        }
    }

    /// Reads the files of a skill, by path in its folder.
    fn beside(&mut self, folder: &str, within: &str, found: &mut BTreeMap<String, String>) {
        for (name, entry) in self.entries(below(folder, within).trim_end_matches('/')) {
            let name = format!("{within}{name}");
            if entry == Entry::Folder {
                self.beside(folder, &format!("{name}/"), found);
            } else if let Some(text) = self.text(&format!("{folder}/{name}")) {
                found.insert(name, text);
            }
        }
    }

    fn elsewhere(&mut self, name: &str) {
        let instead = ELSEWHERE.iter().find(|(known, _)| *known == name);
        if let Some((_, instead)) = instead
            && self.entries(name).iter().any(|(name, _)| !is_readme(name))
        {
            self.complain(name, (*instead).to_owned(), Severity::Error);
        }
    }

    fn text(&mut self, path: &str) -> Option<String> {
        match self.all.text(&below(self.base, path))? {
            Ok(text) => Some(text),
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
            "mcp" => "not read: MCP servers are .json files".to_owned(),
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

/// The name of the definition in a file, if the file can hold a definition of this kind.
fn name(kind: Kind, file: &str) -> Option<&str> {
    let (name, extension) = file.rsplit_once('.')?;
    let fits = extension == "json" || (extension == "md" && kind == Kind::Prompt);
    (fits && !is_readme(file)).then_some(name)
}

fn is_readme(file: &str) -> bool {
    file.eq_ignore_ascii_case("readme.md")
}
