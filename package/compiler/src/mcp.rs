//! MCP servers: the lists of their tools, their tools in the catalog, and references to them.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_definitions::definitions::approval::Mode;
use bobbin_definitions::definitions::mcp::{DEFAULT, PREFIX};
use bobbin_definitions::definitions::package::{Packages, ReferenceKind};
use bobbin_definitions::definitions::references::{Kind, Reference};
use bobbin_definitions::definitions::skill;
use bobbin_definitions::definitions::{
    Catalog, Implementation, ListedTool, ListingInfo, McpChoice, McpList, McpServer, PinnedList, ToolEntry,
};
use bobbin_definitions::limits::MCP_TOOLS;
use bobbin_definitions::validate::{Complaint, Severity, Sources, nearest};
use serde_json::Value;

use crate::{Reading, folder, shape, text};

/// The suffix of a list's file name after the server's name.
pub(super) const LIST: &str = ".tools";

/// The list of a server's tools, as it was read.
pub(super) struct List {
    server: String,
    file: String,
    list: PinnedList,
    hash: String,
}

impl Reading {
    /// Rejects a definition file that describes a tool of a server.
    pub(super) fn of_server(&mut self, file: &folder::File) {
        self.sources.insert(file.kind, &file.name, &file.path);
        let message =
            "tools of MCP servers are in no file: a prompt lists \"mcp:NAME\", and mcp/NAME.json says which";
        self.complain(file, "run.mcp", message.to_owned());
    }

    /// Reads a server and the list of its tools.
    pub(super) fn server(&mut self, file: &folder::File, mut value: Value) {
        let complained = self.complaints.len();
        if value.as_object_mut().is_some_and(|fields| fields.shift_remove("pinned").is_some()) {
            self.complain(file, "pinned", "unknown field; the list of its tools says that".to_owned());
        }
        let read =
            self.definition(file, value, |catalog| &mut catalog.mcp, |server, name| server.name = name);
        let Some(name) = read else { return };
        let Some(server) = self.catalog.mcp.get(&name) else { return };
        let (folder, stem) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let list = file.beside.iter().next().map(|(list, text)| (format!("{folder}/{list}"), text));
        match (server.list, list) {
            (McpList::Live, None) => {}
            (McpList::Live, Some((list, _))) => {
                let message = "not read: the server's file says that its tools are listed live".to_owned();
                self.complaints.push(complaint(&list, "", message, Severity::Warning));
            }
            (McpList::Pinned, Some((list, text))) => self.list(name, list, text),
            // Report a missing list only after the server's own file is correct.
            (McpList::Pinned, None) if self.complaints.len() > complained => {}
            (McpList::Pinned, None) => {
                let stem = stem.strip_suffix(".json").unwrap_or(stem);
                let message = format!(
                    "there is no list of its tools: `bobbin mcp pull {stem}` writes {stem}{LIST}.json beside this file"
                );
                self.complain(file, "", message);
            }
        }
    }

    fn list(&mut self, server: String, file: String, text: &str) {
        let value = match text::read(&file, text) {
            Ok(value) => value,
            Err(wrong) => return self.complaints.push(wrong),
        };
        let (list, wrong) = shape::read::<PinnedList>(value);
        let fine = wrong.is_empty();
        let told =
            wrong.into_iter().map(|wrong| complaint(&file, &wrong.field, wrong.message, Severity::Error));
        self.complaints.extend(told);
        if let Some(list) = list.filter(|_| fine) {
            let hash = skill::hash(text);
            self.lists.push(List { server, file, list, hash });
        }
    }
}

/// A tool that its server marks as destructive.
pub(super) struct Risky {
    server: String,
    /// The tool's name at the server.
    tool: String,
    /// The tool's name in the catalog.
    name: String,
}

