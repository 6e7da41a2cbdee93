//! Whether the runtime understands a schema; checked when the catalog is built.

use serde_json::{Map, Value};

use crate::definitions::schema::{DEPTH, Problem, required, validate};

const KEYWORDS: [&str; 17] = [
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
];
const NOTES: [&str; 8] =
    ["title", "description", "default", "examples", "format", "deprecated", "$comment", "$schema"];
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "null", "array", "object"];

/// What is wrong with the schema of arguments; empty when nothing is. It must be an object schema at the top, and use
/// the keywords on [the list](super) alone. Paths lead into the schema: `properties.word.pattern`.
pub fn check(schema: &Value) -> Vec<Problem> {
    let mut check = Check { problems: Vec::new() };
    match schema.get("type") {
        Some(Value::String(name)) if name == "object" => check.schema(schema, "", 0),
        _ => check.report("", "type", "arguments are an object: this must be \"object\""),
    }
    check.problems
}

struct Check {
    problems: Vec<Problem>,
}

impl Check {
    fn report(&mut self, at: &str, field: &str, message: impl Into<String>) {
        self.problems.push(Problem { path: join(at, field), message: message.into() });
    }

    fn schema(&mut self, schema: &Value, at: &str, depth: usize) {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(_) => return,
            _ => return self.report(at, "", "must be a schema (an object)"),
        };
        if depth > DEPTH {
            return self.report(at, "", format!("nested more than {DEPTH} levels deep"));
        }
        for (keyword, value) in schema {
            self.keyword(keyword, value, at, depth);
        }
        self.required_are_known(schema, at);
        self.bounds_leave_room(schema, at);
        if let Some(default) = schema.get("default") {
            for problem in validate(&Value::Object(schema.clone()), default) {
                self.report(
                    at,
                    "default",
                    format!("does not fit its own schema: {}", problem.to_string().trim_end_matches('.')),
                );
            }
        }
    }

    fn keyword(&mut self, keyword: &str, value: &Value, at: &str, depth: usize) {
        match keyword {
            "type" => self.types(value, at),
            "enum" => {
                if value.as_array().is_none_or(Vec::is_empty) {
                    self.report(at, keyword, "must be a list of at least one value");
                }
            }
            "properties" => match value {
                Value::Object(properties) => {
                    for (name, schema) in properties {
                        self.schema(schema, &join(&join(at, keyword), name), depth + 1);
                    }
                }
                _ => self.report(at, keyword, "must be an object of schemas"),
            },
            "required" => {
                if !value.as_array().is_some_and(|names| names.iter().all(Value::is_string)) {
                    self.report(at, keyword, "must be a list of names");
                }
            }
            "anyOf" | "oneOf" => match value {
                Value::Array(branches) if !branches.is_empty() => {
                    for (index, branch) in branches.iter().enumerate() {
                        self.schema(branch, &join(at, &format!("{keyword}[{index}]")), depth + 1);
                    }
                }
                _ => self.report(at, keyword, "must be a list of at least one schema"),
            },
            "items" | "additionalProperties" => self.schema(value, &join(at, keyword), depth + 1),
            "minItems" | "maxItems" | "minLength" | "maxLength" => {
                if !value.as_f64().is_some_and(|bound| bound >= 0.0 && bound.fract() == 0.0) {
                    self.report(at, keyword, "must be a whole number, not negative");
                }
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                if !value.is_number() {
                    self.report(at, keyword, "must be a number");
                }
            }
            "title" | "description" | "format" => {
                if !value.is_string() {
                    self.report(at, keyword, "must be a text");
                }
            }
            _ if KEYWORDS.contains(&keyword) || NOTES.contains(&keyword) => {}
            _ => self.report(at, keyword, unknown(keyword)),
        }
    }

    fn types(&mut self, value: &Value, at: &str) {
        let names = match value {
            Value::Array(names) if !names.is_empty() => names.as_slice(),
            name => std::slice::from_ref(name),
        };
        for name in names {
            if !name.as_str().is_some_and(|name| TYPES.contains(&name)) {
                self.report(at, "type", format!("{name} is not a type; types are {}", TYPES.join(", ")));
            }
        }
    }

    /// A required property that is not described is a slip of the pen: no model could know what to send.
    fn required_are_known(&mut self, schema: &Map<String, Value>, at: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for name in required(schema) {
            if !properties.is_some_and(|properties| properties.contains_key(name)) {
                self.report(at, "required", format!("names `{name}`, which is not among the properties"));
            }
        }
    }

    fn bounds_leave_room(&mut self, schema: &Map<String, Value>, at: &str) {
        let bound = |keyword| schema.get(keyword).and_then(Value::as_f64);
        for (least, most) in [("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")] {
            if let (Some(low), Some(high)) = (bound(least), bound(most))
                && low > high
            {
                self.report(at, least, format!("is more than `{most}`: nothing fits"));
            }
        }
    }
}

fn unknown(keyword: &str) -> String {
    let hint = match keyword {
        "pattern" => "describe the form in `description`, and check it in the tool",
        "allOf" => "write the properties into one schema",
        "$ref" | "$defs" | "definitions" => "write the schema where it is used",
        "nullable" => "use a list of types, such as [\"string\", \"null\"]",
        "prefixItems" | "uniqueItems" | "contains" => {
            "describe it in `description`, and check it in the tool"
        }
        _ => return format!("`{keyword}` is not supported; supported are {}", KEYWORDS.join(", ")),
    };
    format!("`{keyword}` is not supported: {hint}")
}

fn join(at: &str, field: &str) -> String {
    match (at, field) {
        ("", field) => field.to_owned(),
        (at, "") => at.to_owned(),
        (at, field) => format!("{at}.{field}"),
    }
}
