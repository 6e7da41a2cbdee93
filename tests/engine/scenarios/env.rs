//! Values of variables: of the thread, the account and the instance; what is stored of them, and what is shown.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin::Code;
use bobbin::definitions::VariableKind;
use bobbin::definitions::message::ToolResult;
use bobbin::engine::NativeCall;
use bobbin::env::{EncryptedRow, Keys};
use bobbin::request::ThreadRoute;
use futures::FutureExt;
use serde_json::{Value, json};

use super::{clerk, with_work};
use crate::host::Native;
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![own(), setting(), levels()]
}

pub(super) const KEY_A: &str = "a=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const KEY_B: &str = "b=//////////////////////////////////////////8=";
pub(super) const TOKEN: &str = "canary-4711-\"token\"";

pub(super) fn var(sim: &Sim, name: &str, value: &str) {
    sim.world.vars.borrow_mut().insert(name.into(), value.into());
}

/// The clerk with a prompt that shows CITY and a tool that takes TOKEN, CITY and MODE.
pub(super) fn told(name: &'static str) -> Scenario {
    Scenario::new(name, &with_work())
        .says(clerk)
        .setup(|sim| {
            var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
            Directories::default().serve(sim);
            work(sim, |call| ToolResult::success(Value::Object(call.env.clone()).to_string()));
        })
        .define(|catalog| {
            let prompt = &mut catalog["prompts"]["p"];
            prompt["prompt"] = json!([
                { "type": "text", "content": "You help in " }, { "type": "env", "property": "CITY" },
                { "type": "text", "content": "." },
            ]);
            prompt["variables"] = json!([{ "name": "CITY", "type": "text" }]);
            catalog["tools"]["work"]["variables"] = json!([
                { "name": "TOKEN", "type": "secret" }, { "name": "CITY", "type": "text" },
                { "name": "MODE", "type": "text" },
            ]);
        })
}

/// The tool `work` as a function of its call.
pub(super) fn work(sim: &Sim, act: impl Fn(&NativeCall) -> ToolResult + 'static) {
    let act = Rc::new(act);
    sim.world.outside.native("work", move |call, _| {
        let (act, call) = (act.clone(), call.clone());
        Native::Acts(Box::new(move || act(&call)))
    });
}

pub(super) async fn patch(sim: &Sim, body: Value) -> Seen {
    sim.insist(ThreadRoute::Patch, &[], None, body.to_string()).await
}

/// What the thread shows: values and types.
async fn shown(sim: &Sim) -> (Value, Value) {
    let thread = sim.get(ThreadRoute::Get, &[]).await["thread"].clone();
    (thread["env"].clone(), thread["env_types"].clone())
}

/// The last system prompt that a model was sent.
pub(super) fn system(sim: &Sim) -> String {
    sim.world.outside.requests.borrow().last().map(|last| last.texts("system").concat()).unwrap_or_default()
}

/// Everything that is stored, in hexadecimal.
fn stored(sim: &Sim) -> String {
    let database = &sim.member.database;
    let columns: Vec<String> = database.ask(
        "SELECT 'SELECT hex(\"' || c.name || '\") FROM \"' || t.name || '\" WHERE \"' || c.name || '\" IS NOT NULL'
         FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'",
    );
    columns.iter().flat_map(|column| database.ask::<String>(column)).collect::<Vec<_>>().join("\n")
}

/// Nothing that is stored, logged, told or asked of a model has the text in it.
pub(super) fn nowhere(sim: &Sim, secret: &str) {
    let world = &sim.world;
    let database = stored(sim);
    let mut places = vec![("the log", world.log.borrow().join("\n"))];
    places
        .push(("a frame", sim.member.frames.borrow().iter().map(|(_, frame)| frame.socket_text()).collect()));
    places.push((
        "a request",
        world.outside.requests.borrow().iter().map(|request| request.body.to_string()).collect(),
    ));
    places.push((
        "a letter",
        world.outside.siblings.borrow().iter().map(|(_, call)| call.to_string()).collect(),
    ));
    let escaped = Value::from(secret).to_string();
    for form in [secret, &escaped[1..escaped.len() - 1], &STANDARD.encode(secret)] {
        let hex: String = form.bytes().map(|byte| format!("{byte:02X}")).collect();
        assert!(!database.contains(&hex), "{form} is in the database");
        for (place, text) in &places {
            assert!(!text.contains(form), "{form} is in {place}: {text}");
        }
    }
}

