//! `schemas`: generates the JSON Schemas of definition files, for editors. They are committed, so that
//! reviews show changes of the formats. `--check` checks that they are fresh.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use bobbin_definitions::definitions::{
    Agent, Effect, Endpoint, Hook, McpServer, Memory, Model, Prompt, Settings, SkillHead, Tool,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// Writes the schemas, or with `check` fails when a committed one differs.
pub(crate) fn run(check: bool) -> Result<()> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let stale = stale(&folder)?;
    if stale.is_empty() {
        return Ok(());
    }
    if check {
        let names: Vec<&str> = stale.iter().map(|(file, _)| file.as_str()).collect();
        bail!("schemas/ is out of date ({}): run `bobbin-build schemas`", names.join(", "));
    }
    fs::create_dir_all(&folder)?;
    for (file, text) in stale {
        fs::write(folder.join(&file), text).with_context(|| format!("cannot write schemas/{file}"))?;
    }
    Ok(())
}

/// The schemas that are not as they should be: name of the file, and text as it should be.
fn stale(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut stale = Vec::new();
    let schemas = [
        ("model", schema::<Model>()),
        ("prompt", schema::<Prompt>()),
        ("tool", schema::<Tool>()),
        ("agent", schema::<Agent>()),
        ("effect", schema::<Effect>()),
        ("endpoint", schema::<Endpoint>()),
        ("hook", schema::<Hook>()),
        ("memory", schema::<Memory>()),
        ("mcp", schema::<McpServer>()),
        ("skill", schema::<SkillHead>()),
        ("settings", schema::<Settings>()),
    ];
    for (name, schema) in schemas {
        let file = format!("{name}.schema.json");
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        if fs::read_to_string(folder.join(&file)).unwrap_or_default() != text {
            stale.push((file, text));
        }
    }
    Ok(stale)
}

fn schema<T: JsonSchema>() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    // A file may name its schema; the runtime does not read that.
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        // If omitted, it is the file's name, so it must not default to an empty one.
        for field in ["name", "id"] {
            if let Some(Value::Object(name)) = properties.get_mut(field) {
                name.shift_remove("default");
            }
        }
        properties.insert("$schema".to_owned(), json!({ "type": "string" }));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_schemas_are_fresh() {
        run(true).unwrap();
    }
}
