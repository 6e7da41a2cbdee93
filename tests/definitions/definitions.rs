//! The forms that files may have, and what a model costs and needs.

use bobbin::definitions::{
    Agent, Catalog, Implementation, Model, ParentCommunication, Prompt, PromptText, ReceivingSide,
    SessionTool, Tool, ToolEntry,
};
use bobbin::models::Usage;
use serde_json::{Value, json};

fn model(value: Value) -> Model {
    let mut whole = json!({ "provider": "openai", "model": "m" });
    whole.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

#[test]
fn a_catalog_reads_what_it_writes_and_names_its_definitions() {
    let json = json!({
        "models": { "fast": { "provider": "demo", "model": "demo" } },
        "prompts": { "p": { "toolDescription": "d", "prompt": "t", "model": "fast", "tools": ["a", { "name": "b", "env": { "X": "1" } }] } },
        "tools": {
            "a": { "description": "d", "run": { "native": "clock" } },
            "b": { "description": "d", "run": { "http": { "url": "https://a.example" } }, "timeoutMs": 5, "idempotent": true },
        },
        "agents": { "g": { "sideA": { "prompt": "p", "sessionStop": "a" } } },
    });
    let catalog = Catalog::from_json(&json.to_string()).unwrap();
    assert_eq!(catalog.tools.get("b").unwrap().name, "b");
    assert_eq!(catalog.prompts.get("p").unwrap().tools[1].env.get("X").unwrap(), "1");
    assert_eq!(
        catalog.agents.get("g").unwrap().side_a.session_stop,
        Some(SessionTool { name: "a".into(), ..SessionTool::default() })
    );
    assert!(matches!(&catalog.tools.get("a").unwrap().run, Implementation::Native(name) if name == "clock"));
    let again = Catalog::from_json(&serde_json::to_string(&catalog).unwrap()).unwrap();
    assert_eq!(again, catalog);
}

#[test]
fn the_older_names_of_session_tools_are_read() {
    let older = json!({ "prompt": "p", "endSessionTool": "a", "failSessionTool": "b", "statusTool": "c" });
    let today = json!({ "prompt": "p", "sessionStop": "a", "sessionFail": "b", "sessionStatus": "c" });
    let agent = |side| serde_json::from_value::<Agent>(json!({ "sideA": side })).unwrap();
    assert_eq!(agent(older), agent(today));
    let both = json!({ "sideA": { "prompt": "p", "endSessionTool": "a", "sessionStop": "a" } });
    assert!(serde_json::from_value::<Agent>(both).unwrap_err().to_string().contains("duplicate"));
}

#[test]
fn an_entry_says_all_about_a_subagent() {
    let entry = |value: Value| serde_json::from_value::<ToolEntry>(value).unwrap();
    let full = json!({ "name": "a", "blocking": false, "initAgentNameProperty": "as", "optional": "WITH_A",
        "immediate": { "nameEnv": "N", "descriptionEnv": "D", "scopedEnv": ["K"] },
        "resumable": { "receives_messages": "side_b", "maxInstances": 2, "parentCommunication": "explicit" } });
    let read = entry(full.clone());
    assert_eq!(serde_json::to_value(&read).unwrap(), full);
    let resumable = read.resumable.as_ref().unwrap();
    assert_eq!(
        (resumable.receives_messages, resumable.max_instances, resumable.parent_communication),
        (ReceivingSide::SideB, Some(2), ParentCommunication::Explicit)
    );
    assert!(!read.blocks() && !read.immediate.unwrap().is_plain());
    let least =
        entry(json!({ "name": "a", "immediate": true, "resumable": { "receives_messages": "side_a" } }));
    assert!(least.blocks() && least.immediate.as_ref().unwrap().is_plain());
    assert_eq!(least.resumable.as_ref().unwrap().parent_communication, ParentCommunication::Implicit);
    assert_eq!(entry(serde_json::to_value(&least).unwrap()), least);
    assert_eq!(entry(json!({ "name": "a", "immediate": false, "resumable": false })), entry(json!("a")));
}

#[test]
fn absent_fields_have_the_specifications_defaults() {
    let prompt: Prompt =
        serde_json::from_value(json!({ "toolDescription": "d", "prompt": [], "model": "m" })).unwrap();
    assert!(!prompt.include_chat && !prompt.include_past_tools && !prompt.parallel_tool_calls);
    assert_eq!(prompt.recent_image_threshold, 10);
    assert_eq!(prompt.prompt, PromptText::Parts(vec![]));
    let agent: Agent = serde_json::from_value(json!({ "sideA": { "prompt": "p" } })).unwrap();
    assert!(agent.side_a.stop_on_response && !agent.expose_as_tool);
    let model = model(json!({}));
    assert!(model.capabilities.supports_tool_calls && !model.capabilities.supports_images);
}

#[test]
fn a_mistake_is_reported_where_it_is() {
    let prompt = |tools: Value| {
        serde_json::from_value::<Prompt>(
            json!({ "toolDescription": "d", "prompt": "t", "model": "m", "tools": tools }),
        )
    };
    let told = |tools| prompt(tools).unwrap_err().to_string();
    assert!(
        told(json!([{ "name": "a", "evn": {} }]))
            .starts_with("unknown field `evn`, expected one of `name`, `mcp`, `tools`, `env`")
    );
    assert!(told(json!([1])).contains("expected a name or an object"));
    let with = |field: &str, value: Value| told(json!([{ "name": "a", field: value }]));
    assert!(with("resumable", json!(true)).contains("boolean `true`, expected false or an object"));
    assert!(with("resumable", json!({})).starts_with("missing field `receives_messages`"));
    assert!(
        with("resumable", json!({ "receives_messages": "a" }))
            .starts_with("unknown variant `a`, expected `side_a` or `side_b`")
    );
    assert!(
        with("resumable", json!({ "receives_messages": "side_a", "max": 1 }))
            .starts_with("unknown field `max`")
    );
    assert!(with("immediate", json!("yes")).contains("expected true, false or an object"));
    assert!(
        with("immediate", json!({ "env": "A" }))
            .starts_with("unknown field `env`, expected one of `nameEnv`")
    );
    let part = serde_json::from_value::<PromptText>(json!([{ "type": "text", "content": "a", "x": 1 }]))
        .unwrap_err();
    assert!(part.to_string().starts_with("unknown field `x`"), "{part}");
    let run = |run: Value| {
        serde_json::from_value::<Tool>(json!({ "description": "d", "run": run })).unwrap_err().to_string()
    };
    let code = |code: Value| run(json!({ "code": code }));
    assert!(code(json!({ "file": "x.ts", "host": 1 })).starts_with("unknown field `host`"));
    assert!(
        run(json!({ "shell": "x.sh" }))
            .starts_with("unknown variant `shell`, expected one of `native`, `http`, `code`")
    );
}

#[test]
fn a_request_costs_its_tokens_cached_ones_apart() {
    let usage = Usage {
        input_tokens: 1_000_000,
        cached_tokens: 400_000,
        written_tokens: 0,
        output_tokens: 100_000,
        reasoning_tokens: 50_000,
    };
    let cost = |prices| model(prices).cost(&usage);
    assert_eq!(cost(json!({})), None);
    assert_eq!(cost(json!({ "inputPrice": 1, "outputPrice": 10 })), Some(2.0));
    assert_eq!(cost(json!({ "inputPrice": 1, "outputPrice": 10, "cachedPrice": 0.5 })), Some(1.8));
    assert_eq!(cost(json!({ "inputPrice": 0, "outputPrice": 0 })), Some(0.0));
    let usage = Usage { written_tokens: 200_000, ..usage };
    assert_eq!(
        model(json!({ "inputPrice": 1, "outputPrice": 10, "cachedPrice": 0.5 })).cost(&usage),
        Some(1.85)
    );
}

#[test]
fn a_model_is_usable_with_a_key_or_an_address_of_its_own() {
    let env = |set: &'static [(&str, &str)]| {
        move |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
    };
    let both = model(json!({ "baseUrl": "{{env URL}}", "apiKeyEnv": "KEY" }));
    assert!(!bobbin::models::usable(&both, &env(&[])));
    assert!(!bobbin::models::usable(&both, &env(&[("KEY", " "), ("URL", "")])), "blank is unset");
    assert!(
        !bobbin::models::usable(&both, &env(&[("OPENAI_API_KEY", "x")])),
        "a key goes only where the definition says"
    );
    assert!(
        !bobbin::models::usable(&both, &env(&[("KEY", "x")])),
        "a key goes nowhere else while its address is unset"
    );
    assert!(bobbin::models::lacks(&both, &env(&[("KEY", "x")])).unwrap().contains("URL, which is not set"));
    let usual = |url: &str, key: &str| model(json!({ "baseUrl": url, "apiKeyEnv": key }));
    let own = usual("{{ env OPENAI_BASE_URL }}", "OPENAI_API_KEY");
    assert_eq!(bobbin::models::lacks(&own, &env(&[])).unwrap(), "it has no key: OPENAI_API_KEY is not set");
    assert!(
        bobbin::models::usable(&own, &env(&[("OPENAI_API_KEY", "x")])) && own.base_url(&env(&[])).is_none()
    );
    for (url, key) in [
        ("{{env OPENAI_BASE_URL}}", "KEY"),
        ("{{env MODEL_URL}}", "OPENAI_API_KEY"),
        ("{{env ANTHROPIC_BASE_URL}}", "OPENAI_API_KEY"),
        ("https://{{env OPENAI_BASE_URL}}", "OPENAI_API_KEY"),
        ("{{env OPENAI_BASE_URL}}/v1", "OPENAI_API_KEY"),
    ] {
        let set = env(&[("KEY", "x"), ("OPENAI_API_KEY", "x")]);
        assert!(!bobbin::models::usable(&usual(url, key), &set), "{url} with {key}");
    }
    assert!(bobbin::models::usable(&both, &env(&[("URL", "http://127.0.0.1:8080/v1/")])));
    assert_eq!(
        both.base_url(&env(&[("URL", "http://127.0.0.1:8080/v1/")])).as_deref(),
        Some("http://127.0.0.1:8080/v1")
    );
    assert_eq!(both.base_url(&env(&[])), None);
    let plain = model(json!({}));
    assert!(
        !bobbin::models::usable(&plain, &env(&[]))
            && bobbin::models::usable(&plain, &env(&[("OPENAI_API_KEY", "x")]))
    );
    assert_eq!(model(json!({ "baseUrl": "https://a.example" })).key_env(), None);
    let demo: Model = serde_json::from_value(json!({ "provider": "demo", "model": "demo" })).unwrap();
    assert!(bobbin::models::usable(&demo, &env(&[])));
}

