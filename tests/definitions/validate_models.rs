//! What is said about models, and about prompts that ask more of them than they can do.

use serde_json::{Value, json};

use super::validate::complaints;

#[test]
fn what_anthropic_does_not_take_is_told() {
    let claude = json!({ "provider": "anthropic", "model": "x", "providerOptions": { "system": "x" } });
    let expected =
        "models/slow: error in providerOptions.system: the runtime sets this field of the request itself";
    assert_eq!(complaints(&[("/models/slow", claude.clone())]), [expected]);
    let forced = [
        ("/prompts/helper/model", json!("slow")),
        ("/prompts/helper/toolChoice", json!("required")),
        ("/prompts/helper/reasoning", json!({ "effort": "high" })),
    ];
    assert_eq!(complaints(&forced), [""; 0], "it is another provider's");
    let forced = [&forced[..], &[("/models/slow/provider", json!("anthropic"))]].concat();
    let expected = "prompts/helper: warning in toolChoice: `required` goes with no reasoning at Anthropic: its models are asked with `auto` instead";
    assert_eq!(complaints(&forced), [expected]);
    assert_eq!(complaints(&[&forced[1..2], &forced[3..]].concat()), [""; 0], "without reasoning it is fine");
}

#[test]
fn what_chat_completions_do_not_take_is_told() {
    let tokens = [
        ("/prompts/helper/model", json!("slow")),
        ("/prompts/helper/reasoning", json!({ "maxTokens": 2000 })),
    ];
    let expected = "prompts/helper: warning in reasoning.maxTokens: OpenAI's APIs have no field for it: \"slow\" is not told";
    assert_eq!(complaints(&tokens), [expected]);
}

#[test]
fn what_belongs_to_the_other_api_is_told() {
    let slow = |extra: Value| {
        let mut model = json!({ "provider": "openai", "model": "gpt-6", "apiKeyEnv": "SLOW_KEY" });
        model.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        ("/models/slow", model)
    };
    let here = |field: &str, what: &str| {
        format!(
            "{field}: a field of chat completions, and \"slow\" is asked by responses: it is {what} there, or set the model's `api` to \"chat\""
        )
    };
    let most = json!({ "max_tokens": 9, "reasoning_effort": null });
    let told = here("models/slow: warning in providerOptions.max_tokens", "`max_output_tokens`");
    let env = "{{env OPENAI_BASE_URL}}";
    let background = "models/slow: warning in providerOptions.background: only responses that the server stores are gone on with by it: `api` must be \"responses\", and `store` not false";
    for (model, expected) in [
        (json!({ "providerOptions": { "background": true } }), vec![]),
        (json!({ "providerOptions": { "background": true, "store": false } }), vec![background.to_owned()]),
        (json!({ "api": "chat", "providerOptions": { "background": true } }), vec![background.to_owned()]),
        (json!({ "providerOptions": most }), vec![told.clone()]),
        (
            json!({ "providerOptions": most, "baseUrl": env, "apiKeyEnv": "OPENAI_API_KEY" }),
            vec![told.clone()],
        ),
        (json!({ "providerOptions": most, "baseUrl": "https://h/v1", "api": "responses" }), vec![told]),
        (json!({ "providerOptions": most, "baseUrl": "https://h/v1" }), vec![]),
        (json!({ "providerOptions": most, "api": "chat" }), vec![]),
        (
            json!({ "provider": "anthropic", "api": "responses" }),
            vec![
                "models/slow: error in api: the provider \"anthropic\" has one API: this is for `openai`"
                    .to_owned(),
            ],
        ),
    ] {
        assert_eq!(complaints(&[slow(model.clone())]), expected, "{model}");
    }
    let prompt = [
        ("/prompts/helper/model", json!("slow")),
        ("/prompts/helper/providerOptions", json!({ "reasoning_effort": "low" })),
        ("/prompts/helper/reasoning", json!({ "effort": "low" })),
    ];
    let told = here("prompts/helper: warning in providerOptions.reasoning_effort", "`effort` in `reasoning`");
    assert_eq!(complaints(&[&prompt[..], &[slow(json!({}))]].concat()), [told]);
    let refused = "prompts/helper: warning in reasoning.effort: \"slow\" refuses functions together with an effort in chat completions: with tools it is asked for none, unless its `api` is \"responses\"";
    assert_eq!(complaints(&[&prompt[..], &[slow(json!({ "api": "chat" }))]].concat()), [refused]);
}