/// Adds the tools of the lists to the catalog.
pub(super) fn enter(
    lists: Vec<List>,
    catalog: &mut Catalog,
    sources: &mut Sources,
    complaints: &mut Vec<Complaint>,
) -> Vec<Risky> {
    let mut risky = Vec::new();
    for List { server: name, file, list, hash } in lists {
        let Some(server) = catalog.mcp.get_mut(&name) else { continue };
        server.pinned = Some(ListingInfo { protocol: list.protocol, server: list.server.clone(), hash });
        let server = server.clone();
        let definition = sources.file(Kind::Mcp, &name);
        complaints.extend(not_listed(&server, &list, &definition));
        if list.tools.len() > MCP_TOOLS {
            let message = format!("lists {} tools; at most {MCP_TOOLS} are allowed", list.tools.len());
            complaints.push(complaint(&file, "tools", message, Severity::Error));
            continue;
        }
        let twice = listed_twice(&list, &file);
        if !twice.is_empty() {
            complaints.extend(twice);
            continue;
        }
        for (index, listed, tool) in server.offered(&list.tools) {
            let field = format!("tools[{index}]");
            let tool = match tool {
                Ok(tool) => tool,
                Err((inner, why)) => {
                    complaints.push(left_out(&server, listed, &file, &format!("{field}.{inner}"), &why));
                    continue;
                }
            };
            if let Some(first) = sources.insert(Kind::Tool, &tool.name, &file) {
                let message = format!(
                    "\"{}\" becomes \"{}\" for models, and {first} has a tool of that name already",
                    listed.name, tool.name
                );
                complaints.push(complaint(&file, &format!("{field}.name"), message, Severity::Error));
                continue;
            }
            if tool.name != server.tool_name(&listed.name) {
                let message = format!(
                    "models know \"{}\" as \"{}\", as another tool becomes \"{}\" as well",
                    listed.name,
                    tool.name,
                    server.tool_name(&listed.name)
                );
                complaints.push(complaint(&file, &format!("{field}.name"), message, Severity::Warning));
            }
            if listed.may_destroy() {
                let (server, tool, name) = (name.clone(), listed.name.clone(), tool.name.clone());
                risky.push(Risky { server, tool, name });
            }
            catalog.tools.insert(tool.name.clone(), tool);
        }
    }
    risky
}

/// Reports names that a list has more than once.
fn listed_twice(list: &PinnedList, file: &str) -> Vec<Complaint> {
    let mut seen = BTreeSet::new();
    let again = list.tools.iter().enumerate().filter(|(_, listed)| !seen.insert(&listed.name));
    let tell = |(index, listed): (usize, &ListedTool)| {
        let message = format!("\"{}\" is listed twice", listed.name);
        complaint(file, &format!("tools[{index}].name"), message, Severity::Error)
    };
    again.map(tell).collect()
}

/// A complaint about a listed tool that cannot be offered: an error if the server's file allows the tool by
/// name, otherwise a warning.
fn left_out(server: &McpServer, listed: &ListedTool, file: &str, field: &str, why: &str) -> Complaint {
    let asked = matches!(server.tools, Some(McpChoice::Allow(_)));
    let severity = if asked { Severity::Error } else { Severity::Warning };
    let message =
        format!("{why}: \"{}\" cannot be offered; block it in the server's file to say so", listed.name);
    complaint(file, field, message, severity)
}