// ---- the thread's own ---------------------------------------------------------------------------------------

fn own() -> Scenario {
    told("values of a thread")
        .setup(|sim| {
            *sim.born.borrow_mut() = json!({
                "agent_id": "helper", "env": { "CITY": "Lisbon", "TOKEN": TOKEN, "N": 7 },
                "env_types": { "CITY": "text" },
            });
        })
        .drive(|sim| async move {
            let types = json!({ "CITY": "text", "N": "secret", "TOKEN": "secret" });
            assert_eq!(shown(&sim).await, (json!({ "CITY": "Lisbon" }), types));
            let answer = sim.ask("use work").await;
            let said = answer["message"]["content"].as_str().unwrap_or_default();
            // It ran once, or its outcome is unknown.
            let ran = r#"done: {"TOKEN":"[redacted TOKEN]","CITY":"Lisbon"}"#;
            assert!(said == ran || said.contains("may or may not have"), "{said}");
            assert_eq!(system(&sim), "You help in Lisbon.");
            let seen = patch(
                &sim,
                json!({
                    "env_patch": { "CITY": "Porto", "MODE": "" }, "env_type_patch": { "MODE": "text" },
                    "env_delete": ["N", "NEVER"],
                }),
            )
            .await;
            assert_eq!(seen.status, 200, "{}", seen.body);
            let types = json!({ "CITY": "text", "MODE": "text", "TOKEN": "secret" });
            let values = json!({ "CITY": "Porto", "MODE": "" });
            assert_eq!((&seen.body["env"], &seen.body["env_types"]), (&values, &types));
            sim.ask("hello").await;
            assert_eq!(system(&sim), "You help in Porto.");
            sim.evict().await;
            assert_eq!(shown(&sim).await, (values, types));
            assert_eq!(
                sim.world.database.ask::<i64>("SELECT env = (SELECT count(*) FROM env) FROM meta"),
                [1]
            );
        })
        .check(|sim, _| nowhere(sim, TOKEN))
}

#[test]
fn values_of_a_thread_are_kept_encrypted_whatever_fails() {
    own().sweep();
}

/// A tool that counts in a value how often it ran, and reads what it wrote.
fn setting() -> Scenario {
    told("values set by a tool")
        .setup(|sim| {
            work(sim, |call| {
                let read = |name: &str| call.state.env(name).now_or_never().unwrap();
                let before: u32 = read("N").map_or(0, |text| text.parse().unwrap());
                call.state.set_env("N", &(before + 1).to_string(), Some(VariableKind::Text)).unwrap();
                call.state.set_env("N", &(before + 1).to_string(), None).unwrap();
                call.state.set_env("FRESH", "set-by-the-tool", None).unwrap();
                assert_eq!(read("N").unwrap(), (before + 1).to_string());
                let kind = |name: &str| call.state.env_type(name).now_or_never().unwrap().unwrap();
                assert_eq!((kind("N"), kind("FRESH")), (VariableKind::Text, VariableKind::Secret));
                assert_eq!(kind("NEVER"), VariableKind::Secret);
                assert_eq!(read("NEVER").unwrap_err().code, Code::MissingVariables);
                ToolResult::success("I have set-by-the-tool")
            });
        })
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.ask("use work").await;
            let (values, types) = shown(&sim).await;
            let counted: usize = values["N"].as_str().unwrap_or("0").parse().unwrap();
            let executions = sim.world.outside.executions.borrow().len();
            let results = sim.history().await.iter().filter(|m| m["tool_status"] == "success").count();
            assert!(results <= counted && counted <= executions, "{results} {counted} {executions}");
            if counted > 0 {
                assert_eq!(types["N"], "text");
            }
        })
        .check(|sim, _| nowhere(sim, "set-by-the-tool"))
}

#[test]
fn a_value_that_a_tool_set_is_kept_whatever_fails() {
    setting().sweep();
}

