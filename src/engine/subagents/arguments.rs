//! Parses the arguments of calls for subagents (spec §8.3, §8.4, §8.6). Invalid arguments become an error
//! result that tells the model what to do.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::definitions::message::ToolResult;
use crate::definitions::subagent::{CREATE, MESSAGE};
use crate::definitions::{Agent, Catalog, ReceivingSide, ToolEntry, schema};
use crate::engine::subagents::call::{NewChild, SubagentCall};
use crate::engine::subagents::envelope::Content;
use crate::json;
use crate::limits;

/// The error code for arguments from which no agent can be created.
const ARGUMENTS: &str = "subagent_arguments_required";

/// The agent of this name, if it has two AI sides and may be called.
pub(super) fn agent<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Agent> {
    catalog.agents.get(name).filter(|agent| agent.expose_as_tool && agent.side_b.is_some())
}

/// The schema of the arguments for the subagent of an entry: that of the prompt that receives the parent's
/// messages.
pub(super) fn arguments_of<'a>(
    catalog: &'a Catalog,
    agent: &'a Agent,
    entry: &ToolEntry,
) -> Option<&'a Value> {
    let side = match entry.resumable.as_ref().map(|resumable| resumable.receives_messages) {
        Some(ReceivingSide::SideB) => agent.side_b.as_ref()?,
        Some(ReceivingSide::SideA) | None => &agent.side_a,
    };
    catalog.prompts.get(&side.prompt)?.required_schema.as_ref()
}

/// Parses a call of `subagent_create`. `entries`: the prompt's entries that are available now.
pub(super) fn create<'a>(
    catalog: &'a Catalog,
    entries: &[&'a ToolEntry],
    args: &Value,
) -> Result<NewChild<'a>, ToolResult> {
    let args = object(CREATE, args, &["agent", "message", "attachments", "name", "arguments"])?;
    let resumable = entries.iter().filter(|entry| entry.resumable.is_some());
    let available = || {
        let names: Vec<&str> = resumable.clone().map(|entry| entry.name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let Some(wanted) = text(args, "agent") else {
        return Err(refused(format!(
            "`agent` must name the subagent to create. Available: {}.",
            available()
        )));
    };
    let Some(entry) = resumable.clone().find(|entry| entry.name == wanted) else {
        let direct = entries.iter().any(|entry| entry.name == wanted) && agent(catalog, wanted).is_some();
        return Err(refused(match direct {
            true => format!("\"{wanted}\" is not created with {CREATE}: call it by its name."),
            false => format!("No subagent \"{wanted}\" can be created here. Available: {}.", available()),
        }));
    };
    let Some(agent) = agent(catalog, wanted) else {
        return Err(refused(format!("The agent \"{wanted}\" is not among the definitions any more.")));
    };
    let message = text(args, "message").ok_or_else(|| {
        refused(format!("`message` must be a text that is not blank: say what \"{wanted}\" is to do."))
    })?;
    let name = text(args, "name").and_then(label);
    let name = name.ok_or_else(|| {
        refused("`name` must be a text that is not blank: a label that tells this subagent from others.")
    })?;
    let files = attachments(args)?;
    let arguments = match args.get("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(given @ Value::Object(_)) => given.clone(),
        Some(_) => return Err(refused("`arguments` must be an object.")),
    };
    let arguments = match arguments_of(catalog, agent, entry) {
        None => arguments,
        Some(schema) => {
            let problems = schema::validate(schema, &arguments);
            if !problems.is_empty() {
                return Err(unfit(wanted, schema, &problems));
            }
            schema::with_defaults(schema, arguments).map_err(|problems| unfit(wanted, schema, &problems))?
        }
    };
    let arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
    let words = Content { text: message.to_owned(), files, ..Content::default() };
    Ok(NewChild { agent, entry, name: Some(name), arguments, words, begun: None, worker: None })
}

/// Parses a call of `subagent_message`.
pub(super) fn message(args: &Value) -> Result<SubagentCall<'static>, ToolResult> {
    let args = object(MESSAGE, args, &["referenceId", "message", "attachments"])?;
    let reference = text(args, "referenceId")
        .ok_or_else(|| refused(format!("`referenceId` must be the reference that {CREATE} gave.")))?;
    let message = text(args, "message").ok_or_else(|| {
        refused("`message` must be a text that is not blank: say what the subagent is to do.")
    })?;
    let words = Content { text: message.to_owned(), files: attachments(args)?, ..Content::default() };
    Ok(SubagentCall::Message { reference: reference.to_owned(), words })
}