/// Reports names and arguments in a server's file that are not in the list.
fn not_listed(server: &McpServer, list: &PinnedList, file: &str) -> Vec<Complaint> {
    let known: Vec<&str> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut named: Vec<(String, &str)> = Vec::new();
    // Blocked tools are not in the list.
    if let Some(McpChoice::Allow(names)) = &server.tools {
        named.extend(
            names.iter().enumerate().map(|(index, name)| (format!("tools.allow[{index}]"), name.as_str())),
        );
    }
    named.extend(server.provide.keys().map(|name| (format!("provide.{name}"), name.as_str())));
    named.extend(server.approval.keys().map(|name| (format!("approval.{name}"), name.as_str())));
    named.extend(server.tier.keys().map(|name| (format!("tier.{name}"), name.as_str())));
    named.extend(server.idempotent.keys().map(|name| (format!("idempotent.{name}"), name.as_str())));
    let mut complaints = Vec::new();
    for (field, name) in named {
        let is_default = name == DEFAULT && !field.starts_with("tools.") && !field.starts_with("provide.");
        if is_default || known.contains(&name) {
            continue;
        }
        let hint = match nearest(name, &known) {
            Some(near) => format!("; did you mean \"{near}\"?"),
            None => "; `bobbin mcp pull` brings the list up to date".to_owned(),
        };
        let message = format!("the list of the server's tools has no \"{name}\"{hint}");
        complaints.push(complaint(file, &field, message, Severity::Error));
    }
    for tool in &list.tools {
        let Some(provided) = server.provide.get(&tool.name) else { continue };
        let schema = &tool.input_schema;
        let properties = schema.get("properties").and_then(Value::as_object);
        let closed = matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)));
        let Some(properties) = properties.filter(|properties| closed && !properties.is_empty()) else {
            continue;
        };
        let arguments: Vec<&str> = properties.keys().map(String::as_str).collect();
        for argument in provided.keys().filter(|name| !properties.contains_key(*name)) {
            let hint = nearest(argument, &arguments).map(|near| format!("; did you mean \"{near}\"?"));
            let message = format!("the tool has no argument \"{argument}\"{}", hint.unwrap_or_default());
            let field = format!("provide.{}.{argument}", tool.name);
            complaints.push(complaint(file, &field, message, Severity::Error));
        }
    }
    complaints
}

/// Reports destructive tools that a prompt lists without an approval, unless the server's file sets their
/// approval by name.
pub(super) fn unasked(catalog: &Catalog, sources: &Sources, risky: &[Risky]) -> Vec<Complaint> {
    let listed = |name: &str| catalog.prompts.values().any(|prompt| prompt.tool(name).is_some());
    let is_unasked = |risky: &&Risky| {
        let said =
            catalog.mcp.get(&risky.server).is_some_and(|server| server.approval.contains_key(&risky.tool));
        let approval = catalog.tools.get(&risky.name).and_then(|tool| tool.approval.as_ref());
        let never = approval.is_none_or(|approval| approval.mode == Mode::Never);
        !said && never && listed(&risky.name)
    };
    let tell = |risky: &Risky| {
        let message = format!(
            "the server says that \"{}\" may destroy something, and nobody is asked: say \"{}\": \"always\", or \"never\" if \
             that is meant",
            risky.tool, risky.tool
        );
        complaint(&sources.file(Kind::Mcp, &risky.server), "approval", message, Severity::Warning)
    };
    risky.iter().filter(is_unasked).map(tell).collect()
}

/// For each prompt, the index in the file that each entry of `tools` comes from.
pub(super) type Order = BTreeMap<String, Vec<usize>>;

/// Replaces references to a server by the names of its tools. The first tool takes the reference's position
/// and the others are appended, so that complaints about an entry point to the right line. [`put_in_order`]
/// restores the order.
pub(super) fn expand(catalog: &mut Catalog, sources: &Sources) -> (Order, Vec<Complaint>) {
    let mut complaints = Vec::new();
    let names = Names::of(catalog, sources);
    let packages = catalog.packages.clone();
    let mut order = Order::new();
    for (name, prompt) in &mut catalog.prompts {
        let mut say = |field: String, message: String| {
            complaints.push(complaint(&sources.file(Kind::Prompt, name), &field, message, Severity::Error));
        };
        let within = packages.of(name);
        if prompt.tools.iter().any(|entry| entry.mcp().is_some()) {
            let (tools, places) = names.entries(within, std::mem::take(&mut prompt.tools), &mut say);
            prompt.tools = tools;
            order.insert(name.clone(), places);
        }
        names.list(within, "approvals.trusted", &mut prompt.approvals.trusted, &mut say);
    }
    for (name, agent) in &mut catalog.agents {
        let mut say = |field: String, message: String| {
            complaints.push(complaint(&sources.file(Kind::Agent, name), &field, message, Severity::Error));
        };
        names.list(packages.of(name), "approvals.trusted", &mut agent.approvals.trusted, &mut say);
    }
    for (name, skill) in &mut catalog.skills {
        let mut say = |field: String, message: String| {
            complaints.push(complaint(&sources.file(Kind::Skill, name), &field, message, Severity::Error));
        };
        names.list(packages.of(name), "requires", &mut skill.head.requires, &mut say);
    }
    let mut say = |field: String, message: String| {
        complaints.push(complaint(folder::SETTINGS, &field, message, Severity::Error));
    };
    names.list(None, "approvals.trusted", &mut catalog.settings.approvals.trusted, &mut say);
    catalog.each_reference(&mut |Reference { kind, name, field, sought, target }| {
        let meant = target
            .strip_prefix(PREFIX)
            .filter(|_| sought == ReferenceKind::Callable && !field.starts_with("tools["));
        let Some(meant) = meant else { return };
        match names.one(packages.of(name), meant) {
            Ok(Some(tool)) => *target = tool,
            Ok(None) => {}
            Err(message) => {
                complaints.push(complaint(&sources.file(kind, name), &field, message, Severity::Error));
            }
        }
    });
    (order, complaints)
}

