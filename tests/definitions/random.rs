//! Generated schemas and values, compared with a full implementation.

use bobbin::definitions::schema::{check, validate, with_defaults};
use serde_json::{Map, Value, json};

use crate::rng::Rng;

const NAMES: [&str; 4] = ["a", "b", "c", "long name"];

fn number(rng: &mut Rng) -> Value {
    match rng.below(6) {
        0 => json!(rng.below(5) as f64),
        1 => json!(rng.below(5) as f64 + 0.5),
        2 => json!(-(rng.below(5) as i64)),
        3 => json!(*rng.pick(&[u64::MAX, 1 << 53, (1 << 53) + 1])),
        _ => json!(rng.below(5)),
    }
}

fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.below(if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => json!(rng.once_in(2)),
        2 | 3 => number(rng),
        4 => json!(*rng.pick(&["", "a", "ab", "äöü", "👩‍👧"])),
        5 => Value::Array((0..rng.below(4)).map(|_| value(rng, depth - 1)).collect()),
        _ => {
            let mut object = Map::new();
            for _ in 0..rng.below(4) {
                object.insert((*rng.pick(&NAMES)).into(), value(rng, depth - 1));
            }
            Value::Object(object)
        }
    }
}

fn schema(rng: &mut Rng, depth: usize) -> Value {
    if rng.once_in(20) {
        return json!(!rng.once_in(3));
    }
    let mut schema = Map::new();
    let types = ["string", "number", "integer", "boolean", "null", "array", "object"];
    match rng.below(4) {
        0 => {}
        1 => drop(schema.insert("type".into(), json!([*rng.pick(&types[..3]), *rng.pick(&types[3..])]))),
        _ => drop(schema.insert("type".into(), json!(*rng.pick(&types)))),
    }
    if rng.once_in(8) {
        schema.insert("enum".into(), json!([value(rng, 1), value(rng, 1), value(rng, 1)]));
    }
    if rng.once_in(12) {
        schema.insert("const".into(), value(rng, 1));
    }
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        if rng.once_in(6) {
            schema.insert(keyword.into(), number(rng));
        }
    }
    for keyword in ["minLength", "maxLength", "minItems", "maxItems"] {
        if rng.once_in(6) {
            schema.insert(keyword.into(), json!(rng.below(4)));
        }
    }
    if depth > 0 {
        nested(rng, depth - 1, &mut schema);
    }
    Value::Object(schema)
}

fn nested(rng: &mut Rng, depth: usize, into: &mut Map<String, Value>) {
    if rng.once_in(2) {
        let mut properties = Map::new();
        for name in &NAMES[..rng.below(NAMES.len())] {
            properties.insert((*name).into(), schema(rng, depth));
        }
        let required: Vec<_> = properties.keys().filter(|_| rng.once_in(2)).cloned().collect();
        into.insert("properties".into(), Value::Object(properties));
        into.insert("required".into(), json!(required));
    }
    if rng.once_in(3) {
        let others = if rng.once_in(2) { json!(false) } else { schema(rng, depth) };
        into.insert("additionalProperties".into(), others);
    }
    if rng.once_in(3) {
        into.insert("items".into(), schema(rng, depth));
    }
    for keyword in ["anyOf", "oneOf"] {
        if rng.once_in(5) {
            let branches: Vec<_> = (0..1 + rng.below(3)).map(|_| schema(rng, depth)).collect();
            into.insert(keyword.into(), Value::Array(branches));
        }
    }
}

#[test]
fn agrees_with_a_full_implementation_on_generated_cases() {
    let mut rng = Rng(20_261_121);
    let (mut valid, mut invalid) = (0, 0);
    for case in 0..2_500 {
        let schema = schema(&mut rng, 3);
        let reference = jsonschema::draft202012::new(&schema).unwrap();
        for _ in 0..12 {
            let value = value(&mut rng, 3);
            let problems = validate(&schema, &value);
            let expected = reference.is_valid(&value);
            assert_eq!(problems.is_empty(), expected, "case {case}: {schema} with {value}: {problems:?}");
            if expected { valid += 1 } else { invalid += 1 }
        }
    }
    // Neither answer may be so rare that the comparison says nothing about it.
    assert!(valid > 5_000 && invalid > 5_000, "{valid} valid, {invalid} invalid");
}

#[test]
fn nothing_that_is_handed_in_makes_it_panic() {
    let mut rng = Rng(7);
    for _ in 0..20_000 {
        // A value as a schema: mostly nonsense.
        let mut nonsense = value(&mut rng, 3);
        if let Value::Object(object) = &mut nonsense {
            for keyword in
                ["type", "properties", "items", "required", "anyOf", "enum", "minimum", "maxLength"]
            {
                if rng.once_in(3) {
                    object.insert(keyword.into(), value(&mut rng, 2));
                }
            }
        }
        let value = value(&mut rng, 2);
        check(&nonsense);
        bobbin::definitions::schema::strict(&nonsense);
        validate(&nonsense, &with_defaults(&nonsense, value).unwrap());
    }
}
