//! JSON Schemas of arguments: a closed list of keywords, small enough for wasm (spec §6.1). `check`: whether a schema has no
//! other. `strict`: the form of it that providers get; `root`: one object in the place of a choice at the root.
//!
//! | about | keywords |
//! |---|---|
//! | any value | `type` (a name or a list of names), `enum`, `const`, `anyOf`, `oneOf` |
//! | objects | `properties`, `required`, `additionalProperties` (`true`, `false` or a schema) |
//! | arrays | `items`, `minItems`, `maxItems` |
//! | strings | `minLength`, `maxLength` (in characters) |
//! | numbers | `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum` |
//! | notes that check nothing | `title`, `description`, `default`, `examples`, `format`, `deprecated`, `$comment`, `$schema` |
//!
//! They mean what JSON Schema 2020-12 says; `true` and `{}` accept anything, `false` nothing. Any other keyword is a
//! catalog error ([`check`]): a schema that promises more than is checked would be worse than none.

pub(crate) mod check;
pub(crate) mod root;
pub(crate) mod strict;

pub use crate::spec::schema::check::check;
pub use crate::spec::schema::strict::{strict, with_defaults};

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

/// Levels of schemas within schemas.
pub const DEPTH: usize = 10;

/// Problems that are reported at once; a long list helps no model.
const PROBLEMS: usize = 16;

/// Something that is wrong at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Origin, such as `items[0].name`; empty for the whole.
    pub path: String,
    /// What, without a full stop.
    pub message: String,
}

/// One line, as a model reads it: `text: expected string, got integer.`
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "{}.", self.message),
            path => write!(f, "{path}: {}.", self.message),
        }
    }
}

/// What is wrong with a value; empty when nothing is. Keywords that are not on the list are passed over.
pub fn validate(schema: &Value, value: &Value) -> Vec<Problem> {
    let mut check = Validation { problems: Vec::new(), lenient: false };
    check.value(schema, value, &Path::Root, 0);
    check.problems
}

/// The same with a schema that may have keywords which are not on the list: what follows from them alone is no problem.
pub(crate) fn validate_leniently(schema: &Value, value: &Value) -> Vec<Problem> {
    let mut check = Validation { problems: Vec::new(), lenient: true };
    check.value(schema, value, &Path::Root, 0);
    check.problems
}

/// Arguments without those that are `null`, where the schema asks for none and takes no `null`: so models leave them out.
pub(crate) fn without_nulls(schema: &Value, mut args: Value) -> Value {
    let Some(schema) = schema.as_object() else { return args };
    if let Some(given) = args.as_object_mut() {
        let properties = schema.get("properties").and_then(Value::as_object);
        let refuses = |name: &str| {
            properties
                .and_then(|properties| properties.get(name))
                .is_some_and(|property| !validate_leniently(property, &Value::Null).is_empty())
        };
        given.retain(|name, value| {
            !value.is_null() || required(schema).any(|of| of == name) || !refuses(name)
        });
    }
    args
}

/// Problems, a line each.
pub fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The same for arguments: of something that declares none, any object is taken.
pub(crate) fn problems(schema: Option<&Value>, args: &Value) -> Vec<Problem> {
    match schema {
        Some(schema) => validate(schema, args),
        None => validate(&crate::json!({ "type": "object" }), args),
    }
}

