//! TypeScript declarations of tools, from their schemas, for models that write code.

use serde_json::Value;

use crate::definitions::schema::required;

/// A tool that code can call.
pub(crate) struct ToolDeclaration<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// What it does.
    pub(crate) description: &'a str,
    /// JSON Schema of its arguments, if any.
    pub(crate) schema: Option<&'a Value>,
}

/// Maximum depth of a written schema; deeper parts are `unknown`.
const DEPTH: usize = 6;

/// Writes `declare const tools: { … }`; empty without tools.
pub(crate) fn declarations<'a>(declared: impl Iterator<Item = ToolDeclaration<'a>>) -> String {
    let members: Vec<String> = declared
        .map(|tool| {
            let about = one_line(&tool.description.replace("*/", "* /"));
            let schema = tool.schema.filter(|schema| !has_no_arguments(schema));
            let takes = schema.map_or(String::new(), |schema| format!("args: {}", written(schema, 0)));
            format!("  /** {about} */\n  {}({takes}): Promise<string>;", key(tool.name))
        })
        .collect();
    if members.is_empty() {
        return String::new();
    }
    format!("declare const tools: {{\n{}\n}};", members.join("\n"))
}

/// Declares `fetch` and the permitted hosts; empty without hosts.
pub(crate) fn reach(hosts: &[String]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    format!(
        "/** Reaches these hosts and no others: {}. It follows no redirect. `Headers`, `Request`, `Response`, `FormData`, \
         `URL`, `URLSearchParams`, `TextEncoder`, `TextDecoder`, `atob`, `btoa`, `AbortController` and `AbortSignal` are \
         there as on the web; bodies have no streams. */\n\
         declare function fetch(url: string | URL | Request, init?: RequestInit): Promise<Response>;",
        hosts.join(", ")
    )
}

fn has_no_arguments(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A property's name, quoted if it is not an identifier.
fn key(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain && !name.is_empty() { name.to_owned() } else { Value::from(name).to_string() }
}

/// Writes a schema as a type.
fn written(schema: &Value, depth: usize) -> String {
    if depth > DEPTH {
        return "unknown".to_owned();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return union(values.iter().map(Value::to_string).collect());
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    for either in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema.get(either).and_then(Value::as_array) {
            return union(schemas.iter().map(|schema| written(schema, depth + 1)).collect());
        }
    }
    match schema.get("type") {
        Some(Value::String(kind)) => of_kind(kind, schema, depth),
        Some(Value::Array(kinds)) => {
            union(kinds.iter().filter_map(Value::as_str).map(|kind| of_kind(kind, schema, depth)).collect())
        }
        _ => "unknown".to_owned(),
    }
}

fn of_kind(kind: &str, schema: &Value, depth: usize) -> String {
    match kind {
        "string" => "string".to_owned(),
        "number" | "integer" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "null" => "null".to_owned(),
        "array" => {
            let item = schema.get("items").map_or("unknown".to_owned(), |items| written(items, depth + 1));
            if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
        }
        "object" => object(schema, depth),
        _ => "unknown".to_owned(),
    }
}

fn object(schema: &Value, depth: usize) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "Record<string, unknown>".to_owned();
    };
    let required: Vec<&str> = schema.as_object().into_iter().flat_map(required).collect();
    let members: Vec<String> = properties
        .iter()
        .map(|(name, schema)| {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            format!("{}{mark}: {}", key(name), written(schema, depth + 1))
        })
        .collect();
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join("; ")) }
}

fn union(mut types: Vec<String>) -> String {
    types.dedup();
    if types.is_empty() { "never".to_owned() } else { types.join(" | ") }
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::*;

    #[test]
    fn tools_are_declared_as_typed_functions() {
        let tools = [
            ("now", json!({ "type": "object", "properties": {} })),
            (
                "find-all",
                json!({ "type": "object", "required": ["query", "tags"], "properties": {
                    "query": { "type": "string" },
                    "kind": { "enum": ["a", "b"] },
                    "limit": { "type": ["integer", "null"] },
                    "tags": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "number" }] } },
                    "more": { "type": "object", "properties": { "x-y": { "type": "boolean" } }, "required": ["x-y"] },
                    "any": {},
                    "free": { "type": "object" },
                } }),
            ),
        ];
        let declared = |(name, schema): &'static (&'static str, Value)| ToolDeclaration {
            name,
            description: "Does\n it. */ x",
            schema: Some(schema),
        };
        let tools: &'static [(&str, Value)] = Box::leak(Box::new(tools));
        assert_eq!(
            declarations(tools.iter().map(declared)),
            "declare const tools: {\n  /** Does it. * / x */\n  now(): Promise<string>;\n  /** Does it. * / x */\n  \
             \"find-all\"(args: { query: string; kind?: \"a\" | \"b\"; limit?: number | null; \
             tags: (string | number)[]; more?: { \"x-y\": boolean }; any?: unknown; \
             free?: Record<string, unknown> }): Promise<string>;\n};"
        );
        assert_eq!(declarations(std::iter::empty()), "");
    }
}
