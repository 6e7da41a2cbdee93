//! What a model and a developer are told about schemas.

use bobbin::definitions::schema::{check, strict, validate, with_defaults};
use serde_json::{Value, json};

fn told(schema: &Value, value: &Value) -> Vec<String> {
    validate(schema, value).iter().map(ToString::to_string).collect()
}

#[test]
fn a_problem_says_where_and_what() {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["text", "size"],
        "properties": {
            "text": { "type": "string", "minLength": 2, "maxLength": 3 },
            "size": { "enum": ["s", "m"] },
            "count": { "type": "integer", "minimum": 1, "exclusiveMaximum": 9 },
            "kind": { "const": "x" },
            "list": { "type": "array", "maxItems": 2, "items": { "type": ["string", "null"] } },
            "place": { "type": "object", "properties": { "lat": { "type": "number" } }, "required": ["lat"] },
            "either": { "anyOf": [{ "type": "string" }, { "type": "object", "properties": { "id": { "type": "integer" } } }] },
        },
    });
    let cases = [
        (json!({ "text": 5, "size": "s" }), vec!["text: expected string, got integer."]),
        (json!({ "text": 5.5, "size": "s" }), vec!["text: expected string, got number."]),
        (json!({ "size": "s" }), vec!["text: required but missing."]),
        (
            json!({ "text": "", "size": "xl" }),
            vec![
                "text: expected at least 2 characters, got 0.",
                "size: expected one of \"s\", \"m\", got \"xl\".",
            ],
        ),
        (json!({ "text": "äöüß", "size": "s" }), vec!["text: expected at most 3 characters, got 4."]),
        (
            json!({ "text": "ab", "size": "s", "colour": 1 }),
            vec!["colour: unknown property (known: text, size, count, kind, list, place, either)."],
        ),
        (json!({ "text": "ab", "size": "s", "count": 0 }), vec!["count: expected at least 1, got 0."]),
        (json!({ "text": "ab", "size": "s", "count": 9 }), vec!["count: expected less than 9, got 9."]),
        (json!({ "text": "ab", "size": "s", "count": 1.5 }), vec!["count: expected integer, got number."]),
        (json!({ "text": "ab", "size": "s", "count": 3.0 }), vec![]),
        (json!({ "text": "ab", "size": "s", "kind": "y" }), vec!["kind: expected \"x\", got \"y\"."]),
        (
            json!({ "text": "ab", "size": "s", "list": ["a", 1, null] }),
            vec!["list: expected at most 2 items, got 3.", "list[1]: expected string or null, got integer."],
        ),
        (json!({ "text": "ab", "size": "s", "place": {} }), vec!["place.lat: required but missing."]),
        (
            json!({ "text": "ab", "size": "s", "place": { "lat": true } }),
            vec!["place.lat: expected number, got boolean."],
        ),
        (
            json!({ "text": "ab", "size": "s", "either": 1 }),
            vec!["either: expected string or object, got integer."],
        ),
        (
            json!({ "text": "ab", "size": "s", "either": { "id": "x" } }),
            vec!["either.id: expected integer, got string."],
        ),
        (json!([]), vec!["expected object, got array."]),
    ];
    for (value, expected) in cases {
        assert_eq!(told(&schema, &value), expected, "{value}");
    }
}

#[test]
fn a_long_list_of_problems_is_cut() {
    let schema = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(validate(&schema, &json!(vec![1; 100_000])).len(), 16);
}

/// Steps are not seen from outside, so this looks at what a check says: it gives up where schema and value together are too
/// much work, and at no other place.
#[test]
fn what_takes_too_much_work_is_refused_with_what_to_do() {
    let branches: Vec<Value> = (0..3_500).map(|n| json!({ "const": format!("v{n}") })).collect();
    for keyword in ["anyOf", "oneOf"] {
        let schema = json!({ "type": "array", "items": { keyword: branches } });
        let some = json!(vec!["v3499"; 20]);
        assert_eq!(told(&schema, &some), Vec::<String>::new());
        let many = json!(vec!["v3499"; 200_000]);
        let expected = "too many values to hold against so many alternatives: send fewer of them at once.";
        assert_eq!(told(&schema, &many), [expected], "{keyword}");
    }
    let choices: Vec<String> = (0..5_000).map(|n| format!("v{n}")).collect();
    let schema = json!({ "type": "array", "items": { "enum": choices } });
    assert_eq!(told(&schema, &json!(vec!["v4999"; 500])), Vec::<String>::new());
    assert_eq!(told(&schema, &json!(vec!["v4999"; 200_000])).len(), 1);
    // Large, and no work: each item is looked at once.
    let schema = json!({ "type": "array", "items": { "type": "integer", "minimum": 0 } });
    assert_eq!(told(&schema, &json!(vec![1; 600_000])), Vec::<String>::new());
}