/// Where in a value the validation is; put into words only when something is wrong there.
enum Path<'a> {
    Root,
    Property(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Property(Path::Root, name) => f.write_str(name),
            Path::Property(parent, name) => write!(f, "{parent}.{name}"),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Validation {
    problems: Vec<Problem>,
    /// Whether keywords that are not on the list may say more.
    lenient: bool,
}

impl Validation {
    fn report(&mut self, at: &Path<'_>, message: impl Into<String>) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(Problem { path: at.to_string(), message: message.into() });
        }
    }

    fn value(&mut self, schema: &Value, value: &Value, at: &Path<'_>, depth: usize) {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return self.report(at, "no value is allowed here"),
            _ => return,
        };
        // `check` refuses deeper schemas; this guards the stack against one that was not checked.
        if depth > DEPTH * 4 {
            return self.report(at, "the schema is nested too deeply");
        }
        if !types(schema).is_none_or(|mut types| types.any(|name| is_type(value, name))) {
            let expected: Vec<&str> = types(schema).into_iter().flatten().collect();
            return self.report(at, format!("expected {}, got {}", expected.join(" or "), type_name(value)));
        }
        if let Some(constant) = schema.get("const")
            && !same(constant, value)
        {
            self.report(at, format!("expected {}, got {}", brief(constant), brief(value)));
        }
        if let Some(Value::Array(choices)) = schema.get("enum")
            && !choices.iter().any(|choice| same(choice, value))
        {
            let choices: Vec<String> = choices.iter().map(brief).collect();
            self.report(at, format!("expected one of {}, got {}", choices.join(", "), brief(value)));
        }
        match value {
            Value::Object(object) => self.object(schema, object, at, depth),
            Value::Array(items) => self.array(schema, items, at, depth),
            Value::String(text) => {
                self.size(schema, ["minLength", "maxLength"], "characters", at, || text.chars().count())
            }
            Value::Number(number) => self.number(schema, number, at),
            _ => {}
        }
        self.branches(schema, value, at, depth);
    }

    fn object(
        &mut self,
        schema: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &Path<'_>,
        depth: usize,
    ) {
        for name in required(schema).filter(|name| !object.contains_key(*name)) {
            self.report(&Path::Property(at, name), "required but missing");
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let others = match self.lenient && schema.contains_key("patternProperties") {
            true => None,
            false => schema.get("additionalProperties"),
        };
        for (name, value) in object {
            let here = Path::Property(at, name);
            match (known.and_then(|known| known.get(name)), others) {
                (Some(property), _) => self.value(property, value, &here, depth + 1),
                (None, Some(Value::Bool(false))) => {
                    let known: Vec<&str> =
                        known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
                    let hint = if known.is_empty() { "none are".to_owned() } else { known.join(", ") };
                    self.report(&here, format!("unknown property (known: {hint})"));
                }
                (None, Some(others)) => self.value(others, value, &here, depth + 1),
                (None, None) => {}
            }
        }
    }

    fn array(&mut self, schema: &Map<String, Value>, items: &[Value], at: &Path<'_>, depth: usize) {
        self.size(schema, ["minItems", "maxItems"], "items", at, || items.len());
        if let Some(each) = schema.get("items")
            && !(self.lenient && schema.contains_key("prefixItems"))
        {
            for (index, item) in items.iter().enumerate() {
                self.value(each, item, &Path::Item(at, index), depth + 1);
            }
        }
    }

    fn size(
        &mut self,
        schema: &Map<String, Value>,
        [least, most]: [&str; 2],
        unit: &str,
        at: &Path<'_>,
        size: impl Fn() -> usize,
    ) {
        let bound = |keyword| schema.get(keyword).and_then(Value::as_number);
        let beyond = |bound: &Number, wrong: Ordering| compare(&Number::from(size()), bound) == Some(wrong);
        if let Some(bound) = bound(least).filter(|bound| beyond(bound, Ordering::Less)) {
            self.report(at, format!("expected at least {bound} {unit}, got {}", size()));
        }
        if let Some(bound) = bound(most).filter(|bound| beyond(bound, Ordering::Greater)) {
            self.report(at, format!("expected at most {bound} {unit}, got {}", size()));
        }
    }

    fn number(&mut self, schema: &Map<String, Value>, number: &Number, at: &Path<'_>) {
        type Bound = (&'static str, &'static str, fn(Ordering) -> bool);
        const BOUNDS: [Bound; 4] = [
            ("minimum", "at least", Ordering::is_ge),
            ("maximum", "at most", Ordering::is_le),
            ("exclusiveMinimum", "more than", Ordering::is_gt),
            ("exclusiveMaximum", "less than", Ordering::is_lt),
        ];
        for (keyword, words, holds) in BOUNDS {
            if let Some(bound) = schema.get(keyword).and_then(Value::as_number)
                && !compare(number, bound).is_none_or(holds)
            {
                self.report(at, format!("expected {words} {bound}, got {number}"));
            }
        }
    }

    fn branches(&mut self, schema: &Map<String, Value>, value: &Value, at: &Path<'_>, depth: usize) {
        for (keyword, exactly_one) in [("anyOf", false), ("oneOf", true)] {
            let Some(Value::Array(branches)) = schema.get(keyword) else { continue };
            let mut failed = Vec::new();
            for branch in branches {
                let mut attempt = Validation { problems: Vec::new(), lenient: self.lenient };
                attempt.value(branch, value, at, depth + 1);
                failed.push((branch, attempt.problems));
            }
            let matching = failed.iter().filter(|(_, problems)| problems.is_empty()).count();
            match matching {
                0 => self.no_branch(failed, value, at),
                1 => {}
                several if exactly_one && !self.lenient => {
                    self.report(
                        at,
                        format!("expected exactly one of the allowed forms, got a value that fits {several}"),
                    );
                }
                _ => {}
            }
        }
    }

    /// No branch fits: if one alone is for values of this type, its problems say most; otherwise the types do.
    fn no_branch(&mut self, mut failed: Vec<(&Value, Vec<Problem>)>, value: &Value, at: &Path<'_>) {
        let mut expected: Vec<&str> = Vec::new();
        for name in failed.iter().flat_map(|(branch, _)| types_of(branch)) {
            if !expected.contains(&name) {
                expected.push(name);
            }
        }
        let untyped = failed.iter().any(|(branch, _)| types_of(branch).is_empty());
        failed.retain(|(branch, _)| {
            let types = types_of(branch);
            types.is_empty() || types.iter().any(|name| is_type(value, name))
        });
        match failed.as_slice() {
            [(_, problems)] => {
                for problem in problems {
                    if self.problems.len() < PROBLEMS {
                        self.problems.push(problem.clone());
                    }
                }
            }
            [] if !untyped => {
                self.report(at, format!("expected {}, got {}", expected.join(" or "), type_name(value)));
            }
            _ => {
                let why: Vec<String> =
                    failed.iter().filter_map(|(_, p)| p.first()).map(problem_in_branch).collect();
                self.report(at, format!("fits none of the allowed forms ({})", why.join("; ")));
            }
        }
    }
}

