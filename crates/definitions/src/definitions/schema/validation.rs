//! Validates a value against a schema, within a limit of steps.
//!
//! The work grows with the schema and with the value: 3,000 alternatives for each of 10,000 items are 30
//! million comparisons. Therefore steps are counted, and a check that runs out of them reports this instead
//! of a result. The search for a matching alternative creates no texts. Texts are created once, for the
//! problems that are kept.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::definitions::schema::{DEPTH, Problem, is_type, required, type_name, types, types_of, words};

/// Maximum number of problems in one report; a long list does not help a model.
const PROBLEMS: usize = 16;
/// Alternatives whose mismatch is explained.
const ALTERNATIVES: usize = 8;
/// Steps of one check. A step compares one name, value or alternative, and takes about 50 ns.
const STEPS: usize = 8_000_000;
/// Steps for a value: the check looks for this many keywords.
const VALUE_STEPS: usize = 8;
/// Characters that are counted in one step.
const STEP_CHARS: usize = 64;

/// The keywords that a schema may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keywords {
    /// The keywords of [the list](super).
    Listed,
    /// Any keyword. The check ignores keywords that it does not know.
    Any,
}

/// A check of one value, or of several that share its steps.
pub(super) struct Validation {
    keywords: Keywords,
    /// Remaining steps; `None` if they did not suffice.
    steps: Option<usize>,
    problems: Vec<Problem>,
    /// Maximum number of problems to keep. 0: the check only determines whether the value fits.
    most: usize,
    failed: bool,
    /// Whether a problem is about one alternative among several.
    within: bool,
}

impl Validation {
    pub(super) fn new(keywords: Keywords) -> Validation {
        Validation {
            keywords,
            steps: Some(STEPS),
            problems: Vec::new(),
            most: PROBLEMS,
            failed: false,
            within: false,
        }
    }

    /// The problems of a value.
    pub(super) fn problems(mut self, schema: &Value, value: &Value) -> Vec<Problem> {
        self.value(schema, value, &Path::Root, 0);
        if self.problems.is_empty() && self.is_spent() {
            self.problems.push(too_much());
        }
        self.problems
    }

    /// Whether a value fits; `None` if the steps do not suffice.
    pub(super) fn fits(&mut self, schema: &Value, value: &Value) -> Option<bool> {
        let attempt = self.attempt(0, |attempt| attempt.value(schema, value, &Path::Root, 0));
        if attempt.is_spent() { None } else { Some(!attempt.failed) }
    }

