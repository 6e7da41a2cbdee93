//! Skills: texts that a model is given only when they are of use, with files beside them (docs/agents.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::definitions::catalog::Catalog;
use crate::definitions::form::{StringOr, StringOrList};
use crate::definitions::prompt::{Prompt, ToolEntry};
use crate::definitions::retry::Policy;
use crate::definitions::tool::{Implementation, Tool};
use crate::json;

/// The tool by which a model loads a skill.
pub const LOAD: &str = "load_skill";

/// The file that holds a skill.
pub const FILE: &str = "SKILL.md";

/// A skill, as the catalog holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Skill {
    /// What its file says of it.
    pub head: SkillHead,
    /// The text below.
    pub body: String,
    /// Its folder, below the folder of definitions.
    pub path: String,
    /// The files beside it, by their path in its folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// `sha256:…` over all of it.
    pub hash: String,
}

/// The front matter of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkillHead {
    /// The skill's name: lower-case letters, digits and `-`, at most 64 characters. Default: the name of its
    /// folder.
    #[serde(default)]
    pub name: String,
    /// The skill's purpose, in one or two sentences. A model reads it to decide whether to load the skill.
    pub description: String,
    /// The activation: when a model receives the skill. Default: `auto`.
    #[serde(default)]
    pub activation: Activation,
    /// The tools that the skill requires. If the prompt does not list one of them, Bobbin leaves the skill
    /// out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// The position among the skills of a prompt. Smaller numbers come first. Default: 100.
    #[serde(default = "usual_priority")]
    pub priority: i32,
}

const fn usual_priority() -> i32 {
    100
}

/// The activation of a skill: when a model receives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Activation {
    /// Every request contains the skill's text.
    Always,
    /// Every request contains the skill's name and description. The model loads the text if it needs it.
    #[default]
    Auto,
    /// Requests contain the skill's text only in turns whose message names the skill.
    Manual,
}

/// The skills of a prompt. In a file, `"*"` or a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StringOrList<SkillEntry>", into = "StringOrList<SkillEntry>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Skills {
    /// All skills of the prompt's own package, or of the application.
    All,
    /// The listed skills.
    Listed(Vec<SkillEntry>),
}

impl Default for Skills {
    fn default() -> Skills {
        Skills::Listed(Vec::new())
    }
}

impl TryFrom<StringOrList<SkillEntry>> for Skills {
    type Error = String;

    fn try_from(form: StringOrList<SkillEntry>) -> Result<Skills, String> {
        match form {
            StringOrList::String(all) if all == "*" => Ok(Skills::All),
            StringOrList::String(other) => {
                Err(format!("\"{other}\" is no list: write [\"{other}\"], or \"*\" for all skills"))
            }
            StringOrList::List(listed) => Ok(Skills::Listed(listed)),
        }
    }
}

impl From<Skills> for StringOrList<SkillEntry> {
    fn from(skills: Skills) -> StringOrList<SkillEntry> {
        match skills {
            Skills::All => StringOrList::String("*".to_owned()),
            Skills::Listed(listed) => StringOrList::List(listed),
        }
    }
}

/// A skill in the list of a prompt. In a file, its name is enough.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StringOr<SkillEntryObject>", into = "StringOr<SkillEntryObject>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkillEntry {
    /// The skill's name.
    pub name: String,
    /// The activation of the skill in this prompt. Default: the skill's own.
    pub activation: Option<Activation>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct SkillEntryObject {
    /// The skill's name.
    name: String,
    /// The activation of the skill in this prompt. Default: the skill's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activation: Option<Activation>,
}

impl From<StringOr<SkillEntryObject>> for SkillEntry {
    fn from(form: StringOr<SkillEntryObject>) -> SkillEntry {
        match form {
            StringOr::String(name) => SkillEntry { name, activation: None },
            StringOr::Object(SkillEntryObject { name, activation }) => SkillEntry { name, activation },
        }
    }
}

impl From<SkillEntry> for StringOr<SkillEntryObject> {
    fn from(entry: SkillEntry) -> StringOr<SkillEntryObject> {
        match entry {
            SkillEntry { name, activation: None } => StringOr::String(name),
            SkillEntry { name, activation } => StringOr::Object(SkillEntryObject { name, activation }),
        }
    }
}