fn problem_in_branch(problem: &Problem) -> String {
    problem.to_string().trim_end_matches('.').to_owned()
}

/// The names in `type`, if the schema has it.
fn types(schema: &Map<String, Value>) -> Option<impl Iterator<Item = &str>> {
    let names = match schema.get("type")? {
        Value::Array(names) => names.as_slice(),
        name => std::slice::from_ref(name),
    };
    Some(names.iter().filter_map(Value::as_str))
}

/// The names in `required`.
pub(crate) fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether `type` names this type, alone or among others.
fn has_type(schema: &Map<String, Value>, name: &str) -> bool {
    types(schema).is_some_and(|mut types| types.any(|each| each == name))
}

pub(crate) fn types_of(schema: &Value) -> Vec<&str> {
    schema.as_object().and_then(types).into_iter().flatten().collect()
}

/// Whether a value is of a JSON Schema type. `1.0` is an integer.
fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(is_integer),
        name => type_name(value) == name,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integer(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_integer(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Whether two values are equal as JSON: `1` and `1.0` are, and the order of properties does not count.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Exact, also where an integer is too large for a float to hold.
fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_float(b.as_f64()?, a).map(Ordering::reverse),
        (None, Some(b)) => compare_float(a.as_f64()?, b),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn compare_float(float: f64, integer: i128) -> Option<Ordering> {
    match float.partial_cmp(&(integer as f64))? {
        // Equal after rounding: the float is whole and near, so it fits.
        Ordering::Equal => Some((float as i128).cmp(&integer)),
        order => Some(order),
    }
}

/// A value as JSON, cut at 60 characters.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