#[test]
fn a_model_that_ends_is_told_at_its_makers_address_alone() {
    let slow = |model: Value| complaints(&[("/models/slow", model)]);
    let mini = json!({ "provider": "openai", "model": "gpt-5-mini", "apiKeyEnv": "SLOW_KEY" });
    let ends = "models/slow: warning in model: its maker ends \"gpt-5-mini\" on 2026-12-11; its replacement is \"gpt-6.1-terra\"";
    assert_eq!(slow(mini.clone()), [ends]);
    let mut elsewhere = mini;
    elsewhere["baseUrl"] = "https://h/v1".into();
    assert_eq!(slow(elsewhere), [""; 0], "others have other days");
    let priced = json!({
        "provider": "anthropic", "model": "claude-haiku-4-5-20251001", "inputPrice": 0.001, "outputPrice": 4,
        "capabilities": { "maxContextTokens": 1_000_000 },
    });
    assert_eq!(
        slow(priced),
        [
            "models/slow: warning in capabilities.maxContextTokens: \"claude-haiku-4-5-20251001\" has 200000",
            "models/slow: warning in inputPrice: \"claude-haiku-4-5-20251001\" is listed at 1 USD for a million tokens"
        ]
    );
}

#[test]
fn a_prompt_that_wants_json_needs_models_that_know_it() {
    let slow = |extra: Value| {
        let mut model = json!({ "provider": "openai", "model": "x", "apiKeyEnv": "SLOW_KEY" });
        model.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        model
    };
    let knows = json!({ "capabilities": { "supportsJsonMode": true } });
    let claude = |extra: Value| {
        let mut model = slow(extra);
        model["provider"] = "anthropic".into();
        model
    };
    let schema = json!({ "type": "json", "schema": { "type": "object", "properties": { "n": { "type": "integer" } } } });
    let json = json!({ "type": "json" });
    let text = json!("Answer in JSON.");
    let option = json!({ "api": "chat", "capabilities": { "supportsJsonMode": true }, "providerOptions": { "response_format": {} } });
    let format = json!({ "capabilities": { "supportsJsonMode": true }, "providerOptions": { "text": { "format": {} } } });
    let verbosity = json!({ "capabilities": { "supportsJsonMode": true }, "providerOptions": { "text": { "verbosity": "low" } } });
    let with_fast = json!({ "capabilities": { "supportsJsonMode": true }, "fallbacks": ["fast"] });
    let silent = json!("Answer.");
    for (model, format, text, expected) in [
        (slow(knows.clone()), &json, &text, vec![]),
        (slow(knows.clone()), &schema, &silent, vec![]),
        (claude(knows.clone()), &schema, &silent, vec![]),
        (slow(json!({})), &json!({ "type": "text" }), &silent, vec![]),
        (
            slow(json!({})),
            &json,
            &text,
            vec![
                "prompts/helper: error in responseFormat: the model \"slow\" is not said to know JSON: set its `capabilities.supportsJsonMode` if its API can be held to it, or choose another model",
            ],
        ),
        (
            slow(with_fast),
            &json,
            &text,
            vec![
                "prompts/helper: warning in responseFormat: the fallback \"fast\" cannot be held to JSON: it is asked for a plain answer",
            ],
        ),
        (
            claude(knows.clone()),
            &json,
            &text,
            vec![
                "prompts/helper: error in responseFormat: Anthropic holds answers to a schema only, and \"slow\" is asked there: give `responseFormat.schema`",
            ],
        ),
        (
            slow(option),
            &json,
            &text,
            vec![
                "prompts/helper: error in responseFormat: `providerOptions.response_format` would take its place for \"slow\": say it once",
            ],
        ),
        (
            slow(format),
            &json,
            &text,
            vec![
                "prompts/helper: error in responseFormat: `providerOptions.text` would take its place for \"slow\": say it once",
            ],
        ),
        (slow(verbosity), &json, &text, vec![]),
        (
            slow(knows.clone()),
            &json,
            &silent,
            vec![
                "prompts/helper: warning in prompt: says nothing of JSON: OpenAI's APIs without a schema refuse such requests, or give blanks without end",
            ],
        ),
    ] {
        let edits = [
            ("/models/slow", model),
            ("/prompts/helper/model", json!("slow")),
            ("/prompts/helper/responseFormat", format.clone()),
            ("/prompts/helper/prompt", text.clone()),
            ("/prompts/persona/prompt", json!("x")),
        ];
        assert_eq!(complaints(&edits), expected, "{edits:?}");
    }
    let demo = json!({ "provider": "demo", "model": "demo", "capabilities": { "supportsJsonMode": true } });
    let expected =
        "models/fast: error in capabilities.supportsJsonMode: the demo provider answers in plain text";
    assert_eq!(complaints(&[("/models/fast", demo)]), [expected]);
}

