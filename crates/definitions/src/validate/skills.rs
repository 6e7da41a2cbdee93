//! Skills, and the prompts that list them.

use std::collections::BTreeSet;

use crate::definitions::package::SEPARATOR;
use crate::definitions::prompt::Prompt;
use crate::definitions::references::Kind;
use crate::definitions::skill::{Activation, Skill, Skills};
use crate::limits;
use crate::names::{hint, wrong_skill};
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn skills(&mut self) {
        for (name, skill) in &self.catalog.skills {
            let at = Subject { kind: Kind::Skill, name };
            let own = match self.catalog.packages.of(name) {
                Some(_) => name.split_once(SEPARATOR).map_or(name.as_str(), |(_, own)| own),
                None => name,
            };
            if let Some(wrong) = wrong_skill(own) {
                self.error(at, "name", wrong);
            }
            self.skill_texts(at, skill);
            for (index, tool) in skill.head.requires.iter().enumerate() {
                let kinds = [Kind::Tool, Kind::Prompt, Kind::Agent];
                if !kinds.iter().any(|kind| self.knows(*kind, tool)) && !self.is_live(tool) {
                    let hint = hint(tool, &self.names(Kind::Tool));
                    self.error(at, format!("requires[{index}]"), format!("no tool named \"{tool}\"{hint}"));
                }
            }
        }
    }

    fn skill_texts(&mut self, at: Subject<'_>, skill: &Skill) {
        let description = skill.head.description.chars().count();
        if skill.head.description.trim().is_empty() {
            self.error(at, "description", "empty: a model cannot know what the skill is for");
        } else if description > limits::SKILL_DESCRIPTION_CHARS {
            let most = limits::SKILL_DESCRIPTION_CHARS;
            self.error(
                at,
                "description",
                format!("has {description} characters; at most {most} are allowed"),
            );
        }
        let tokens = crate::tokens::tokens(&skill.body);
        if skill.body.trim().is_empty() {
            self.error(at, "", "the text below the front matter is empty");
        } else if tokens > limits::SKILL_TOKENS {
            let most = limits::SKILL_TOKENS;
            self.error(
                at,
                "",
                format!(
                    "the text has about {tokens} tokens; at most {most} are allowed: keep what is seldom needed in files beside it"
                ),
            );
        }
        for (file, text) in &skill.files {
            if text.len() > limits::SKILL_FILE_BYTES {
                let most = limits::SKILL_FILE_BYTES;
                self.error(
                    at,
                    file.as_str(),
                    format!("has {} bytes; at most {most} are allowed", text.len()),
                );
            }
        }
        let together: usize = skill.files.values().map(String::len).sum();
        if together > limits::SKILL_FILES_BYTES {
            let most = limits::SKILL_FILES_BYTES;
            self.error(
                at,
                "",
                format!("its files have {together} bytes together; at most {most} are allowed"),
            );
        }
    }

    /// Checks the skills of a prompt.
    pub(super) fn skills_of(&mut self, at: Subject<'_>, prompt: &Prompt) {
        if let Skills::Listed(listed) = &prompt.skills {
            let mut seen = BTreeSet::new();
            for (index, entry) in listed.iter().enumerate() {
                let field = format!("skills[{index}]");
                self.reference(at, &field, Kind::Skill, &entry.name);
                if !seen.insert(&entry.name) {
                    self.error(at, &field, format!("\"{}\" is listed twice", entry.name));
                }
                let required = self.catalog.skills.get(&entry.name).map(|skill| &skill.head.requires);
                for tool in required.into_iter().flatten().filter(|tool| prompt.tool(tool).is_none()) {
                    let name = &entry.name;
                    let message = format!(
                        "\"{name}\" is left out: it requires the tool \"{tool}\", which the prompt does not list"
                    );
                    self.warning(at, &field, message);
                }
            }
        }
        let skills = self.catalog.skills_of(prompt);
        let always = skills.iter().filter(|(_, activation)| *activation == Activation::Always);
        let tokens: usize = always.map(|(skill, _)| crate::tokens::tokens(&skill.body)).sum();
        if tokens > limits::SKILLS_TOKENS {
            let most = limits::SKILLS_TOKENS;
            self.error(
                at,
                "skills",
                format!(
                    "those that are always active have about {tokens} tokens together; at most {most} are allowed: let the model load some (`\"activation\": \"auto\"`)"
                ),
            );
        }
    }
}