/// Parses a call of an agent's own name, with valid arguments. The first message is the argument that the
/// entry names, or else all arguments. Arguments that the message does not contain are passed beside it.
pub(super) fn direct<'a>(
    agent: &'a Agent,
    entry: &'a ToolEntry,
    args: &Value,
) -> Result<NewChild<'a>, ToolResult> {
    let name = &agent.name;
    if entry.resumable.is_some() {
        let told =
            format!("\"{name}\" is not called by its name: create it with {CREATE}, `agent`: \"{name}\".");
        return Err(refused(told));
    }
    let value = |property: &Option<String>| match args.get(property.as_deref()?) {
        None | Some(Value::Null) => None,
        found => found,
    };
    let files = match (value(&entry.init_attachments_property), &entry.init_attachments_property) {
        (Some(given), Some(property)) => paths(given, true)
            .ok_or_else(|| refused(format!("`{property}` must be a path, or a list of paths.")))?,
        _ => Vec::new(),
    };
    let label = value(&entry.init_agent_name_property).map(spoken).as_deref().and_then(label);
    let mut rest = args.as_object().cloned().unwrap_or_default();
    let text = match value(&entry.init_user_message_property).map(spoken) {
        Some(text) if !text.trim().is_empty() => {
            let said = [
                &entry.init_user_message_property,
                &entry.init_attachments_property,
                &entry.init_agent_name_property,
            ];
            rest.retain(|key, _| said.iter().all(|property| property.as_ref() != Some(key)));
            text
        }
        _ if rest.is_empty() => String::new(),
        _ => format!("{:#}", Value::Object(std::mem::take(&mut rest))),
    };
    Ok(NewChild {
        agent,
        entry,
        name: label,
        arguments: rest,
        words: Content { text, files, ..Content::default() },
        begun: None,
        worker: None,
    })
}

fn refused(text: impl Into<String>) -> ToolResult {
    ToolResult::error(text)
}

/// The error result for arguments that do not match an agent's schema.
fn unfit(agent: &str, schema: &Value, problems: &[schema::Problem]) -> ToolResult {
    let required: Vec<&str> = schema.as_object().into_iter().flat_map(schema::required).collect();
    let data = json!({ "agent": agent, "required": required });
    let told = format!("`arguments` do not fit \"{agent}\": {}", schema::lines(problems));
    ToolResult {
        error_code: Some(ARGUMENTS.to_owned()),
        error_data: data.as_object().cloned(),
        ..refused(told)
    }
}

/// The arguments of a tool, which accepts no other properties.
fn object<'v>(tool: &str, args: &'v Value, known: &[&str]) -> Result<&'v Map<String, Value>, ToolResult> {
    let args = args.as_object();
    let args = args.ok_or_else(|| refused(format!("The arguments for \"{tool}\" must be an object.")))?;
    match args.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(args),
        Some(key) => Err(refused(format!("\"{tool}\" takes no `{key}`. It takes {}.", known.join(", ")))),
    }
}

/// A text that is not blank, trimmed.
fn text<'v>(args: &'v Map<String, Value>, property: &str) -> Option<&'v str> {
    args.get(property)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// A value as text. A string stays as it is; other values become JSON.
