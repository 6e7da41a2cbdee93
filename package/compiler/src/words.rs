//! Error messages about the shape of a file. serde's messages are for Rust programmers, these for the authors
//! of files.

use bobbin_definitions::validate::nearest;

pub(super) const MISSING: &str = "required but missing";

pub(super) fn quoted<'a>(message: &'a str, before: &str) -> Option<&'a str> {
    message.strip_prefix(before)?.split('`').next()
}

/// The names in backquotes after "expected".
fn expected(message: &str) -> Vec<&str> {
    let list = message.split_once("expected ").map(|(_, list)| list).unwrap_or_default();
    list.split('`').skip(1).step_by(2).collect()
}

/// The nearest known field to an unknown one.
pub(super) fn meant(message: &str) -> Option<&str> {
    let name = quoted(message, "unknown field `")?;
    if known_elsewhere(name).is_some() { None } else { nearest(name, &expected(message)) }
}

/// Translates serde's message for the author of a file.
pub(super) fn friendly(message: &str, field: &str) -> String {
    let mut known = expected(message);
    // The compiler creates `run.mcp` itself.
    known.retain(|name| field != "run" || *name != "mcp");
    if quoted(message, "missing field `").is_some() {
        return MISSING.to_owned();
    }
    if let Some(name) = quoted(message, "unknown field `") {
        let hint = match (known_elsewhere(name), meant(message)) {
            (Some(hint), _) => hint.to_owned(),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => format!("there are {}", known.join(", ")),
        };
        return format!("unknown field; {hint}");
    }
    if let Some(name) = quoted(message, "unknown variant `") {
        let hint = match nearest(name, &known) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("there are {}", known.join(", ")),
        };
        return format!("\"{name}\" is not known here; {hint}");
    }
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match rest.and_then(|rest| rest.split_once(", expected ")) {
        Some((_, "map with a single key")) => one_of(field),
        Some((got, expected)) => format!("expected {}, got {}", wanted(expected), found(got)),
        None => message.to_owned(),
    }
}

/// The rule of a field that has one of several alternatives.
fn one_of(field: &str) -> String {
    match field {
        "run" => "names one implementation: `native`, `http` or `code`, and nothing beside it".to_owned(),
        _ => "expected an object with exactly one field".to_owned(),
    }
}

/// Translates what serde expected to terms of JSON.
fn wanted(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        // A choice from a list of words.
        "string or map" => "a string",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        expected if expected.starts_with("struct ") || expected.starts_with("internally tagged enum ") => {
            "an object"
        }
        expected => expected,
    }
}

/// Translates what serde found to terms of JSON.
fn found(got: &str) -> String {
    match got {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" | "Option value" => "null".to_owned(),
        got => match got.split_once(' ') {
            Some(("string", text)) => format!("the text {text}"),
            Some(("integer" | "boolean", value)) => value.trim_matches('`').to_owned(),
            Some(("floating", value)) => value.trim_start_matches("point ").trim_matches('`').to_owned(),
            _ => got.to_owned(),
        },
    }
}

/// Fields that people will try: those of later versions of the specification, and those of other runtimes.
fn known_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "temperature" | "topP" | "top_p" | "topK" | "maxTokens" | "max_tokens" | "stop" | "seed" => {
            "settings of the provider's request go into `providerOptions`"
        }
        "apiKey" | "api_key" | "key" => {
            "keys are never in files: name the variable that holds it in `apiKeyEnv`"
        }
        "baseURL" | "base_url" | "url" | "endpoint" => "the provider's address is `baseUrl`",
        "vision" => "whether a model sees images is `supportsImages`",
        "functionCalling" => "whether a model calls tools is `supportsToolCalls`",
        "structuredOutputs" => "whether a model can be held to JSON is `supportsJsonMode`",
        "parameters" | "inputSchema" | "input_schema" | "schema" => {
            "the JSON Schema of a tool's arguments is `args`"
        }
        "system" | "systemPrompt" | "system_prompt" | "instructions" => "the system prompt is `prompt`",
        "execute" | "handler" => "what runs is named in `run`",
        "exposeAsTool" => {
            "every prompt can be called: leave it out, and list the prompt in `tools` of the one that calls it"
        }
        "tenvs" => "use `variables` and `env`",
        "endSessionTool" => "use `sessionStop`",
        "failSessionTool" => "use `sessionFail`",
        "statusTool" => "use `sessionStatus`",
        "includedProviders" => {
            "which providers a gateway takes goes into `providerOptions`, for OpenRouter as `{\"provider\": {\"order\": […]}}`"
        }
        "providerTools" => {
            "tools that a provider runs itself are not offered: a tool with `run` does the work here"
        }
        "executionMode" | "executionProvider" => {
            "every tool runs here: leave it out, and name what runs in `run`"
        }
        "uses" => "tools may call what is visible where they are, of a package, too: leave it out",
        "progressArgument" => "nobody is told of single arguments: leave it out",
        "packages" => {
            "a package of agents is a folder in `packages/`, or a dependency in `package.json`: docs/agents.md"
        }
        "includeTextResponse"
        | "includeToolCalls"
        | "includeErrors"
        | "initUserMessageProperty"
        | "initAttachmentsProperty" => "it goes into the entry of `tools` that names the prompt or agent",
        "blocking" | "resumable" | "immediate" | "optional" | "receives_messages" | "maxInstances"
        | "scopedEnv" => "it goes into the entry of `tools` that names the agent",
        _ => return None,
    })
}