#[test]
fn texts_about_problems_are_short_whatever_is_wrong() {
    let names: Vec<String> = (0..2_000).map(|n| format!("name-{n}")).collect();
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({}))).collect();
    let branches: Vec<Value> = names.iter().map(|name| json!({ "const": name })).collect();
    let long = "x".repeat(1_000_000);
    let closed = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    for (schema, value, part) in [
        (json!({ "enum": names }), json!(long), "\"name-31\" and 1968 more, got \"xxx"),
        (closed, json!({ long.as_str(): 1 }), "name-31 and 1968 more)"),
        (json!({ "type": names }), json!(long), "name-31 and 1968 more, got string"),
        (json!({ "anyOf": branches }), json!(long), "; and 1992 more)"),
        (json!({ "const": long }), json!([long]), "…, got [\"xxx"),
        (json!({ "required": [long] }), json!({}), "x…: required but missing."),
    ] {
        let told = told(&schema, &value);
        assert!(told.len() == 1 && told[0].contains(part), "{part}: {told:?}");
        assert!(told[0].len() < 4_000, "{} bytes", told[0].len());
    }
}

#[test]
fn an_alternative_among_several_says_what_is_wrong_with_it() {
    let inner = json!({ "anyOf": [{ "const": 1 }, { "const": 2 }] });
    let schema = json!({ "anyOf": [{ "minimum": 7 }, inner, { "type": "string" }] });
    assert_eq!(
        told(&schema, &json!(3)),
        ["fits none of the allowed forms (expected at least 7, got 3; fits none of the allowed forms)."]
    );
    let schema = json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 2 }, { "minimum": 9 }] });
    assert_eq!(
        told(&schema, &json!(3)),
        ["expected exactly one of the allowed forms, got a value that fits several."]
    );
    assert!(told(&schema, &json!(1)).is_empty());
}

#[test]
fn defaults_that_take_too_much_are_refused() {
    let default = json!("x".repeat(1_000));
    let item = json!({ "type": "object", "properties": { "a": { "default": default } } });
    let schema = json!({ "type": "array", "items": item });
    assert_eq!(with_defaults(&schema, json!(vec![json!({}); 1_000])).unwrap()[999]["a"], default);
    assert_eq!(with_defaults(&schema, json!(vec![json!({}); 100_000])).unwrap_err().len(), 1);
}

#[test]
fn a_catalog_schema_uses_the_list_of_keywords_alone() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let cases = [
        (json!({ "type": "string" }), "type: arguments are an object: this must be \"object\"."),
        (json!({}), "type: arguments are an object: this must be \"object\"."),
        (json!("object"), "type: arguments are an object: this must be \"object\"."),
        (
            object(json!({ "a": { "type": "string", "pattern": "^x" } })),
            "properties.a.pattern: `pattern` is not supported:",
        ),
        (
            object(json!({ "a": { "type": "text" } })),
            "properties.a.type: \"text\" is not a type; types are string,",
        ),
        (object(json!({ "a": "string" })), "properties.a: must be a schema (an object)."),
        (
            object(json!({ "a": { "anyOf": [{ "typ": 1 }] } })),
            "properties.a.anyOf[0].typ: `typ` is not supported;",
        ),
        (
            object(json!({ "a": { "type": "array", "items": [1] } })),
            "properties.a.items: must be a schema (an object).",
        ),
        (object(json!({ "a": { "enum": [] } })), "properties.a.enum: must be a list of at least one value."),
        (
            object(json!({ "a": { "minLength": -1 } })),
            "properties.a.minLength: must be a whole number, not negative.",
        ),
        (
            object(json!({ "a": { "type": "integer", "default": "1" } })),
            "properties.a.default: does not fit its own schema: expected integer, got string.",
        ),
        (
            object(json!({ "a": { "minimum": 2, "maximum": 1 } })),
            "properties.a.minimum: is more than `maximum`: nothing fits.",
        ),
        (
            json!({ "type": "object", "required": ["a"] }),
            "required: names `a`, which is not among the properties.",
        ),
    ];
    for (schema, expected) in cases {
        let problems = check(&schema);
        assert_eq!(problems.len(), 1, "{schema}: {problems:?}");
        assert!(problems[0].to_string().starts_with(expected), "{}", problems[0]);
    }
    let mut deep = json!({ "type": "string" });
    for _ in 0..11 {
        deep = json!({ "type": "array", "items": deep });
    }
    assert_eq!(check(&object(json!({ "a": deep }))).len(), 1);
}