/// Restores the order of the file in each prompt's entries.
pub(super) fn put_in_order(catalog: &mut Catalog, order: Order) {
    for (name, places) in order {
        let Some(prompt) = catalog.prompts.get_mut(&name) else { continue };
        // The entries after these were added by the runtime.
        let places = places.into_iter().chain(std::iter::repeat(usize::MAX));
        let mut entries: Vec<(usize, ToolEntry)> = places.zip(std::mem::take(&mut prompt.tools)).collect();
        entries.sort_by_key(|(place, _)| *place);
        prompt.tools = entries.into_iter().map(|(_, entry)| entry).collect();
    }
}

/// The meaning of a text after `mcp:`.
enum Meant {
    /// All tools of a server.
    All(String),
    /// A server, and the tool's name at it.
    One(String, String),
}

/// The tools of a server: their names at the server and in the catalog.
struct Known {
    tools: Vec<(String, String)>,
    /// Whether the list is complete. It is not if the tools are listed live or the list could not be read.
    whole: bool,
    server: McpServer,
}

/// The servers by name.
struct Names {
    servers: BTreeMap<String, Known>,
    packages: Packages,
    /// Servers whose files could not be read.
    unread: BTreeSet<String>,
}

impl Names {
    fn of(catalog: &Catalog, sources: &Sources) -> Names {
        let mut servers: BTreeMap<String, Known> = catalog
            .mcp
            .iter()
            .map(|(name, server)| {
                let whole = server.pinned.is_some();
                (name.clone(), Known { tools: Vec::new(), whole, server: server.clone() })
            })
            .collect();
        for (name, tool) in &catalog.tools {
            if let Implementation::Mcp(of) = &tool.run
                && let Some(known) = servers.get_mut(&of.server)
            {
                known.tools.push((of.tool.clone(), name.clone()));
            }
        }
        let unread =
            sources.files().filter(|(kind, name, _)| *kind == Kind::Mcp && !servers.contains_key(*name));
        let unread = unread.map(|(_, name, _)| name.to_owned()).collect();
        Names { servers, packages: catalog.packages.clone(), unread }
    }

    /// Resolves the text after `mcp:`: a server, `server/tool`, or a tool that only one server has.
    fn meant(&self, within: Option<&str>, text: &str) -> Result<Meant, String> {
        if let Some(server) = self.server(within, text)? {
            return Ok(Meant::All(server));
        }
        if let Some((server, tool)) = text.rsplit_once('/')
            && let Some(server) = self.server(within, server)?
        {
            return Ok(Meant::One(server, tool.to_owned()));
        }
        let seen = self.servers.iter().filter(|(name, _)| !self.packages.is_foreign(within, name));
        let owners =
            seen.filter(|(_, known)| known.tools.iter().any(|(tool, name)| tool == text || name == text));
        match owners.collect::<Vec<_>>().as_slice() {
            [(server, known)] => {
                let tool = known.tools.iter().find(|(tool, name)| tool == text || name == text);
                Ok(Meant::One((*server).clone(), tool.map(|(tool, _)| tool.clone()).unwrap_or_default()))
            }
            [] => {
                let names: Vec<&str> = self.servers.keys().map(String::as_str).collect();
                let hint = match nearest(text, &names) {
                    Some(near) => format!("; did you mean \"{PREFIX}{near}\"?"),
                    None if names.is_empty() => "; mcp/NAME.json defines one".to_owned(),
                    None => format!("; there are {}", names.join(", ")),
                };
                Err(format!("no MCP server named \"{text}\", and no tool of one{hint}"))
            }
            several => {
                let forms: Vec<String> =
                    several.iter().map(|(server, _)| format!("\"{PREFIX}{server}/{text}\"")).collect();
                Err(format!("several servers have a tool \"{text}\": say {}", forms.join(" or ")))
            }
        }
    }