#[test]
fn a_model_is_followed_by_its_own_fallbacks_in_order() {
    let model = |fallbacks: Value| json!({ "provider": "demo", "model": "demo", "fallbacks": fallbacks });
    let models = json!({ "a": model(json!(["b", "gone", "c", "b"])), "b": model(json!(["a", "d"])), "c": model(json!([])), "d": model(json!([])) });
    let catalog = Catalog::from_json(&json!({ "models": models }).to_string()).unwrap();
    let names: Vec<_> = catalog.model_chain("a").iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(catalog.model_chain("gone").is_empty());
}

/// The blocks of JSON in a page.
fn blocks(page: &str) -> impl Iterator<Item = Value> {
    let texts = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    texts.map(|text| serde_json::from_str(text).expect("the page has JSON"))
}

#[test]
fn the_page_on_endpoints_names_every_route_that_is_reserved() {
    let page = include_str!("../../docs/endpoints.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, list) = page.split_once("a file for one of them is an error. They are ").expect("the list");
    let (list, _) = list.split_once("with everything below them").expect("its end");
    let named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, bobbin::definitions::endpoint::RESERVED);
}

#[test]
fn the_page_on_context_shows_fields_of_prompts() {
    let mut read = 0;
    for block in blocks(include_str!("../../docs/context.md")).filter(|block| block.get("window").is_none()) {
        let mut prompt = json!({ "toolDescription": "d", "prompt": "p", "model": "m" });
        prompt.as_object_mut().unwrap().extend(block.as_object().unwrap().clone());
        let prompt: Prompt = serde_json::from_value(prompt).expect("a prompt");
        assert!(prompt.summary.is_some() || prompt.context.safety_tokens == Some(2_048));
        read += 1;
    }
    assert_eq!(read, 2);
    let short = |summary: Value| {
        let prompt = json!({ "toolDescription": "d", "prompt": "p", "model": "m", "summary": summary });
        serde_json::from_value::<Prompt>(prompt).map(|prompt| prompt.summary)
    };
    assert_eq!(short(json!(true)).unwrap(), Some(Default::default()));
    assert_eq!(short(json!(false)).unwrap(), None);
    assert!(short(json!("yes")).is_err());
}