impl Catalog {
    /// The skills of a prompt, and when it is given each: by priority, then by name. `"*"` are those of the prompt's own
    /// package, or of the application.
    pub fn skills_of<'c>(&'c self, prompt: &Prompt) -> Vec<(&'c Skill, Activation)> {
        let mut skills: Vec<(&Skill, Activation)> = match &prompt.skills {
            Skills::All => {
                let package = self.packages.of(&prompt.name);
                let own = self.skills.values().filter(|skill| self.packages.of(&skill.head.name) == package);
                own.map(|skill| (skill, skill.head.activation)).collect()
            }
            Skills::Listed(listed) => listed
                .iter()
                .filter_map(|entry| {
                    let skill = self.skills.get(&entry.name)?;
                    Some((skill, entry.activation.unwrap_or(skill.head.activation)))
                })
                .collect(),
        };
        skills
            .sort_by(|(a, _), (b, _)| (a.head.priority, &a.head.name).cmp(&(b.head.priority, &b.head.name)));
        skills
    }

    /// Adds the tool that loads skills, and lists it where a prompt has skills to load.
    pub fn add_loading(&mut self) {
        let loads = |prompt: &Prompt| {
            self.skills_of(prompt).iter().any(|(_, activation)| *activation == Activation::Auto)
        };
        let names: Vec<String> =
            self.prompts.values().filter(|prompt| loads(prompt)).map(|prompt| prompt.name.clone()).collect();
        for name in &names {
            if let Some(prompt) = self.prompts.get_mut(name).filter(|prompt| prompt.tool(LOAD).is_none()) {
                prompt.tools.push(ToolEntry::unlisted(LOAD));
            }
        }
        if !names.is_empty() {
            self.tools.entry(LOAD.to_owned()).or_insert_with(tool);
        }
    }
}

/// The tool that loads skills.
pub fn tool() -> Tool {
    let text = |description: &str| json!({ "type": "string", "description": description });
    Tool {
        name: LOAD.to_owned(),
        description: "Reads one of the skills that the system prompt lists: its instructions, or a file that belongs to it. \
                      Load a skill before you do what it is for."
            .to_owned(),
        args: Some(json!({
            "type": "object",
            "properties": {
                "name": text("Name of the skill."),
                "file": text("A file that its instructions name; without it, the instructions."),
            },
            "required": ["name"],
        })),
        run: Implementation::Native(LOAD.to_owned()),
        timeout_ms: None,
        idempotent: None,
        tier: None,
        retry: Policy::default(),
        variables: Vec::new(),
        approval: None,
        scrub: None,
    }
}

/// `sha256:…` of a text.
pub fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut out = String::from("sha256:");
    for byte in digest {
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// The hash of a folder: over its files' paths and hashes, sorted by path.
pub fn hash_of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let sorted: BTreeMap<&str, String> = files.into_iter().map(|(path, text)| (path, hash(text))).collect();
    let lines: String = sorted.iter().map(|(path, hash)| format!("{path} {hash}\n")).collect();
    hash(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_contents_in_any_order() {
        assert_eq!(hash(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let (a, b) = (("SKILL.md", "x"), ("letter.md", "y"));
        assert_eq!(hash_of_files([a, b]), hash_of_files([b, a]));
        assert_ne!(hash_of_files([a, b]), hash_of_files([a]));
        assert_ne!(hash_of_files([a]), hash_of_files([("letter.md", "x")]));
    }

    #[test]
    fn the_skills_of_a_prompt_are_in_order() {
        let skill = |priority: i32| {
            let head = json!({ "description": "d", "priority": priority });
            json!({ "head": head, "body": "b", "path": "skills/x", "hash": "sha256:0" })
        };
        let catalog = json!({
            "skills": { "b": skill(100), "a": skill(100), "z": skill(1) },
            "prompts": {
                "all": { "toolDescription": "d", "prompt": "x", "model": "m", "skills": "*" },
                "some": { "toolDescription": "d", "prompt": "x", "model": "m",
                    "skills": ["b", { "name": "z", "activation": "always" }, "gone"] },
                "none": { "toolDescription": "d", "prompt": "x", "model": "m" },
            },
        });
        let catalog = Catalog::from_json(&catalog.to_string()).unwrap();
        let names = |prompt: &str| {
            let skills = catalog.skills_of(catalog.prompts.get(prompt).unwrap());
            skills
                .iter()
                .map(|(skill, activation)| (skill.head.name.clone(), *activation))
                .collect::<Vec<_>>()
        };
        let auto = Activation::Auto;
        assert_eq!(names("all"), [("z".into(), auto), ("a".into(), auto), ("b".into(), auto)]);
        assert_eq!(names("some"), [("z".into(), Activation::Always), ("b".into(), auto)]);
        assert_eq!(names("none"), []);
        // The tool is listed where there is something to load, once.
        let listed = |name: &str| {
            catalog.prompts.get(name).unwrap().tools.iter().filter(|entry| entry.name == LOAD).count()
        };
        assert_eq!((listed("all"), listed("some"), listed("none")), (1, 1, 0));
        let again = Catalog::from_json(&serde_json::to_string(&catalog).unwrap()).unwrap();
        assert_eq!(again, catalog);
    }
}