    fn server(&self, within: Option<&str>, text: &str) -> Result<Option<String>, String> {
        let has = |name: &str| self.servers.contains_key(name) || self.unread.contains(name);
        let found = self.packages.resolve(within, text, has).into_owned();
        if !has(&found) {
            return Ok(None);
        }
        match self.packages.is_foreign(within, &found) {
            true => Err(self.packages.hidden(&found)),
            false => Ok(Some(found)),
        }
    }

    /// The names in the catalog. `None` if they are not known, which has been reported.
    fn tools(&self, meant: &Meant) -> Result<Option<Vec<String>>, String> {
        let (Meant::All(server) | Meant::One(server, _)) = meant;
        let Some(known) = self.servers.get(server) else { return Ok(None) };
        match meant {
            Meant::All(_) if known.whole => {
                Ok(Some(known.tools.iter().map(|(_, name)| name.clone()).collect()))
            }
            Meant::All(_) if known.server.list == McpList::Live => Err(format!(
                "the tools of \"{server}\" are listed live: name each, as \"{PREFIX}{server}/TOOL\""
            )),
            Meant::All(_) => Ok(None),
            Meant::One(_, tool) if !known.whole => Ok(Some(vec![known.server.tool_name(tool)])),
            Meant::One(_, tool) => self.tool(known, tool).map(|name| Some(vec![name])),
        }
    }

    fn tool(&self, known: &Known, tool: &str) -> Result<String, String> {
        if let Some((_, name)) = known.tools.iter().find(|(own, _)| own == tool) {
            return Ok(name.clone());
        }
        let names: Vec<&str> = known.tools.iter().map(|(tool, _)| tool.as_str()).collect();
        let server = &known.server.name;
        let hint = match nearest(tool, &names) {
            Some(near) => format!("; did you mean \"{near}\"?"),
            None if !known.server.offers(tool) => {
                return Err(format!(
                    "\"{tool}\" is not among the tools that the file of \"{server}\" allows"
                ));
            }
            None => "; `bobbin mcp pull` brings the list of its tools up to date".to_owned(),
        };
        Err(format!("\"{server}\" has no tool \"{tool}\"{hint}"))
    }

    /// Resolves a reference to exactly one tool.
    fn one(&self, within: Option<&str>, text: &str) -> Result<Option<String>, String> {
        match self.meant(within, text)? {
            Meant::All(server) => Err(format!(
                "\"{PREFIX}{text}\" means all tools of \"{server}\": one is meant here, as in \"{PREFIX}{text}/TOOL\""
            )),
            one => Ok(self.tools(&one)?.and_then(|names| names.into_iter().next())),
        }
    }

    /// Resolves names in a list. The first of several names takes the position, and the others are appended.
    fn list(
        &self,
        within: Option<&str>,
        field: &str,
        names: &mut Vec<String>,
        say: &mut dyn FnMut(String, String),
    ) {
        let mut behind: Vec<String> = Vec::new();
        for (index, name) in names.iter_mut().enumerate() {
            let Some(text) = name.strip_prefix(PREFIX) else { continue };
            match self.meant(within, text).and_then(|meant| self.tools(&meant)) {
                Ok(Some(tools)) => {
                    let mut tools = tools.into_iter();
                    if let Some(first) = tools.next() {
                        *name = first;
                    }
                    behind.extend(tools);
                }
                Ok(None) => {}
                Err(message) => say(format!("{field}[{index}]"), message),
            }
        }
        names.extend(behind);
    }