#[test]
fn what_cannot_be_a_value_is_refused_as_a_whole() {
    told("refusals")
        .define(|catalog| catalog["models"]["m"]["apiKeyEnv"] = json!("MODEL_KEY"))
        .drive(|sim| async move {
            let long = "x".repeat(bobbin::limits::ENV_VALUE_BYTES + 1);
            let many: Value =
                (0..=bobbin::limits::ENV_VALUES).map(|n| (format!("V{n}"), json!("x"))).collect();
            let large: Value = (0..9).map(|n| (format!("V{n}"), json!("x".repeat(30_000)))).collect();
            for (body, field, says) in [
                (json!({ "env_patch": [] }), "env_patch", "must be an object"),
                (json!({ "env_patch": { "A": "1", "B C": "2" } }), "env_patch.B C", "cannot name a variable"),
                (json!({ "env_patch": { "": "2" } }), "env_patch.", "cannot name a variable"),
                (
                    json!({ "env_patch": { "BOBBIN_DEV": "1" } }),
                    "env_patch.BOBBIN_DEV",
                    "belong to the runtime",
                ),
                (json!({ "env_patch": { "MODEL_KEY": TOKEN } }), "env_patch.MODEL_KEY", "API key of a model"),
                (json!({ "env_patch": { "A": null } }), "env_patch.A", "must be a text"),
                (json!({ "env_patch": { "A": { "b": TOKEN } } }), "env_patch.A", "must be a text"),
                (json!({ "env_patch": { "A": long } }), "env_patch.A", "the limit is 32768"),
                (json!({ "env_patch": many }), "env_patch", "the limit is 200"),
                (
                    json!({ "env_delete": many.as_object().unwrap().keys().collect::<Vec<_>>() }),
                    "env_delete",
                    "the limit is 200",
                ),
                (json!({ "env_patch": large }), "env", "the limit is 262144"),
                (
                    json!({ "env_patch": { "A": "1" }, "env_type_patch": { "A": "hidden" } }),
                    "env_type_patch.A",
                    "`text` or `secret`",
                ),
                (
                    json!({ "env_patch": { "A": "1" }, "env_type_patch": { "B": "text" } }),
                    "env_type_patch.B",
                    "has no value here",
                ),
                (
                    json!({ "env_patch": { "A": "1" }, "env_delete": ["A"] }),
                    "env_delete",
                    "both set and deleted",
                ),
                (json!({ "env_delete": "A" }), "env_delete", "a list of names"),
                (json!({ "env_delete": [] }), "tags", "required"),
            ] {
                let seen = patch(&sim, body).await;
                let error = &seen.body["error"];
                assert!(matches!(seen.status, 400 | 413), "{error}");
                assert!(
                    error["field"] == field && error["message"].as_str().unwrap().contains(says),
                    "{error}"
                );
                assert!(!error.to_string().contains("canary"), "{error}");
            }
            assert_eq!(shown(&sim).await, (json!({}), json!({})));
            sim.terminate().await;
            let seen = patch(&sim, json!({ "env_patch": { "A": "1" } })).await;
            assert_eq!((seen.status, &seen.body["error"]["code"]), (409, &json!("terminated")));
        })
        .calm();
}

