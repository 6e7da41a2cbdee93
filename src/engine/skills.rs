//! Skills of a step's prompt: the ones that the model receives, and the tool that loads the others
//! (docs/agents.md).

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::definitions::skill::{Activation, Skill};
use crate::definitions::{Implementation, Model, Tool, skill};
use crate::engine::definitions::Definitions;
use crate::engine::features::Skills;
use crate::error::Result;
use crate::json;
use crate::limits;
use crate::store::messages as rows;

/// The skills for a model.
#[derive(Default)]
struct Selection<'c> {
    /// Their texts are in the system prompt.
    active: Vec<&'c Skill>,
    /// Skills that the model can load.
    offered: Vec<&'c Skill>,
    /// Skills that are left out.
    lacking: Vec<Omission<'c>>,
}

/// The reason why a skill is left out.
struct Omission<'c> {
    code: &'static str,
    skill: &'c str,
    message: String,
    data: Value,
}

impl Skills<'_> {
    /// The system prompt of a step with the skills for its model. Notes the skills that are left out.
    pub(super) fn with_skills(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        text: String,
    ) -> Result<String> {
        if self.catalog.skills.is_empty() {
            return Ok(text);
        }
        let wanted = self.named_by_message(definitions)?;
        let given = self.given_skills(definitions, model, &wanted);
        for Omission { code, skill, message, data } in &given.lacking {
            self.note_once(code, skill, message, data)?;
        }
        Ok(skilled(text, given))
    }

    /// The skills that a run lacks: the code, the skill, and the text for people.
    pub(super) fn lacking_skills(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
    ) -> Result<Vec<(&'static str, String, String)>> {
        if self.catalog.skills.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = self.named_by_message(definitions)?;
        let lacking = self.given_skills(definitions, model, &wanted).lacking.into_iter();
        Ok(lacking.map(|Omission { code, skill, message, .. }| (code, skill.to_owned(), message)).collect())
    }

    /// The system prompt with the skills, without notes.
    pub(crate) fn as_with_skills(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        text: String,
    ) -> Result<String> {
        if self.catalog.skills.is_empty() {
            return Ok(text);
        }
        let wanted = self.named_by_message(definitions)?;
        Ok(skilled(text, self.given_skills(definitions, model, &wanted)))
    }

    fn given_skills<'a>(
        &'a self,
        definitions: &Definitions<'_>,
        model: &Model,
        wanted: &'a [String],
    ) -> Selection<'a> {
        let mut given = Selection::default();
        let skills = self.catalog.skills_of(definitions.prompt);
        for name in wanted.iter().filter(|name| skills.iter().all(|(skill, _)| skill.head.name != **name)) {
            let message =
                format!("The message asks for the skill \"{name}\", which the prompt does not have.");
            let data = json!({ "skill": name });
            given.lacking.push(Omission { code: "skill.missing", skill: name, message, data });
        }
        let mut tokens = 0;
        for (skill, activation) in skills {
            let name = &skill.head.name;
            if activation == Activation::Manual && !wanted.contains(name) {
                continue;
            }
            let lacking = skill.head.requires.iter().find(|tool| !self.offers_tool(definitions, model, tool));
            if let Some(tool) = lacking {
                let message =
                    format!("The skill \"{name}\" is left out: the tool \"{tool}\" is not offered.");
                let data = json!({ "skill": name, "tool": tool });
                given.lacking.push(Omission { code: "skill.requirement", skill: name, message, data });
                continue;
            }
            if activation == Activation::Auto {
                if self.offers_tool(definitions, model, skill::LOAD) {
                    given.offered.push(skill);
                }
                continue;
            }
            tokens += crate::tokens::tokens(&skill.body);
            if tokens > limits::SKILLS_TOKENS {
                let message =
                    format!("The skill \"{name}\" is left out: too many are active at the same time.");
                let data = json!({ "skill": name });
                given.lacking.push(Omission { code: "skill.too_many", skill: name, message, data });
                continue;
            }
            given.active.push(skill);
        }
        given
    }

    /// Whether the model of a step may call a tool.
    fn offers_tool(&self, definitions: &Definitions<'_>, model: &Model, tool: &str) -> bool {
        let entry = definitions.prompt.tool(tool);
        let callable = self.catalog.callable(tool).is_some();
        model.capabilities.supports_tool_calls
            && callable
            && entry.is_some_and(|entry| self.subagents().is_on(definitions, entry))
    }

    /// The skills named by the message that opens the turn (`metadata.skills`).
    fn named_by_message(&self, definitions: &Definitions<'_>) -> Result<Vec<String>> {
        let skills = self.catalog.skills_of(definitions.prompt);
        if skills.iter().all(|(_, activation)| *activation != Activation::Manual) {
            return Ok(Vec::new());
        }
        self.read(|state, sql| {
            let Some(run) = state.active() else { return Ok(Vec::new()) };
            let kept = state.window.as_ref().and_then(|window| window.row(run.turn_from));
            let metadata = match kept {
                Some(row) => row.metadata.clone(),
                None => rows::find(sql, run.turn_from)?.and_then(|row| row.metadata),
            };
            let metadata: Value =
                metadata.and_then(|text| crate::json::from_str(&text).ok()).unwrap_or(Value::Null);
            let names = metadata.get("skills").and_then(Value::as_array);
            Ok(names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
        })
    }

    /// The result of a call of `load_skill`.
    pub(super) fn load_skill(&self, definitions: &Definitions<'_>, args: &Value) -> ToolResult {
        let text = |field: &str| args.get(field).and_then(Value::as_str).unwrap_or_default();
        let (name, file) = (text("name"), text("file"));
        let skills = self.catalog.skills_of(definitions.prompt);
        let Some((skill, _)) = skills.iter().find(|(skill, _)| skill.head.name == name) else {
            let names: Vec<&str> = skills.iter().map(|(skill, _)| skill.head.name.as_str()).collect();
            return ToolResult::error(format!(
                "There is no skill \"{name}\" here. Skills: {}.",
                names.join(", ")
            ));
        };
        if file.is_empty() || file == skill::FILE {
            return ToolResult::success(skill.body.clone());
        }
        match skill.files.get(file) {
            Some(text) => ToolResult::success(text.clone()),
            None if skill.files.is_empty() => {
                ToolResult::error(format!("The skill \"{name}\" has no files besides its instructions."))
            }
            None => {
                let files: Vec<&str> = skill.files.keys().map(String::as_str).collect();
                let files = files.join(", ");
                ToolResult::error(format!("The skill \"{name}\" has no file \"{file}\". Files: {files}."))
            }
        }
    }
}

/// A system prompt with the skills for its model.
fn skilled(mut text: String, given: Selection<'_>) -> String {
    let Selection { active, offered, lacking: _ } = given;
    if !active.is_empty() {
        text.push_str("\n\n## Active skills");
        for skill in active {
            text.push_str(&format!("\n\n### {}\n\n{}", skill.head.name, skill.body));
        }
    }
    if !offered.is_empty() {
        text.push_str(
            "\n\n## Skills that can be loaded\n\nLoad one with `load_skill` before you do what it is for.\n",
        );
        for skill in offered {
            text.push_str(&format!("\n- {}: {}", skill.head.name, one_line(&skill.head.description)));
        }
    }
    text
}

/// Whether a tool is the one that loads skills.
pub(super) fn loads(tool: &Tool) -> bool {
    matches!(&tool.run, Implementation::Native(name) if name == skill::LOAD)
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