#[test]
fn a_policy_that_makes_no_sense_is_told_wherever_it_stands() {
    for (pointer, value, expected) in [
        (
            "/models/fast/retry",
            json!({ "maxAttempts": 11 }),
            "models/fast: error in retry.maxAttempts: must be from 1 (no retry) to 10, the first attempt included",
        ),
        (
            "/models/fast/retry",
            json!({ "maxBackoffMs": 86_400_001 }),
            "models/fast: error in retry.maxBackoffMs: must be at most 86400000 (24 hours)",
        ),
        (
            "/models/fast/retry",
            json!({ "timeoutMs": 0 }),
            "models/fast: error in retry.timeoutMs: must be from 1 to 3600000 (one hour)",
        ),
        (
            "/models/fast/timeouts",
            json!({ "stallMs": 0 }),
            "models/fast: error in timeouts.stallMs: must be from 1 to 900000 (15 minutes)",
        ),
        (
            "/prompts/helper/retry",
            json!({ "model": { "backoffMs": 9, "maxBackoffMs": 8 } }),
            "prompts/helper: error in retry.model.backoffMs: is more than maxBackoffMs (8)",
        ),
        (
            "/settings",
            json!({ "retryDefaults": { "tool": { "maxAttempts": 0 } } }),
            "bobbin.json: error in retryDefaults.tool.maxAttempts: must be from 1 (no retry) to 10, the first attempt included",
        ),
        (
            "/settings",
            json!({ "scrub": { "allow": ["*"] } }),
            "bobbin.json: error in scrub.allow[0]: would allow everything: `\"entropy\": \"off\"` says that",
        ),
        (
            "/tools/clock/scrub",
            json!({ "keywords": "report", "entropy": "off" }),
            "tools/clock: error in scrub.keywords: a tool can only be stricter here than bobbin.json, which says what holds without it",
        ),
        (
            "/settings",
            json!({ "budget": { "ceiling": { "run": { "maxCostUsd": -1 } } } }),
            "bobbin.json: error in budget.ceiling.run.maxCostUsd: must be 0 or more USD",
        ),
        (
            "/agents/helper/budget",
            json!({ "run": { "maxSteps": 9 }, "warnAt": 2 }),
            "agents/helper: error in budget.warnAt: must be from 0 to 1",
        ),
        (
            "/agents/helper/budget",
            json!({ "run": { "maxSteps": 9 }, "askExpiresAfterSeconds": 2_592_001 }),
            "agents/helper: error in budget.askExpiresAfterSeconds: must be from 1 to 2592000 (30 days)",
        ),
        (
            "/agents/helper/budget",
            json!({ "ceiling": { "run": { "maxTokens": 9 } } }),
            "agents/helper: error in budget.ceiling: belongs to `bobbin.json`",
        ),
        (
            "/tools/clock/retry",
            json!({ "maxAttempts": 2 }),
            "tools/clock: error in retry: only a call that may safely be made again is retried: declare the tool `idempotent` if it is",
        ),
    ] {
        assert_eq!(complaints(&[(pointer, value)]), [expected]);
    }
    let reads = [("/tools/clock/tier", json!("read_only"))];
    assert_eq!(
        complaints(&[&reads[..], &[("/tools/clock/retry", json!({ "maxAttempts": 3 }))]].concat()),
        [""; 0]
    );
    assert_eq!(
        complaints(&[&reads[..], &[("/tools/clock/idempotent", json!(false))]].concat()),
        [
            "tools/clock: error in idempotent: a call that changes nothing can always be made again: leave this out, or \
          give the tool another `tier`"
        ]
    );
    let again =
        [("/tools/clock/idempotent", json!(true)), ("/tools/clock/retry", json!({ "maxAttempts": 3 }))];
    assert_eq!(complaints(&again), [""; 0]);
}