#[test]
fn a_thread_is_not_created_without_what_its_agent_requires() {
    let create = |sim: &Sim, body: Value| {
        let sim = sim.clone();
        async move { sim.insist(ThreadRoute::Create, &[], None, body.to_string()).await }
    };
    told("required variables")
        .define(|catalog| {
            let required = |name: &str| json!({ "name": name, "type": "secret", "required": true });
            let scoped = json!({ "name": "SCOPED", "type": "secret", "required": true, "scoped": true });
            let prompt = |variables: Value, tools: Value| {
                json!({ "toolDescription": "d", "prompt": "x", "model": "m", "variables": variables, "tools": tools })
            };
            catalog["prompts"]["p"]["tools"] =
                json!([{ "name": "work", "env": { "ENTRY": "given" } }, "sub", "other"]);
            catalog["prompts"]["sub"] = prompt(json!([required("IN_SUB")]), json!(["work", "sub", "deep"]));
            catalog["prompts"]["deep"] = prompt(json!([]), json!(["deep_tool", "sub"]));
            catalog["prompts"]["b"] = prompt(json!([required("ON_SIDE_B")]), json!([]));
            catalog["prompts"]["handed"] = prompt(json!([required("HANDED"), scoped]), json!([]));
            catalog["tools"]["work"]["variables"] = json!([required("ENTRY")]);
            catalog["tools"]["deep_tool"] = json!({ "description": "d", "run": { "native": "work" },
                "variables": [required("DEEP"), { "name": "NOT_NEEDED", "type": "text" }] });
            catalog["agents"]["helper"]["sideB"] = json!({ "prompt": "b" });
            catalog["agents"]["helper"]["variables"] = json!([required("OF_AGENT"), scoped]);
            catalog["agents"]["other"] = json!({ "sideA": { "prompt": "handed" }, "exposeAsTool": true,
                "toolDescription": "d", "env": { "OF_OTHER": "x" }, "variables": [required("OF_OTHER")] });
        })
        .setup(|sim| {
            let env = json!({ "OF_AGENT": "", "SCOPED": "1", "ENTRY": "2", "IN_SUB": "3", "DEEP": "4",
                "HANDED": "5", "ON_SIDE_B": "6" });
            *sim.born.borrow_mut() = json!({ "agent_id": "helper", "tenvs": env });
        })
        .drive(move |sim| async move {
            // The story's own thread has all of them.
            sim.insist(ThreadRoute::Delete, &[], None, String::new()).await;
            let tables = || sim.world.database.ask::<i64>("SELECT count(*) FROM sqlite_schema");
            let before = tables();
            let seen = create(&sim, json!({ "agent_id": "helper", "env": { "DEEP": "1" } })).await;
            let error = &seen.body["error"];
            assert_eq!((seen.status, &error["code"]), (400, &json!("missing_variables")), "{error}");
            let names = "ENTRY, HANDED, IN_SUB, OF_AGENT, ON_SIDE_B, SCOPED.";
            assert!(error["message"].as_str().unwrap().ends_with(names), "{error}");
            for (body, field) in [
                (json!({ "agent_id": "helper", "env": {}, "tenvs": {} }), "tenvs"),
                (json!({ "agent_id": "helper", "env": { "1": "" } }), "env.1"),
                (json!({ "agent_id": "helper", "env_types": { "A": "text" } }), "env_types.A"),
            ] {
                let seen = create(&sim, body).await;
                assert_eq!((seen.status, &seen.body["error"]["field"]), (400, &json!(field)), "{}", seen.body);
            }
            assert_eq!(sim.once(ThreadRoute::Get, &[], None, String::new()).await.unwrap().status, 404);
            assert_eq!(tables(), before);
            // What the levels below give need not be given.
            var(&sim, "ON_SIDE_B", "of the Worker");
            let env = json!({ "DEEP": "1", "HANDED": "1", "ENTRY": "1", "IN_SUB": "1", "OF_AGENT": "1", "SCOPED": "1" });
            assert_eq!(create(&sim, json!({ "agent_id": "helper", "env": env })).await.status, 200);
        })
        .calm();
}

