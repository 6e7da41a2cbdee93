//! Names: validation, suggestions for unknown ones, and cycles.

use strsim::osa_distance;

use crate::definitions::memory::{MemoryTool, ScratchpadTool};
use crate::definitions::skill::LOAD;
use crate::definitions::{ask_user, subagent};

/// Prefix of the tools of MCP servers.
const OF_MCP: &str = "mcp_";

/// An addition to an error about an unknown name: the probable name, or the known ones.
pub fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None if known.is_empty() => "; there are none".to_owned(),
        None if known.len() <= 12 => format!("; there are {}", known.join(", ")),
        None => String::new(),
    }
}

/// The known name that is most similar to `name`, if one is close.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let length = name.chars().count();
    let allowed = length.div_ceil(3);
    known
        .iter()
        // `name` may be as long as a body. Skip names whose difference in length alone is too large.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (osa_distance(&name.to_lowercase(), &candidate.to_lowercase()), *candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// An error in the name of something that models call: providers accept only these characters.
pub fn wrong_callable(name: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    wrong(name, fine, "letters, digits, _ and -").or_else(|| taken(name))
}

/// An error if a name belongs to a built-in tool, which no definition may replace.
pub fn taken(name: &str) -> Option<String> {
    let own = subagent::is_tool(name)
        || [LOAD, ask_user::NAME].contains(&name)
        || ScratchpadTool::ALL.iter().any(|tool| tool.tool() == name)
        || MemoryTool::ALL.iter().any(|tool| tool.tool() == name);
    let whose = match own {
        true => "is the name of a tool of the runtime's own",
        false if name.starts_with(OF_MCP) => "begins as the tools of MCP servers do",
        false => return None,
    };
    Some(format!("\"{name}\" {whose}; give the file another name"))
}

/// An error in the name of a model; providers never receive it.
pub fn wrong_model(name: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "_-.:/@".contains(c);
    wrong(name, fine, "letters, digits and _ - . : / @")
}

/// An error in the name of a skill.
pub fn wrong_skill(name: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    wrong(name, fine, "lower-case letters, digits and -")
}

/// An error in the name of a memory, which is a part of paths.
pub fn wrong_memory(name: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    wrong(name, fine, "lower-case letters, digits, - and _")
}

/// An error in the name of an MCP server, which is the prefix of its tools' names.
pub fn wrong_server(name: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let whole = !name.contains("__") && !name.ends_with('_');
    wrong(name, fine, "letters, digits, _ and -").or_else(|| {
        (!whole).then(|| {
            format!("the name \"{name}\" may not hold __ or end with _: that begins the name of a tool")
        })
    })
}

/// An error in the id of a hook.
pub fn wrong_id(id: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    wrong(id, fine, "lower-case letters, digits and _").or_else(|| {
        let letter = id.starts_with(|c: char| c.is_ascii_lowercase());
        (!letter).then(|| format!("the name \"{id}\" must start with a letter"))
    })
}

fn wrong(name: &str, fine: fn(char) -> bool, allowed: &str) -> Option<String> {
    let length = name.chars().count();
    if length == 0 {
        return Some("the name is empty".to_owned());
    }
    if length > 64 {
        return Some(format!("the name \"{name}\" has {length} characters; at most 64 are allowed"));
    }
    (!name.chars().all(fine)).then(|| format!("the name \"{name}\" may hold only {allowed}"))
}

/// All cycles of names, such as `a → b → a`, each once and starting where the search entered it.
pub fn cycles<'a>(names: &[&'a str], next: &dyn Fn(&str) -> Vec<&'a str>) -> Vec<Vec<&'a str>> {
    let mut search = Search { next, done: Vec::new(), path: Vec::new(), found: Vec::new() };
    for name in names {
        search.visit(name);
    }
    search.found
}

struct Search<'a, 'n> {
    next: &'n dyn Fn(&str) -> Vec<&'a str>,
    done: Vec<&'a str>,
    path: Vec<&'a str>,
    found: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a, '_> {
    fn visit(&mut self, name: &'a str) {
        if let Some(start) = self.path.iter().position(|on_path| *on_path == name) {
            let mut cycle: Vec<&str> = self.path.iter().skip(start).copied().collect();
            cycle.push(name);
            self.found.push(cycle);
        } else if !self.done.contains(&name) {
            self.path.push(name);
            for next in (self.next)(name) {
                self.visit(next);
            }
            self.path.pop();
            self.done.push(name);
        }
    }
}
