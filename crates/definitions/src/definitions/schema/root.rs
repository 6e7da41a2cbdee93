//! Schemas whose root is a choice, such as `anyOf`: providers of models refuse them, and with them the whole request. Models are shown one
//! object in their place. The whole schema stays what arguments are checked with.

use serde_json::{Map, Value};

use crate::json;

/// Keywords that providers refuse at the root of a tool's schema, or that would say less there once the others are gone.
const AT_ROOT: [&str; 13] = [
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "enum",
    "const",
    "$ref",
    "$dynamicRef",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
];

/// Schemas that are looked at: references may lead to the same one again and again.
const SCHEMAS: usize = 512;
/// Levels of choices within choices.
const DEPTH: usize = 16;
/// Different schemas of one argument that are shown; with more than that it may be anything.
const ALTERNATIVES: usize = 32;
/// Branches that the note lists, and its bytes.
const LISTED: usize = 8;
const NOTE_BYTES: usize = 400;

/// The arguments of all branches as one object, and a sentence for the model about what the object does not say. `None` where the
/// root is no choice.
pub fn joined(schema: &Value) -> Option<(Value, String)> {
    let root = schema.as_object()?;
    if !AT_ROOT.iter().any(|keyword| root.contains_key(*keyword)) {
        return None;
    }
    let mut join = Join { root: schema, left: SCHEMAS };
    let shape = join.shape(schema, 0);
    let note = join.note(root);
    let mut joined = root.clone();
    joined.retain(|keyword, _| !AT_ROOT.contains(&keyword.as_str()));
    let required: Vec<Value> = shape
        .required
        .into_iter()
        .filter(|name| shape.properties.contains_key(name))
        .map(Value::from)
        .collect();
    joined.insert("type".into(), "object".into());
    joined.insert("properties".into(), shape.properties.into());
    joined.insert("required".into(), required.into());
    Some((joined.into(), note))
}

/// What an object may hold.
#[derive(Default)]
struct Shape {
    properties: Map<String, Value>,
    required: Vec<String>,
}

struct Join<'s> {
    root: &'s Value,
    /// Schemas that may still be looked at.
    left: usize,
}

impl<'s> Join<'s> {
    fn shape(&mut self, schema: &Value, depth: usize) -> Shape {
        let Some(fields) = schema.as_object().filter(|_| self.left > 0 && depth < DEPTH) else {
            return Shape::default();
        };
        self.left -= 1;
        let mut shape = own(fields);
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(target) = fields.get(keyword).and_then(|target| self.target(target)) {
                shape = both(shape, self.shape(target, depth + 1));
            }
        }
        for branch in branches(fields, "allOf") {
            shape = both(shape, self.shape(branch, depth + 1));
        }
        for keyword in ["anyOf", "oneOf"] {
            let each: Vec<Shape> =
                branches(fields, keyword).map(|branch| self.shape(branch, depth + 1)).collect();
            shape = both(shape, either(each));
        }
        if fields.contains_key("then") || fields.contains_key("else") {
            let mut of = |keyword| fields.get(keyword).map(|branch| self.shape(branch, depth + 1));
            let each = vec![of("then").unwrap_or_default(), of("else").unwrap_or_default()];
            shape = both(shape, either(each));
        }
        shape
    }

    /// What a reference within the schema leads to.
    fn target(&self, target: &Value) -> Option<&'s Value> {
        self.root.pointer(target.as_str()?.strip_prefix('#')?)
    }

    /// Which arguments belong together, as far as one sentence can say it.
    fn note(&mut self, root: &Map<String, Value>) -> String {
        let general = "Not every combination of these arguments is taken.";
        let mut choice =
            ["anyOf", "oneOf"].into_iter().flat_map(|keyword| branches(root, keyword)).peekable();
        let mut lists = Vec::new();
        while choice.peek().is_some() && lists.len() <= LISTED {
            let Some(branch) = choice.next() else { break };
            let shape = self.shape(branch, 1);
            let mut names = shape.required;
            if names.is_empty() {
                names = shape.properties.into_iter().map(|(name, _)| name).collect();
            }
            if names.is_empty() {
                return general.to_owned();
            }
            lists.push(names.join(", "));
        }
        let said = format!("Give the arguments of one of these: {}.", lists.join("; "));
        if lists.is_empty() || lists.len() > LISTED || said.len() > NOTE_BYTES {
            general.to_owned()
        } else {
            said
        }
    }
}