#[test]
fn without_a_key_no_value_is_taken_and_a_lost_key_is_named() {
    told("keys")
        .drive(|sim| async move {
            let city =
                |city: &str| json!({ "env_patch": { "CITY": city }, "env_type_patch": { "CITY": "text" } });
            for (keys, says) in [("", "no key"), ("a=short", "entry 1"), (&KEY_A[2..], "entry 1 has no id")] {
                var(&sim, "BOBBIN_ENCRYPTION_KEYS", keys);
                let seen = sim.once(ThreadRoute::Patch, &[], None, city("Lisbon").to_string()).await.unwrap();
                let error = &seen.body["error"];
                assert_eq!((seen.status, &error["code"]), (503, &json!("encryption_unavailable")), "{error}");
                assert!(error["message"].as_str().unwrap().contains(says), "{error}");
                assert!(error["hint"].as_str().unwrap().contains("32 random bytes"), "{error}");
            }
            var(&sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
            assert_eq!(patch(&sim, city("Lisbon")).await.status, 200);
            assert_eq!(patch(&sim, json!({ "env_patch": { "TOKEN": TOKEN } })).await.status, 200);
            let keys = || sim.world.database.ask::<String>("SELECT DISTINCT key FROM env");
            // A new key comes first: the old one still opens, and the next change encrypts all of it anew.
            var(&sim, "BOBBIN_ENCRYPTION_KEYS", &format!("{KEY_B},{KEY_A}"));
            sim.evict().await;
            sim.ask("hello").await;
            assert_eq!((system(&sim).as_str(), keys()), ("You help in Lisbon.", vec!["a".to_owned()]));
            assert_eq!(patch(&sim, json!({ "env_patch": { "MODE": "x" } })).await.status, 200);
            assert_eq!(keys(), ["b"]);
            var(&sim, "BOBBIN_ENCRYPTION_KEYS", KEY_B);
            sim.evict().await;
            assert_eq!(shown(&sim).await.0, json!({ "CITY": "Lisbon" }));
            // Without it, what is stored cannot be read, and nothing else takes its place.
            var(&sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
            var(&sim, "CITY", "of the Worker");
            sim.evict().await;
            let types = json!({ "CITY": "text", "MODE": "secret", "TOKEN": "secret" });
            assert_eq!(shown(&sim).await, (json!({}), types));
            let told = sim.ask("use work").await["message"]["content"].to_string();
            assert!(told.contains("cannot run") && told.contains("the key “b”"), "{told}");
            assert_eq!(system(&sim), "You help in .");
            // It can be set anew, and taken away.
            assert_eq!(patch(&sim, city("Porto")).await.status, 200);
            assert_eq!(patch(&sim, json!({ "env_delete": ["TOKEN", "MODE"] })).await.status, 200);
            sim.ask("use work").await;
            assert_eq!(system(&sim), "You help in Porto.");
        })
        .calm();
}

// ---- the account and the instance ---------------------------------------------------------------------------

/// A version and its rows.
type Versioned = (i64, Vec<EncryptedRow>);

/// The values in directories, by the directory's name.
#[derive(Clone, Default)]
pub(super) struct Directories {
    held: Rc<RefCell<BTreeMap<String, Versioned>>>,
    asked: Rc<Cell<usize>>,
    refuses: Rc<Cell<usize>>,
}

impl Directories {
    pub(super) fn serve(&self, sim: &Sim) {
        let this = self.clone();
        sim.world.outside.sibling(move |call| {
            let call: Value = serde_json::from_str(call).unwrap();
            if call["call"] != "env" {
                return Ok(r#"{"status":204}"#.into());
            }
            this.asked.set(this.asked.get() + 1);
            if this.refuses.get() > 0 {
                this.refuses.set(this.refuses.get() - 1);
                return Err(bobbin::Error::new(Code::Overloaded, "out of reach"));
            }
            let held = this.held.borrow();
            let (version, rows) = held.get(call["directory"].as_str().unwrap()).cloned().unwrap_or_default();
            let body = match call["ask"]["rows"] == version {
                true => json!({ "version": version }),
                false => json!({ "version": version, "values": rows }),
            };
            Ok(json!({ "status": 200, "body": body }).to_string())
        });
    }

    fn set(&self, directory: &str, name: &str, kind: VariableKind, value: &str) {
        let context = format!("directory {directory}\0{name}\0{}", kind.as_str());
        let sealed = Keys::parse(KEY_A).unwrap().seal([9; 16], &context, value).unwrap();
        let row =
            EncryptedRow { name: name.into(), kind, key: sealed.key, sealed: STANDARD.encode(sealed.bytes) };
        let mut held = self.held.borrow_mut();
        let (version, rows) = held.entry(directory.into()).or_default();
        rows.retain(|other| other.name != name);
        rows.push(row);
        *version += 1;
    }
}

fn levels() -> Scenario {
    told("values of an account and the instance")
        .setup(|sim| *sim.born.borrow_mut() = json!({ "agent_id": "helper", "user_id": "ada" }))
        .drive(|sim| async move {
            let directories = Directories::default();
            directories.serve(&sim);
            sim.ask("hello").await;
            assert_eq!(system(&sim), "You help in .");
            for (level, city) in
                [("root", "Rome"), ("o:ada", "Athens"), ("root", "Rouen"), ("o:ada", "Arles")]
            {
                directories.set(level, "CITY", VariableKind::Text, city);
                sim.ask("hello").await;
                let expected = if level == "root" && city == "Rouen" { "Athens" } else { city };
                assert_eq!(system(&sim), format!("You help in {expected}."), "seen by the next run");
            }
            directories.set("root", "TOKEN", VariableKind::Text, "the-token-of-the-instance");
            let asked = directories.asked.get();
            let said = sim.ask("use work").await["message"]["content"].to_string();
            assert!(said.contains("[redacted TOKEN]") || said.contains("may or may not"), "{said}");
            assert!(
                directories.asked.get() - asked <= 2 + 6 * sim.world.faults.borrow().fired.len(),
                "once a run"
            );
        })
        .check(|sim, _| nowhere(sim, "the-token-of-the-instance"))
}

#[test]
fn a_value_of_the_account_or_the_instance_counts_from_the_next_run_on() {
    levels().sweep();
}

#[test]
fn a_directory_out_of_reach_is_asked_again_and_then_the_step_is() {
    told("out of reach")
        .drive(|sim| async move {
            let directories = Directories::default();
            directories.serve(&sim);
            directories.set("root", "CITY", VariableKind::Text, "Rome");
            directories.refuses.set(2);
            sim.ask("hello").await;
            assert_eq!((system(&sim).as_str(), directories.asked.get()), ("You help in Rome.", 3));
            directories.refuses.set(4);
            sim.ask("hello").await;
            assert_eq!(system(&sim), "You help in Rome.");
            let logs = sim.get(ThreadRoute::ListLogs, &[]).await["logs"].to_string();
            assert!(logs.contains("recovery"), "{logs}");
        })
        .calm();
}

#[test]
fn who_uses_no_value_asks_for_none() {
    super::story("no values")
        .setup(|sim| var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A))
        .drive(|sim| async move {
            let directories = Directories::default();
            directories.serve(&sim);
            sim.ask("use work").await;
            assert_eq!(directories.asked.get(), 0);
        })
        .calm();
    told("no keys")
        .setup(|sim| var(sim, "BOBBIN_ENCRYPTION_KEYS", ""))
        .drive(|sim| async move {
            let directories = Directories::default();
            directories.serve(&sim);
            sim.ask("use work").await;
            assert_eq!(directories.asked.get(), 0);
        })
        .calm();
}

#[test]
fn the_first_level_that_has_a_name_gives_its_value() {
    // (level, what it gives); taken away one by one, the next one steps in.
    let steps = ["entry", "thread", "account", "Worker", "instance", "agent", "prompt"];
    for missing in 0..=steps.len() {
        let has =
            move |level: &str| steps.iter().position(|step| *step == level).is_some_and(|at| at >= missing);
        told("the order of values")
            .define(move |catalog| {
                let env = |level: &str| if has(level) { json!({ "MODE": level }) } else { json!({}) };
                catalog["prompts"]["p"]["tools"] =
                    json!([{ "name": "work", "env": env("entry"), "options": { "a": 1 } }]);
                catalog["prompts"]["p"]["env"] = env("prompt");
                catalog["agents"]["helper"]["env"] = env("agent");
            })
            .setup(move |sim| {
                *sim.born.borrow_mut() = json!({ "agent_id": "helper", "user_id": "ada" });
                if has("thread") {
                    sim.born.borrow_mut()["env"] = json!({ "MODE": "thread" });
                }
                if has("Worker") {
                    var(sim, "MODE", "Worker");
                }
                let directories = Directories::default();
                for (level, directory) in [("account", "o:ada"), ("instance", "root")] {
                    if has(level) {
                        directories.set(directory, "MODE", VariableKind::Text, level);
                    }
                }
                directories.serve(sim);
            })
            .drive(move |sim| async move {
                let said = sim.ask("use work").await["message"]["content"].as_str().unwrap().to_owned();
                let given: Value = serde_json::from_str(said.strip_prefix("done: ").unwrap()).unwrap();
                assert_eq!(given["MODE"].as_str(), steps.get(missing).copied(), "{said}");
            })
            .once();
    }
}

#[test]
fn values_cost_no_statement_where_there_are_none_and_none_once_they_are_read() {
    let cost = |env: Value| {
        let spent = Rc::new(Cell::new(0));
        let place = spent.clone();
        told("the cost of values")
            .setup(move |sim| *sim.born.borrow_mut() = json!({ "agent_id": "helper", "env": env }))
            .drive(move |sim| {
                let place = place.clone();
                async move {
                    sim.ask("hello").await;
                    sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
                    let (_, counters) = sim.spent(sim.ask("again")).await;
                    place.set(counters.statements);
                }
            })
            .once();
        spent.get()
    };
    assert_eq!(cost(json!({})), cost(json!({ "CITY": "Lisbon", "TOKEN": TOKEN })));
    let plain = Rc::new(Cell::new(0));
    let place = plain.clone();
    super::story("no values at all")
        .drive(move |sim| {
            let place = place.clone();
            async move {
                sim.ask("hello").await;
                sim.until("idle", |sim| sim.world.executor.waiting(false).is_empty()).await;
                place.set(sim.spent(sim.ask("again")).await.1.statements);
            }
        })
        .once();
    assert_eq!(cost(json!({})), plain.get());
}
