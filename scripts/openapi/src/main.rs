//! Generates the description of the HTTP API (OpenAPI 3.1) from the table of routes and the types of bodies.
//! It is committed, so that reviews show changes of the API, and served at `/openapi.json`.
//!
//! `cargo run -p bobbin-openapi` writes it, and `-- --check` checks that it is fresh.
//!
//! * `operation`: the description of one request. `routes`: all requests. `parameters`: their query
//!   parameters.
//! * `types`: the bodies of requests. They exist only for their schemas: the runtime reads fields one by one.
//!   The bodies of responses are the types of `bobbin_protocols::responses`.

#![allow(
    clippy::indexing_slicing,
    reason = "a value of JSON that is indexed by a name makes what is missing"
)]

mod operation;
mod parameters;
mod routes;
#[allow(dead_code, reason = "their schemas are what they are for")]
mod types;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use bobbin_definitions::error::Code;
use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use operation::Operation;

/// The location of named schemas.
const COMPONENTS: &str = "/components/schemas";

/// Writes `schemas/openapi.json`; with `check`, fails if the committed file differs.
fn main() -> Result<()> {
    run(std::env::args().nth(1).is_some_and(|argument| argument == "--check"))
}

fn run(check: bool) -> Result<()> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas/openapi.json");
    let text = serde_json::to_string_pretty(&document())? + "\n";
    if fs::read_to_string(&path).unwrap_or_default() == text {
        return Ok(());
    }
    if check {
        bail!("schemas/openapi.json is out of date: run `cargo run -p bobbin-openapi`");
    }
    fs::write(&path, text).context("cannot write schemas/openapi.json")
}

/// The generators of requests and answers: in an answer, a field that may be `null` is still required.
struct Generators {
    request: SchemaGenerator,
    answer: SchemaGenerator,
}

impl Generators {
    fn new() -> Generators {
        let of = |contract: Contract| {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = COMPONENTS.into();
                settings.meta_schema = None;
                settings.contract = contract.clone();
            });
            settings.into_generator()
        };
        Generators { request: of(Contract::Deserialize), answer: of(Contract::Serialize) }
    }

    /// The named schemas of both. No name may have two meanings.
    fn components(mut self) -> Map<String, Value> {
        let mut all = self.answer.take_definitions(true);
        for (name, schema) in self.request.take_definitions(true) {
            if let Some(other) = all.get(&name) {
                assert_eq!(
                    other, &schema,
                    "{name} is not the same in requests and in answers: give it two names"
                );
            }
            all.insert(name, schema);
        }
        all.sort_keys();
        all
    }
}

fn document() -> Value {
    let mut document = whole();
    without_true(&mut document);
    for_clients(&mut document);
    document
}

/// Removes the sections of the specification and the line breaks from descriptions. The comments of types in
/// other crates have them.
fn for_clients(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "description" => *text = plain(text),
                    field => for_clients(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(for_clients),
        _ => {}
    }
}

/// A description in one line, without ` (spec §…)`.
fn plain(text: &str) -> String {
    let mut text = text.split('\n').collect::<Vec<_>>().join(" ");
    while let Some((before, rest)) = text.split_once(" (spec §") {
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        text = format!("{before}{after}");
    }
    text
}

/// Writes the schema that accepts anything as `{}` instead of `true`, which fewer client generators support.
fn without_true(value: &mut Value) {
    let anything = |schema: &mut Value| {
        if *schema == Value::Bool(true) {
            *schema = json!({});
        }
    };
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                properties.values_mut().for_each(anything);
            }
            for place in ["items", "schema"] {
                if let Some(schema) = fields.get_mut(place) {
                    anything(schema);
                }
            }
            fields.values_mut().for_each(without_true);
        }
        Value::Array(items) => items.iter_mut().for_each(without_true),
        _ => {}
    }
}