fn spoken(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A name as a single line of bounded length.
pub(super) fn label(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let label: String = line.chars().take(limits::SUBAGENT_NAME_CHARS).collect();
    (!label.is_empty()).then_some(label)
}

fn attachments(args: &Map<String, Value>) -> Result<Vec<String>, ToolResult> {
    args.get("attachments").and_then(|given| paths(given, false)).ok_or_else(|| {
        refused("`attachments` must be a list of paths of files in this thread; give [] for none.")
    })
}

/// The distinct paths of a list of strings or of objects with a `path`. `one`: also accept a single path; a
/// blank one counts as none.
pub(crate) fn paths(given: &Value, one: bool) -> Option<Vec<String>> {
    let list = match given {
        Value::Array(list) => list.as_slice(),
        Value::String(blank) if one && blank.trim().is_empty() => &[],
        Value::String(_) | Value::Object(_) if one => std::slice::from_ref(given),
        _ => return None,
    };
    let (mut paths, mut known) = (Vec::with_capacity(list.len()), HashSet::new());
    for item in list {
        let path = item.as_str().or_else(|| item.get("path")?.as_str())?.trim();
        if path.is_empty() {
            return None;
        }
        if known.insert(path) {
            paths.push(path.to_owned());
        }
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let prompt = |schema: Value| {
            let mut prompt = json!({ "toolDescription": "d", "model": "m", "prompt": "p" });
            if !schema.is_null() {
                prompt["requiredSchema"] = schema;
            }
            prompt
        };
        let agent = |a: &str, b: &str| {
            json!({ "type": "dual_ai", "exposeAsTool": true, "toolDescription": "d", "sideA": { "prompt": a },
                "sideB": { "prompt": b } })
        };
        let topic = json!({ "type": "object", "required": ["topic"],
            "properties": { "topic": { "type": "string" }, "depth": { "type": "integer", "default": 2 } } });
        let agents = json!({ "researcher": agent("topic", "plain"), "writer": agent("topic", "plain"),
            "clerk": agent("plain", "topic"), "coder": agent("plain", "plain") });
        let catalog =
            json!({ "prompts": { "topic": prompt(topic), "plain": prompt(Value::Null) }, "agents": agents });
        Catalog::from_json(&catalog.to_string()).unwrap()
    }

    fn entry(value: Value) -> ToolEntry {
        crate::json::from_value(value).unwrap()
    }

    /// The subagents of the test prompt. `coder` is called by its name; `gone` has no definition.
    fn entries() -> Vec<ToolEntry> {
        let resumable = |name: &str, side: &str| {
            entry(json!({ "name": name, "resumable": { "receives_messages": side } }))
        };
        vec![
            resumable("researcher", "side_a"),
            resumable("writer", "side_b"),
            resumable("clerk", "side_b"),
            resumable("gone", "side_a"),
            entry(json!("coder")),
        ]
    }

    /// The agent, name, arguments, text and files of a call.
    type Got = (String, Option<String>, Value, String, Vec<String>);

    /// The result of a call with valid arguments after these changes; `null` removes an argument.
    fn asked(changes: Value) -> Result<Got, ToolResult> {
        let mut args = json!({ "agent": "writer", "message": "Write.", "attachments": [], "name": "Ann" });
        for (key, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => args.as_object_mut().unwrap().remove(key),
                value => args.as_object_mut().unwrap().insert(key.clone(), value.clone()),
            };
        }
        let (catalog, entries) = (catalog(), entries());
        let new = create(&catalog, &entries.iter().collect::<Vec<_>>(), &args)?;
        let NewChild { agent, name, arguments, words, .. } = new;
        Ok((agent.name.clone(), name, Value::Object(arguments), words.text, words.files))
    }

    #[test]
    fn a_creation_says_all_that_the_subagent_begins_with() {
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(
            asked(json!({})).unwrap(),
            ("writer".into(), name("Ann"), json!({}), "Write.".into(), vec![])
        );
        let (_, named, ..) = asked(json!({ "name": format!(" Ann\nof  {}", "x".repeat(500)) })).unwrap();
        let named = named.unwrap();
        assert!(named.starts_with("Ann of xxx") && named.chars().count() == 200, "{named}");
        let given = json!({ "agent": "researcher", "message": " Find\nit. ", "arguments": { "topic": "tea" },
            "attachments": ["/a.txt", { "path": "/attachments/b.png" }, "/a.txt"] });
        let files = vec!["/a.txt".to_owned(), "/attachments/b.png".to_owned()];
        let arguments = json!({ "topic": "tea", "depth": 2 });
        assert_eq!(
            asked(given).unwrap(),
            ("researcher".into(), name("Ann"), arguments, "Find\nit.".into(), files)
        );
        let (_, _, arguments, ..) = asked(json!({ "arguments": { "any": [1] } })).unwrap();
        assert_eq!(arguments, json!({ "any": [1] }), "without a schema any object is taken");
    }

    #[test]
    fn the_schema_of_the_arguments_is_that_of_the_side_that_hears() {
        for (agent, needs) in [("researcher", true), ("writer", false), ("clerk", true)] {
            let told = asked(json!({ "agent": agent }));
            assert_eq!(told.is_err(), needs, "{agent}: {told:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_creation_is_told() {
        for (changes, told) in [
            (
                json!({ "agent": null }),
                "`agent` must name the subagent to create. Available: researcher, writer, clerk, gone.",
            ),
            (
                json!({ "agent": 1 }),
                "`agent` must name the subagent to create. Available: researcher, writer, clerk, gone.",
            ),
            (
                json!({ "agent": "painter" }),
                "No subagent \"painter\" can be created here. Available: researcher, writer, clerk, gone.",
            ),
            (
                json!({ "agent": "coder" }),
                "\"coder\" is not created with subagent_create: call it by its name.",
            ),
            (json!({ "agent": "gone" }), "The agent \"gone\" is not among the definitions any more."),
            (
                json!({ "message": null }),
                "`message` must be a text that is not blank: say what \"writer\" is to do.",
            ),
            (
                json!({ "message": " \n" }),
                "`message` must be a text that is not blank: say what \"writer\" is to do.",
            ),
            (
                json!({ "name": "  " }),
                "`name` must be a text that is not blank: a label that tells this subagent from others.",
            ),
            (
                json!({ "attachments": null }),
                "`attachments` must be a list of paths of files in this thread; give [] for none.",
            ),
            (
                json!({ "attachments": "/a" }),
                "`attachments` must be a list of paths of files in this thread; give [] for none.",
            ),
            (
                json!({ "attachments": ["/a", 1] }),
                "`attachments` must be a list of paths of files in this thread; give [] for none.",
            ),
            (json!({ "arguments": "tea" }), "`arguments` must be an object."),
            (
                json!({ "files": [] }),
                "\"subagent_create\" takes no `files`. It takes agent, message, attachments, name, arguments.",
            ),
        ] {
            let error = asked(changes.clone()).unwrap_err();
            assert_eq!((error.text(), error.error_code), (told.to_owned(), None), "{changes}");
        }
        let error = create(&catalog(), &[], &json!({})).map(|_| ()).unwrap_err();
        assert_eq!(error.text(), "`agent` must name the subagent to create. Available: none.");
        let error = create(&catalog(), &[], &json!([])).map(|_| ()).unwrap_err();
        assert_eq!(error.text(), "The arguments for \"subagent_create\" must be an object.");
    }

    #[test]
    fn arguments_that_do_not_fit_say_what_is_required() {
        for arguments in [Value::Null, json!({ "depth": 1 })] {
            let error = asked(json!({ "agent": "clerk", "arguments": arguments })).unwrap_err();
            assert_eq!(error.text(), "`arguments` do not fit \"clerk\": topic: required but missing.");
            assert_eq!(error.error_code.as_deref(), Some("subagent_arguments_required"));
            assert_eq!(
                error.error_data.map(Value::Object),
                Some(json!({ "agent": "clerk", "required": ["topic"] }))
            );
        }
    }

    #[test]
    fn a_message_names_a_reference() {
        let fine = json!({ "referenceId": " r1 ", "message": "On.", "attachments": ["/a"] });
        let SubagentCall::Message { reference, words } = message(&fine).unwrap_or_else(|_| panic!()) else {
            panic!()
        };
        assert_eq!(
            (reference.as_str(), words.text.as_str(), words.files),
            ("r1", "On.", vec!["/a".to_owned()])
        );
        for (args, told) in [
            (
                json!({ "message": "On.", "attachments": [] }),
                "`referenceId` must be the reference that subagent_create gave.",
            ),
            (
                json!({ "referenceId": "r1", "attachments": [] }),
                "`message` must be a text that is not blank: say what the subagent is to do.",
            ),
            (
                json!({ "referenceId": "r1", "message": "On." }),
                "`attachments` must be a list of paths of files in this thread; give [] for none.",
            ),
            (
                json!({ "reference": "r1" }),
                "\"subagent_message\" takes no `reference`. It takes referenceId, message, attachments.",
            ),
        ] {
            assert_eq!(message(&args).map(|_| ()).unwrap_err().text(), told);
        }
    }

    #[test]
    fn a_direct_call_begins_with_what_its_entry_names() {
        let catalog = catalog();
        let agent = agent(&catalog, "coder").unwrap();
        let call = |listed: Value, args: Value| {
            let entry = entry(listed);
            direct(agent, &entry, &args).map(|new| {
                (new.name, Value::Object(new.arguments), new.words.text, new.words.files.join(" "))
            })
        };
        let plain = json!("coder");
        let full = json!({ "name": "coder", "initUserMessageProperty": "task", "initAttachmentsProperty": "files",
            "initAgentNameProperty": "as" });
        let said = |name: Option<&str>, rest: Value, text: &str, files: &str| {
            Ok((name.map(str::to_owned), rest, text.to_owned(), files.to_owned()))
        };
        for (listed, args, expected) in [
            (&plain, json!({}), said(None, json!({}), "", "")),
            (&plain, json!({ "a": [1] }), said(None, json!({}), "{\n  \"a\": [\n    1\n  ]\n}", "")),
            (&full, json!({ "task": "Go." }), said(None, json!({}), "Go.", "")),
            (
                &full,
                json!({ "task": "Go.", "files": "/a", "as": " Bo ", "level": 3 }),
                said(Some("Bo"), json!({ "level": 3 }), "Go.", "/a"),
            ),
            (
                &full,
                json!({ "task": { "n": 1 }, "files": ["/a", { "path": "/b" }], "as": 7 }),
                said(Some("7"), json!({}), "{\"n\":1}", "/a /b"),
            ),
            (
                &full,
                json!({ "task": null, "files": "", "as": null }),
                said(None, json!({}), "{\n  \"task\": null,\n  \"files\": \"\",\n  \"as\": null\n}", ""),
            ),
        ] {
            assert_eq!(call(listed.clone(), args.clone()), expected, "{listed} {args}");
        }
        let error = call(full, json!({ "task": "Go.", "files": 1 })).unwrap_err();
        assert_eq!(error.text(), "`files` must be a path, or a list of paths.");
        let error =
            call(json!({ "name": "coder", "resumable": { "receives_messages": "side_a" } }), json!({}));
        assert_eq!(
            error.unwrap_err().text(),
            "\"coder\" is not called by its name: create it with subagent_create, `agent`: \"coder\"."
        );
    }
}