#[test]
fn providers_are_shown_closed_objects_at_every_level() {
    let schema = json!({
        "type": "object",
        "properties": {
            "list": { "type": "array", "items": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] } },
            "either": { "anyOf": [
                { "type": "null" },
                { "type": ["object", "null"], "properties": { "b": { "type": "number" } }, "required": ["b"], "additionalProperties": true },
            ] },
        },
        "required": ["list", "either"],
    });
    let (shown, strict_mode) = strict(&schema);
    assert!(strict_mode);
    assert_eq!(shown["additionalProperties"], false);
    assert_eq!(shown["properties"]["list"]["items"]["additionalProperties"], false);
    assert_eq!(shown["properties"]["either"]["anyOf"][1]["additionalProperties"], false);
}

#[test]
fn strict_mode_is_asked_for_only_where_a_provider_takes_it() {
    let with = |property: Value| {
        strict(&json!({ "type": "object", "properties": { "a": property }, "required": ["a"] }))
    };
    assert!(with(json!({ "type": "string" })).1);
    assert!(with(json!({ "enum": ["a", "b"] })).1);
    let cases = [
        json!({ "type": "object", "properties": { "b": { "type": "string" } } }),
        json!({ "type": "array", "items": { "type": "object", "properties": { "b": {} } } }),
        json!({ "anyOf": [{ "type": "object", "properties": { "b": { "type": "null" } } }] }),
        json!({ "type": "object" }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "string", "minLength": 1 }),
        json!({ "type": "string", "default": "x" }),
        json!({ "type": "array" }),
        json!({}),
        json!(true),
    ];
    for property in cases {
        assert!(!with(property.clone()).1, "{property}");
    }
    // An object that lists no properties stays open: closed, it could only be empty.
    let (shown, _) = with(json!({ "type": "object", "additionalProperties": { "type": "string" } }));
    assert_eq!(shown["properties"]["a"]["additionalProperties"], json!({ "type": "string" }));
    // A tool without arguments.
    assert_eq!(
        strict(&json!({ "type": "object" })),
        (json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }), true)
    );
}

#[test]
fn absent_properties_get_their_defaults_at_every_level() {
    let point = json!({ "type": "object", "properties": { "x": { "type": "integer", "default": 1 }, "y": { "type": "integer" } } });
    let schema = json!({ "type": "object", "properties": {
        "unit": { "type": "string", "default": "m" },
        "from": point,
        "list": { "type": "array", "items": point },
        "either": { "anyOf": [{ "type": "string" }, point] },
    } });
    let cases = [
        (json!({}), json!({ "unit": "m" })),
        (json!({ "unit": "km" }), json!({ "unit": "km" })),
        (json!({ "unit": null, "from": {} }), json!({ "unit": null, "from": { "x": 1 } })),
        (
            json!({ "unit": "", "list": [{}, { "x": 2 }] }),
            json!({ "unit": "", "list": [{ "x": 1 }, { "x": 2 }] }),
        ),
        (json!({ "unit": "", "either": { "y": 3 } }), json!({ "unit": "", "either": { "y": 3, "x": 1 } })),
    ];
    for (value, expected) in cases {
        assert_eq!(with_defaults(&schema, value).unwrap(), expected);
    }
}