fn whole() -> Value {
    let mut generators = Generators::new();
    let mut paths = Map::new();
    for operation in routes::all() {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_ascii_lowercase()] = described(&operation, &mut generators);
    }
    generators.answer.subschema_for::<bobbin_protocols::responses::frames::Frame>();
    let error = generators.answer.subschema_for::<bobbin_definitions::error::ErrorBody>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bobbin",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Threads of agents, with their messages, values, files, effects and pending work. docs/http.md is the guide.",
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "key": [] }],
        "tags": routes::TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key of the deployment, or a token from POST /api/tokens.",
                },
            },
            "responses": {
                "Error": {
                    "description": "The error, and what to do about it. `code` is stable.",
                    "content": { "application/json": { "schema": error } },
                },
            },
            "schemas": with_types(generators.components()),
        },
    })
}

/// Moves each frame's `type` into its own schema and adds a discriminator. Client generators need branches
/// that are only references.
fn with_types(mut schemas: Map<String, Value>) -> Map<String, Value> {
    let Some(frames) = schemas.get("Frame").and_then(|frame| frame["oneOf"].as_array()).cloned() else {
        return schemas;
    };
    let mut mapping = Map::new();
    let mut references = Vec::new();
    for frame in frames {
        let (Some(reference), Some(kind)) =
            (frame["$ref"].as_str(), frame["properties"]["type"]["const"].as_str())
        else {
            continue;
        };
        if let Some(schema) = reference.rsplit('/').next().and_then(|name| schemas.get_mut(name)) {
            let mut properties =
                Map::from_iter([("type".to_owned(), json!({ "type": "string", "const": kind }))]);
            properties.extend(schema["properties"].as_object().cloned().unwrap_or_default());
            let mut required = vec![json!("type")];
            required.extend(schema["required"].as_array().cloned().unwrap_or_default());
            schema["properties"] = properties.into();
            schema["required"] = required.into();
            if let Some(text) = frame.get("description") {
                schema["description"] = text.clone();
            }
        }
        references.push(json!({ "$ref": reference }));
        mapping.insert(kind.to_owned(), reference.into());
    }
    schemas["Frame"]["oneOf"] = references.into();
    schemas["Frame"]["discriminator"] = json!({ "propertyName": "type", "mapping": mapping });
    schemas
}

/// One operation.
fn described(operation: &Operation, generators: &mut Generators) -> Value {
    let mut all = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
    });
    if let Some(text) = operation.description {
        all["description"] = text.into();
    }
    let parameters = parameters::of(operation);
    if !parameters.is_empty() {
        all["parameters"] = parameters.into();
    }
    if let Some(body) = &operation.body {
        let content = body.content.iter().map(|(kind, schema)| {
            let schema =
                schema.map_or_else(|| json!({}), |of| json!({ "schema": of(&mut generators.request) }));
            ((*kind).to_owned(), schema)
        });
        all["requestBody"] = json!({ "required": body.required, "content": content.collect::<Map<_, _>>() });
    }
    let mut answers = Map::new();
    for answer in &operation.answers {
        let mut response = json!({ "description": answer.description });
        if !answer.content.is_empty() {
            let content = answer.content.iter().map(|(kind, schema)| {
                let schema =
                    schema.map_or_else(|| json!({}), |of| json!({ "schema": of(&mut generators.answer) }));
                ((*kind).to_owned(), schema)
            });
            response["content"] = content.collect::<Map<_, _>>().into();
        }
        answers.insert(answer.status.to_string(), response);
    }
    answers.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Error" }));
    all["responses"] = answers.into();
    if !operation.errors.is_empty() {
        all["x-bobbin-errors"] = operation.errors.iter().map(|code: &Code| json!(code)).collect();
    }
    all["x-bobbin-scope"] = operation.scope.as_str().into();
    if operation.scope == operation::Scope::Anybody {
        all["security"] = json!([]);
    }
    all
}

#[cfg(test)]
mod tests;