    /// Resolves the entries of a prompt, with the index in the file of each.
    fn entries(
        &self,
        within: Option<&str>,
        entries: Vec<ToolEntry>,
        say: &mut dyn FnMut(String, String),
    ) -> (Vec<ToolEntry>, Vec<usize>) {
        // A tool that is named, alone or in `tools`, is not added again by an entry for all tools.
        let mut named: BTreeSet<String> = BTreeSet::new();
        let mut read = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let Some(text) = entry.mcp() else {
                named.insert(entry.name.clone());
                read.push((index, entry, None));
                continue;
            };
            let found = self.entry(within, text, &entry, index, say);
            if let Some((tools, true)) = &found {
                named.extend(tools.iter().cloned());
            }
            read.push((index, entry, found));
        }
        let (mut first, mut behind) = (Vec::new(), Vec::new());
        let mut told = BTreeSet::new();
        for (index, entry, found) in read {
            let Some((tools, by_name)) = found else {
                first.push((index, self.kept(within, entry)));
                continue;
            };
            let mut tools = tools.into_iter().filter(|tool| by_name || !named.contains(tool));
            if let Some(name) = tools.next() {
                told.insert(name.clone());
                let env = entry.env.clone();
                first.push((index, ToolEntry { name, tools: None, ..entry }));
                for name in tools.filter(|tool| told.insert(tool.clone())) {
                    behind.push((index, ToolEntry { env: env.clone(), ..ToolEntry::unlisted(&name) }));
                }
            }
        }
        first.into_iter().chain(behind).map(|(index, entry)| (entry, index)).unzip()
    }

    /// The tools that an entry stands for, and whether it names them. `None` if the entry stays unchanged.
    fn entry(
        &self,
        within: Option<&str>,
        text: &str,
        entry: &ToolEntry,
        index: usize,
        say: &mut dyn FnMut(String, String),
    ) -> Option<(Vec<String>, bool)> {
        let meant = match self.meant(within, text) {
            Ok(meant) => meant,
            Err(message) => {
                say(format!("tools[{index}]"), message);
                return None;
            }
        };
        let (Meant::All(server) | Meant::One(server, _)) = &meant;
        let known = self.servers.get(server).filter(|known| known.whole)?;
        let one = matches!(meant, Meant::One(..));
        if let (Meant::All(_), Some(listed)) = (&meant, &entry.tools) {
            let mut names = Vec::new();
            for (at, tool) in listed.iter().enumerate() {
                match self.tool(known, tool) {
                    Ok(name) => names.push(name),
                    Err(message) => say(format!("tools[{index}].tools[{at}]"), message),
                }
            }
            return Some((names, true));
        }
        match self.tools(&meant) {
            Ok(Some(names)) if names.is_empty() => {
                say(format!("tools[{index}]"), format!("\"{server}\" has no tool"));
                None
            }
            Ok(names) => names.map(|names| (names, one)),
            Err(message) => {
                say(format!("tools[{index}]"), message);
                None
            }
        }
    }

    /// An entry that the engine resolves, with the server's name in the catalog.
    fn kept(&self, within: Option<&str>, mut entry: ToolEntry) -> ToolEntry {
        let meant = entry.mcp().and_then(|text| self.meant(within, text).ok());
        let Some(meant) = meant else { return entry };
        let (Meant::All(server) | Meant::One(server, _)) = &meant;
        // If the list is known, the entry is only kept because of a mistake, which has been reported.
        if self.servers.get(server).is_none_or(|known| !known.whole) {
            entry.name = format!("{PREFIX}{server}");
            if let Meant::One(_, tool) = &meant {
                entry.tools.get_or_insert_with(|| vec![tool.clone()]);
            }
        }
        entry
    }
}

fn complaint(file: &str, field: &str, message: String, severity: Severity) -> Complaint {
    Complaint { file: file.to_owned(), field: field.to_owned(), message, severity }
}