#[test]
fn a_limit_on_cost_wants_prices_of_every_model_that_may_be_asked() {
    let bounded =
        |model: &str| (format!("/models/{model}/capabilities"), json!({ "maxOutputTokens": 4_000 }));
    let (fast, limit) = (bounded("fast"), json!({ "run": { "maxCostUsd": 0.5 } }));
    let fast = (fast.0.as_str(), fast.1.clone());
    let refused = |whose: &str| {
        format!(
            "agents/helper: error in budget.run.maxCostUsd: the limit {whose} cannot hold: the model \"fast\" has neither `inputPrice` nor `outputPrice`. Give it one, or say `unpriced: ignore`"
        )
    };
    let unpriced = ("/models/fast/inputPrice", Value::Null);
    let without = ("/models/fast/outputPrice", Value::Null);
    let with = |budget: (&'static str, Value)| {
        complaints(&[unpriced.clone(), without.clone(), fast.clone(), budget])
    };
    assert_eq!(with(("/agents/helper/budget", limit.clone())), [refused("of this agent")]);
    assert_eq!(with(("/settings", json!({ "budget": limit }))), [refused("of `bobbin.json`")]);
    let ignored = json!({ "run": { "maxCostUsd": 0.5 }, "unpriced": "ignore" });
    assert_eq!(with(("/agents/helper/budget", ignored)), [""; 0]);
    // Models that write summaries and give vectors are paid for, too.
    let beside = |model: &str| {
        format!(
            "agents/helper: error in budget.run.maxCostUsd: the limit of this agent cannot hold: the model \"{model}\" has neither `inputPrice` nor `outputPrice`. Give it one, or say `unpriced: ignore`"
        )
    };
    let chat = json!({ "provider": "openai", "model": "x", "apiKeyEnv": "CHEAP_KEY" });
    let embed = |provider: &str| json!({ "kind": "embedding", "provider": provider, "model": "demo" });
    let summary = [
        ("/models/cheap", chat.clone()),
        ("/prompts/helper/summary", json!({ "model": "cheap" })),
        ("/prompts/helper/includeChat", json!(true)),
    ];
    let memory = |provider: &str| {
        [
            ("/models/embed", embed(provider)),
            ("/memories", json!({ "book": { "description": "Known.", "embedding": "embed" } })),
            ("/prompts/helper/memory", json!([{ "name": "book", "inject": true }])),
        ]
    };
    let limited = [
        fast.clone(),
        ("/models/fast/inputPrice", json!(1)),
        ("/agents/helper/budget", json!({ "run": { "maxCostUsd": 0.5 } })),
    ];
    assert_eq!(complaints(&[&limited[..], &summary].concat()), [beside("cheap")]);
    assert_eq!(complaints(&[&limited[..], &memory("openai")].concat()), [beside("embed")]);
    assert_eq!(
        complaints(&[&limited[..], &memory("demo")].concat()),
        [""; 0],
        "what `demo` hashes costs nothing"
    );
    let tokens = json!({ "run": { "maxTokens": 9_000 } });
    assert_eq!(
        complaints(&[("/agents/helper/budget", tokens)]),
        [
            "agents/helper: warning in budget: an answer of the model \"fast\" may exceed the limit: it does not say `maxOutputTokens`"
        ]
    );
}

#[test]
fn what_cannot_come_into_a_memory_by_itself_is_told() {
    let listed = ("/prompts/helper/memory", json!([{ "name": "book" }]));
    let memory = |scope: &str, sources: Value| {
        ("/memories", json!({ "book": { "description": "Known.", "scope": scope, "sources": sources } }))
    };
    let told = |scope: &str, sources: Value| complaints(&[listed.clone(), memory(scope, sources)]);
    let files = json!({ "files": ["/handbook/**"] });
    let said = json!({ "messages": true });
    assert_eq!(told("thread", json!({ "messages": true, "files": ["/handbook/**"] })), [""; 0]);
    assert_eq!(told("owner", said.clone()), [""; 0], "what nobody can mend is no warning");
    assert_eq!(
        told("instance", said.clone()),
        [
            "memories/book: error in sources.messages: everybody's memory is written by administrators: what is said in threads does not come in"
        ]
    );
    let wrong = "files are a thread's own: only a memory of the scope `thread` takes them in";
    let of_owner = told("owner", files.clone());
    assert!(of_owner.iter().any(|text| text.ends_with(wrong)), "{of_owner:?}");
    assert!(
        told("thread", json!({ "files": [""] }))[0].contains("error in sources.files[0]: must have 1 to")
    );
    let many: Vec<String> = (0..33).map(|n| format!("/{n}/**")).collect();
    assert!(told("thread", json!({ "files": many }))[0].contains("error in sources.files: 33 patterns"));
    assert_eq!(
        complaints(&[memory("thread", said)]),
        [
            "memories/book: warning in sources: nothing comes in by itself: a prompt that an agent speaks with has to list the memory"
        ]
    );
}