    /// Spends steps on other work of the same check. Returns whether they sufficed.
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.and_then(|left| left.checked_sub(steps));
        self.steps.is_some()
    }

    pub(super) const fn is_spent(&self) -> bool {
        self.steps.is_none()
    }

    /// Whether no further step can change the result.
    fn is_settled(&self) -> bool {
        self.is_spent() || (self.failed && self.problems.len() >= self.most)
    }

    fn report(&mut self, at: &Path<'_>, message: impl FnOnce() -> String) {
        self.failed = true;
        if self.problems.len() < self.most {
            self.problems.push(Problem { path: at.to_string(), message: message() });
        }
    }

    /// A separate check that uses the steps of this one.
    fn attempt(&mut self, most: usize, check: impl FnOnce(&mut Validation)) -> Validation {
        let mut attempt =
            Validation { steps: self.steps, most, within: true, ..Validation::new(self.keywords) };
        check(&mut attempt);
        self.steps = attempt.steps;
        attempt
    }

    fn value(&mut self, schema: &Value, value: &Value, at: &Path<'_>, depth: usize) {
        if self.is_settled() || !self.spend(VALUE_STEPS) {
            return;
        }
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return self.report(at, || "no value is allowed here".to_owned()),
            _ => return,
        };
        // `check` refuses deeper schemas. This protects the stack against an unchecked schema.
        if depth > DEPTH * 4 {
            return self.report(at, || "the schema is nested too deeply".to_owned());
        }
        if let Some(mut names) = types(schema)
            && !names.any(|name| self.spend(1) && is_type(value, name))
        {
            return self.report(at, || {
                let names: Vec<&str> = types(schema).into_iter().flatten().collect();
                expected(&names, value)
            });
        }
        if let Some(constant) = schema.get("const")
            && !self.same(constant, value)
        {
            self.report(at, || format!("expected {}, got {}", words::brief(constant), words::brief(value)));
        }
        if let Some(Value::Array(choices)) = schema.get("enum")
            && !choices.iter().any(|choice| self.same(choice, value))
        {
            self.report(at, || {
                let choices = words::list(choices.iter().map(words::brief), ", ");
                format!("expected one of {choices}, got {}", words::brief(value))
            });
        }
        match value {
            Value::Object(object) => self.object(schema, object, at, depth),
            Value::Array(items) => self.array(schema, items, at, depth),
            Value::String(text) => self.text(schema, text, at),
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
        for name in required(schema) {
            if self.is_settled() || !self.spend(1) {
                return;
            }
            if !object.contains_key(name) {
                self.report(&Path::Property(at, name), || "required but missing".to_owned());
            }
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let others = match self.keywords == Keywords::Any && schema.contains_key("patternProperties") {
            true => None,
            false => schema.get("additionalProperties"),
        };
        for (name, value) in object {
            if self.is_settled() || !self.spend(1) {
                return;
            }
            let here = Path::Property(at, name);
            match (known.and_then(|known| known.get(name)), others) {
                (Some(property), _) => self.value(property, value, &here, depth + 1),
                (None, Some(Value::Bool(false))) => self.report(&here, || unknown(known)),
                (None, Some(others)) => self.value(others, value, &here, depth + 1),
                (None, None) => {}
            }
        }
    }

    fn array(&mut self, schema: &Map<String, Value>, items: &[Value], at: &Path<'_>, depth: usize) {
        self.size(schema, ["minItems", "maxItems"], "items", at, || items.len());
        if let Some(each) = schema.get("items")
            && !(self.keywords == Keywords::Any && schema.contains_key("prefixItems"))
        {
            for (index, item) in items.iter().enumerate() {
                if self.is_settled() {
                    return;
                }
                self.value(each, item, &Path::Item(at, index), depth + 1);
            }
        }
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str, at: &Path<'_>) {
        const BOUNDS: [&str; 2] = ["minLength", "maxLength"];
        if BOUNDS.iter().any(|bound| schema.contains_key(*bound)) && self.spend(text.len() / STEP_CHARS) {
            self.size(schema, BOUNDS, "characters", at, || text.chars().count());
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
            self.report(at, || format!("expected at least {bound} {unit}, got {}", size()));
        }
        if let Some(bound) = bound(most).filter(|bound| beyond(bound, Ordering::Greater)) {
            self.report(at, || format!("expected at most {bound} {unit}, got {}", size()));
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
                self.report(at, || format!("expected {words} {bound}, got {number}"));
            }
        }
    }

    fn branches(&mut self, schema: &Map<String, Value>, value: &Value, at: &Path<'_>, depth: usize) {
        for (keyword, exactly_one) in [("anyOf", false), ("oneOf", true)] {
            let Some(Value::Array(branches)) = schema.get(keyword) else { continue };
            if self.is_settled() {
                return;
            }
            let enough = if exactly_one && self.keywords == Keywords::Listed { 2 } else { 1 };
            let fits = |branch: &&Value| {
                !self.attempt(0, |attempt| attempt.value(branch, value, at, depth + 1)).failed
            };
            let fitting = branches.iter().filter(fits).take(enough).count();
            // Without enough steps, the matching alternatives are unknown.
            match fitting {
                _ if self.is_spent() => {}
                0 => self.no_branch(branches, value, at, depth),
                1 => {}
                _ => self.report(at, || {
                    "expected exactly one of the allowed forms, got a value that fits several".to_owned()
                }),
            }
        }
    }

    /// Reports that no branch fits. If exactly one branch accepts this type, its problems are the most useful
    /// report; otherwise the types are.
    fn no_branch(&mut self, branches: &[Value], value: &Value, at: &Path<'_>, depth: usize) {
        self.failed = true;
        if self.is_settled() {
            return;
        }
        let is_for = |branch: &&Value| {
            let types = types_of(branch);
            types.is_empty() || types.iter().any(|name| is_type(value, name))
        };
        let candidates: Vec<&Value> = branches.iter().filter(is_for).collect();
        match candidates.as_slice() {
            [] => {
                let mut names: Vec<&str> = Vec::new();
                for name in branches.iter().flat_map(types_of).map(known_type) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                self.report(at, || expected(&names, value));
            }
            [branch] => self.value(branch, value, at, depth + 1),
            // Nested alternatives are not explained again for each of the alternatives around them.
            _ if self.within => self.report(at, || "fits none of the allowed forms".to_owned()),
            several => {
                let mut why = Vec::new();
                for branch in several.iter().take(ALTERNATIVES) {
                    let attempt = self.attempt(1, |attempt| attempt.value(branch, value, at, depth + 1));
                    why.extend(
                        attempt
                            .problems
                            .first()
                            .map(|problem| problem.to_string().trim_end_matches('.').to_owned()),
                    );
                }
                self.report(at, || {
                    let more = match several.len().saturating_sub(ALTERNATIVES) {
                        0 => String::new(),
                        more => format!("; and {more} more"),
                    };
                    format!("fits none of the allowed forms ({}{more})", why.join("; "))
                });
            }
        }
    }

    /// Whether two values are equal as JSON: `1` equals `1.0`, and the order of properties is irrelevant.
    fn same(&mut self, a: &Value, b: &Value) -> bool {
        self.spend(1)
            && match (a, b) {
                (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
                (Value::Array(a), Value::Array(b)) => {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
                }
                (Value::Object(a), Value::Object(b)) => {
                    a.len() == b.len()
                        && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| self.same(a, b)))
                }
                _ => a == b,
            }
    }
}

/// The problem of a value that needs more steps than one check has.
pub(super) fn too_much() -> Problem {
    let message = "too many values to hold against so many alternatives: send fewer of them at once";
    Problem { path: String::new(), message: message.to_owned() }
}

fn expected(types: &[&str], value: &Value) -> String {
    let types = words::list(types.iter().map(|name| words::name(name)), " or ");
    format!("expected {types}, got {}", type_name(value))
}

/// A type of JSON Schema; foreign schemas may name others.
fn known_type(name: &str) -> &'static str {
    const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "null", "array", "object"];
    TYPES.into_iter().find(|known| *known == name).unwrap_or("another type")
}

fn unknown(known: Option<&Map<String, Value>>) -> String {
    let hint = match known {
        Some(known) if !known.is_empty() => words::list(known.keys().map(|name| words::name(name)), ", "),
        _ => "none are".to_owned(),
    };
    format!("unknown property (known: {hint})")
}

/// The position of the validation in a value. It becomes text only for a problem.
enum Path<'a> {
    Root,
    Property(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Property(Path::Root, name) => f.write_str(&words::name(name)),
            Path::Property(parent, name) => write!(f, "{parent}.{}", words::name(name)),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
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
