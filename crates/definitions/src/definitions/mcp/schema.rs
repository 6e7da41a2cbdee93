//! JSON Schemas of a server's tools. They may have any keyword: models are shown them as they are but for a choice at the root
//! (`definitions::schema::root`), what `definitions::schema` knows of them is checked, and the rest is left to the server. Nothing is fetched for
//! them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::definitions::schema::types_of;
use crate::definitions::tool::is_header_name;
use crate::json;
use crate::limits;

/// What marks an argument that travels as a header, too.
const MARK: &str = "x-mcp-header";

/// Keywords whose values are schemas by name, besides `properties`.
const MAPS: [&str; 4] = ["$defs", "definitions", "patternProperties", "dependentSchemas"];
/// Keywords whose values are values, not schemas.
const VALUES: [&str; 4] = ["default", "const", "enum", "examples"];
/// Keywords at the root that say more of the same object.
const BRANCHES: [&str; 5] = ["anyOf", "oneOf", "allOf", "then", "else"];

/// The arguments that travel as headers: what follows `Mcp-Param-`, and a JSON pointer into the arguments.
pub type Marks = BTreeMap<String, String>;

/// A field of a schema, and what is wrong with it.
pub type FieldError = (String, String);

/// Whether a schema can be offered: it is an object's, not too large, refers to nothing outside of itself, and its marks are what
/// they should be (2026-07-28, transports: custom headers from tool parameters).
pub fn check(schema: &Value) -> Result<Marks, FieldError> {
    let wrong = |why: String| Err((String::new(), why));
    let Some(root) = schema.as_object() else { return wrong("must be a schema (an object)".to_owned()) };
    if root.get("type").is_some_and(|of| !of.is_null()) && types_of(schema) != ["object"] {
        return Err(("type".to_owned(), "arguments are an object: this must be \"object\"".to_owned()));
    }
    let text = schema.to_string();
    if text.len() > limits::MCP_SCHEMA_BYTES {
        return wrong(format!("has more than {} bytes", limits::MCP_SCHEMA_BYTES));
    }
    if hides(&text) {
        return wrong(HIDES.to_owned());
    }
    let mut walk = Walk { marks: Marks::new(), wrong: None };
    walk.schema(schema, &SchemaPath::Root, Some(&Argument::All), 0);
    match walk.wrong {
        Some(wrong) => Err(wrong),
        None => Ok(walk.marks),
    }
}

/// What is wrong with a text that models read and people do not see.
pub const HIDES: &str = "has characters that nobody sees";

/// Whether a text has characters that people do not see, or see elsewhere: directions of writing, and tags. Models read them.
pub fn hides(text: &str) -> bool {
    text.chars()
        .any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}'))
}

/// Where in a schema the walk is; put into words only when something is wrong there.
enum SchemaPath<'p> {
    Root,
    Key(&'p SchemaPath<'p>, &'p str),
    Item(&'p SchemaPath<'p>, usize),
}

impl fmt::Display for SchemaPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaPath::Root => Ok(()),
            SchemaPath::Key(SchemaPath::Root, key) => f.write_str(key),
            SchemaPath::Key(parent, key) => write!(f, "{parent}.{key}"),
            SchemaPath::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The argument that a schema is of, where `properties` alone lead there.
enum Argument<'p> {
    All,
    Property(&'p Argument<'p>, &'p str),
}

/// As a JSON pointer.
impl fmt::Display for Argument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::All => Ok(()),
            Argument::Property(of, name) => write!(f, "{of}/{}", name.replace('~', "~0").replace('/', "~1")),
        }
    }
}

struct Walk {
    marks: Marks,
    wrong: Option<FieldError>,
}

impl Walk {
    fn report(&mut self, at: &SchemaPath<'_>, why: impl Into<String>) {
        self.wrong.get_or_insert_with(|| (at.to_string(), why.into()));
    }