fn branches<'s>(fields: &'s Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'s Value> {
    fields.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn own(fields: &Map<String, Value>) -> Shape {
    let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
    Shape {
        properties: fields.get("properties").and_then(Value::as_object).cloned().unwrap_or_default(),
        required: required.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// What fits both.
fn both(mut one: Shape, other: Shape) -> Shape {
    for (name, schema) in other.properties {
        match one.properties.get_mut(&name) {
            // What a branch says besides; where the two contradict each other, the server says so.
            Some(Value::Object(known)) => {
                for (keyword, value) in schema.as_object().cloned().unwrap_or_default() {
                    known.entry(keyword).or_insert(value);
                }
            }
            Some(known) => *known = schema,
            None => drop(one.properties.insert(name, schema)),
        }
    }
    for name in other.required {
        if !one.required.contains(&name) {
            one.required.push(name);
        }
    }
    one
}

/// What fits one of them.
fn either(shapes: Vec<Shape>) -> Shape {
    let mut names: Map<String, Value> = Map::new();
    let mut required: Option<Vec<String>> = None;
    for shape in shapes {
        for (name, schema) in shape.properties {
            let known = names.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(known) = known
                && known.len() <= ALTERNATIVES
                && !known.contains(&schema)
            {
                known.push(schema);
            }
        }
        required = Some(match required {
            None => shape.required,
            Some(before) => before.into_iter().filter(|name| shape.required.contains(name)).collect(),
        });
    }
    let properties = names.into_iter().map(|(name, schemas)| (name, any_of(schemas))).collect();
    Shape { properties, required: required.unwrap_or_default() }
}

/// The schema of an argument that has these, by branch.
fn any_of(schemas: Value) -> Value {
    let Value::Array(mut schemas) = schemas else { return schemas };
    if schemas.len() > ALTERNATIVES {
        return json!({});
    }
    if schemas.len() < 2 {
        return schemas.pop().unwrap_or_else(|| json!({}));
    }
    // What tells branches apart is one value in each.
    let single = |schema: &Value| match schema.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        Some([value]) => Some(value.clone()),
        _ => schema.get("const").cloned(),
    };
    match schemas.iter().map(single).collect::<Option<Vec<Value>>>() {
        Some(values) => json!({ "enum": values }),
        None => json!({ "anyOf": schemas }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: Value) -> (Value, String) {
        joined(&schema).unwrap()
    }

    #[test]
    fn branches_become_one_object() {
        let text = || json!({ "type": "string" });
        // As in makenotion/notion-mcp-server#340 and anthropics/claude-code#45106.
        let (schema, note) = of(json!({ "type": "object", "description": "d", "anyOf": [
            { "properties": { "content": text() }, "required": ["content"] },
            { "properties": { "url": text() }, "required": ["url"] },
        ] }));
        assert_eq!(
            schema,
            json!({ "type": "object", "description": "d", "properties": { "content": text(), "url": text() }, "required": [] })
        );
        assert_eq!(note, "Give the arguments of one of these: content; url.");

        let (schema, _) = of(json!({ "properties": { "kind": text() }, "required": ["kind"], "oneOf": [
            { "properties": { "kind": { "const": "a" }, "x": text() }, "required": ["kind", "x"] },
            { "properties": { "kind": { "enum": ["b"] }, "x": { "type": "integer" } }, "required": ["x"] },
        ] }));
        assert_eq!(schema["properties"]["kind"], json!({ "type": "string", "enum": ["a", "b"] }));
        assert_eq!(schema["properties"]["x"], json!({ "anyOf": [text(), { "type": "integer" }] }));
        assert_eq!(schema["required"], json!(["kind", "x"]));

        let (schema, note) = of(json!({ "$ref": "#/$defs/all", "$defs": { "all": { "allOf": [
            { "properties": { "a": text() }, "required": ["a"] },
            { "if": {}, "then": { "properties": { "b": text() }, "required": ["b"] } },
        ] } } }));
        assert_eq!(schema["properties"], json!({ "a": text(), "b": text() }));
        assert_eq!((&schema["required"], schema.get("$ref")), (&json!(["a"]), None));
        assert_eq!(note, "Not every combination of these arguments is taken.");
    }

    #[test]
    fn no_choice_stays_at_the_root() {
        for keyword in AT_ROOT {
            let (schema, _) = of(json!({ "type": "object", "properties": { "a": {} }, keyword: [{}] }));
            assert_eq!(
                schema,
                json!({ "type": "object", "properties": { "a": {} }, "required": [] }),
                "{keyword}"
            );
        }
        assert_eq!(joined(&json!({ "type": "object", "properties": { "a": { "anyOf": [{}] } } })), None);
        assert_eq!(joined(&json!(true)), None);
    }

    /// A schema of a few hundred bytes that stands for 2^30 branches, and one that refers to itself.
    #[test]
    fn what_leads_to_itself_again_ends() {
        let mut defs = Map::new();
        for level in 0..30 {
            let next = json!({ "$ref": format!("#/$defs/{}", level + 1) });
            defs.insert(level.to_string(), json!({ "allOf": [next, next] }));
        }
        let (schema, _) = of(json!({ "$ref": "#/$defs/0", "$defs": defs }));
        assert_eq!(schema["properties"], json!({}));
        assert_eq!(of(json!({ "anyOf": [{ "$ref": "#" }] })).0["properties"], json!({}));
        let branch = |n: usize| json!({ "properties": { "a": { "maxLength": n } } });
        let many: Vec<Value> = (0..3_000).map(branch).collect();
        assert_eq!(of(json!({ "anyOf": many })).0["properties"], json!({ "a": {} }));
    }
}