    fn schema(&mut self, schema: &Value, at: &SchemaPath<'_>, argument: Option<&Argument<'_>>, depth: usize) {
        if depth > limits::MCP_SCHEMA_DEPTH {
            return self.report(at, "is nested too deeply");
        }
        for (key, value) in schema.as_object().into_iter().flatten() {
            let here = SchemaPath::Key(at, key);
            match key.as_str() {
                "properties" => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        let argument = argument.map(|of| Argument::Property(of, name));
                        self.schema(property, &SchemaPath::Key(&here, name), argument.as_ref(), depth + 1);
                    }
                }
                _ if MAPS.contains(&key.as_str()) => {
                    for (name, schema) in value.as_object().into_iter().flatten() {
                        self.schema(schema, &SchemaPath::Key(&here, name), None, depth + 1);
                    }
                }
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    if value.as_str().is_some_and(|target| !target.starts_with('#')) {
                        self.report(
                            &here,
                            "refers to what is outside of the schema; nothing is fetched for it",
                        );
                    }
                }
                _ if VALUES.contains(&key.as_str()) => {}
                MARK => self.mark(schema, value, &here, argument),
                _ => self.others(value, &here, depth),
            }
        }
    }

    fn others(&mut self, value: &Value, at: &SchemaPath<'_>, depth: usize) {
        match value {
            Value::Object(_) => self.schema(value, at, None, depth + 1),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.schema(item, &SchemaPath::Item(at, index), None, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn mark(&mut self, schema: &Value, mark: &Value, at: &SchemaPath<'_>, argument: Option<&Argument<'_>>) {
        let types = types_of(schema);
        let plain =
            !types.is_empty() && types.iter().all(|name| ["string", "integer", "boolean"].contains(name));
        let argument = argument.filter(|argument| plain && matches!(argument, Argument::Property(..)));
        match (mark.as_str().filter(|name| is_header_name(name)), argument) {
            (None, _) => self.report(at, "cannot name a header"),
            (Some(_), None) => {
                self.report(at, "marks what is no argument that is a string, an integer or a boolean");
            }
            (Some(name), Some(_)) if self.marks.keys().any(|other| other.eq_ignore_ascii_case(name)) => {
                self.report(at, format!("\"{name}\" is marked twice"));
            }
            (Some(name), Some(argument)) => {
                self.marks.insert(name.to_owned(), argument.to_string());
            }
        }
    }
}

/// The schema of the catalog's tool: without what the application fills in, without marks, and without keywords that are `null`, as
/// servers in Go write them.
pub fn shown(schema: &Value, provided: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    clean(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.remove("$schema");
        root.entry("type").or_insert_with(|| json!("object"));
        root.entry("properties").or_insert_with(|| json!({}));
    }
    if !provided.is_empty() {
        leave_out(&mut schema, provided);
    }
    schema
}

fn clean(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|key, value| key != MARK && (!value.is_null() || VALUES.contains(&key.as_str())));
    for (key, value) in fields {
        match value {
            Value::Object(schemas) if key == "properties" || MAPS.contains(&key.as_str()) => {
                for schema in schemas.values_mut() {
                    if schema.is_null() {
                        *schema = json!({});
                    }
                    clean(schema);
                }
            }
            _ if VALUES.contains(&key.as_str()) => {}
            Value::Array(schemas) => schemas.iter_mut().for_each(clean),
            _ => clean(value),
        }
    }
}

/// Takes arguments out of an object's schema, and of the branches that it has at its root.
fn leave_out(schema: &mut Value, provided: &Map<String, Value>) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !provided.contains_key(name));
    }
    if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| provided.contains_key(name)));
    }
    for keyword in BRANCHES {
        match fields.get_mut(keyword) {
            Some(Value::Array(branches)) => {
                branches.iter_mut().for_each(|branch| leave_out(branch, provided));
            }
            Some(branch) => leave_out(branch, provided),
            None => {}
        }
    }
}
