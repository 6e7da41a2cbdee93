//! Values of an owner and of the instance.

use std::rc::Rc;

use bobbin::directory::{Directory, DirectoryCall, EnvAsk};
use serde_json::{Value, json};

use super::call;
use super::host::World;

const KEY_A: &str = "a=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const KEY_B: &str = "b=//////////////////////////////////////////8=";

fn patch(directory: &Rc<Directory>, name: &str, body: Value) -> (u16, Value) {
    call(directory, &DirectoryCall::Env { directory: name.into(), ask: EnvAsk::Change(body.to_string()) })
}

fn get(directory: &Rc<Directory>, name: &str) -> Value {
    call(directory, &DirectoryCall::Env { directory: name.into(), ask: EnvAsk::Shown }).1
}

fn rows(directory: &Rc<Directory>, known: Option<i64>) -> Value {
    call(directory, &DirectoryCall::Env { directory: "o:ada".into(), ask: EnvAsk::Rows(known) }).1
}

#[test]
fn values_are_set_shown_as_far_as_they_may_be_and_told_by_version() {
    let world = World::new();
    world.set_var("BOBBIN_ENCRYPTION_KEYS", KEY_A);
    let directory = world.open();
    assert_eq!(rows(&directory, None), json!({ "version": 0, "values": [] }));
    let body = json!({ "env_patch": { "CITY": "Rome", "TOKEN": "hush-hush" }, "env_type_patch": { "CITY": "text" } });
    let shown = json!({ "env": { "CITY": "Rome" }, "env_types": { "CITY": "text", "TOKEN": "secret" } });
    assert_eq!(patch(&directory, "o:ada", body), (200, shown.clone()));
    assert_eq!(get(&directory, "o:ada"), shown);
    let told = rows(&directory, Some(0));
    assert_eq!((&told["version"], told["values"].as_array().unwrap().len()), (&json!(1), 2));
    assert!(!told.to_string().contains("hush") && !told.to_string().contains("Rome"), "{told}");
    assert_eq!(rows(&world.open(), Some(1)), json!({ "version": 1 }));
    // What was stored for one opens for no other.
    assert_eq!(get(&directory, "o:bob")["env"], json!({}));
    let (status, body) = patch(&directory, "o:ada", json!({ "env_delete": ["CITY", "TOKEN"] }));
    assert_eq!((status, body), (200, json!({ "env": {}, "env_types": {} })));
    assert_eq!(
        (world.count("SELECT count(*) FROM env"), rows(&directory, Some(1))["version"].clone()),
        (0, json!(2))
    );
}

#[test]
fn what_is_refused_changes_nothing() {
    let world = World::new();
    world.set_var("BOBBIN_ENCRYPTION_KEYS", KEY_A);
    world.set_var("REGION", "north");
    let directory = world.open();
    for (name, body, status, says) in [
        ("root", json!({ "env_patch": { "A": "1", "REGION": "south" } }), 400, "variable of the Worker"),
        (
            "root",
            json!({ "env_patch": { "OPENAI_API_KEY": "1" }, "env_type_patch": { "OPENAI_API_KEY": "text" } }),
            400,
            "must be `secret`",
        ),
        ("o:ada", json!({ "env_patch": { "A": "1", "OPENAI_API_KEY": "1" } }), 400, "API key of a model"),
        ("o:ada", json!({ "env_patch": { "A": "1", "BOBBIN_DEV": "1" } }), 400, "belong to the runtime"),
        ("o:ada", json!({ "env_type_patch": { "A": "text" } }), 400, "has no value here"),
        ("o:ada", json!({}), 400, "required"),
        ("o:ada", json!([]), 400, "must be a JSON object"),
        ("o:ada", json!({ "env_ptach": { "A": "1" } }), 400, "no field"),
    ] {
        let (given, answer) = patch(&directory, name, body);
        assert_eq!(given, status, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{answer}");
    }
    assert_eq!(
        (world.count("SELECT count(*) FROM env"), world.count("SELECT env_version FROM state")),
        (0, 0)
    );
    assert_eq!(patch(&directory, "o:ada", json!({ "env_patch": { "REGION": "south" } })).0, 200);
    assert_eq!(patch(&directory, "root", json!({ "env_patch": { "OPENAI_API_KEY": "sk-1" } })).0, 200);
}

#[test]
fn keys_are_replaced_and_a_lost_one_hides_a_value() {
    let world = World::new();
    let directory = world.open();
    let body = json!({ "env_patch": { "A": "one" }, "env_type_patch": { "A": "text" } });
    let (status, refused) = patch(&directory, "root", body.clone());
    assert_eq!((status, &refused["error"]["code"]), (503, &json!("encryption_unavailable")));
    world.set_var("BOBBIN_ENCRYPTION_KEYS", KEY_A);
    assert_eq!(patch(&directory, "root", body).0, 200);
    world.set_var("BOBBIN_ENCRYPTION_KEYS", &format!("{KEY_B},{KEY_A}"));
    assert_eq!(patch(&directory, "root", json!({ "env_patch": { "B": "two" } })).0, 200);
    assert_eq!(world.count("SELECT count(*) FROM env WHERE key = 'b'"), 2);
    world.set_var("BOBBIN_ENCRYPTION_KEYS", KEY_B);
    assert_eq!(get(&directory, "root")["env"], json!({ "A": "one" }));
    world.set_var("BOBBIN_ENCRYPTION_KEYS", KEY_A);
    let shown = get(&directory, "root");
    assert_eq!(shown, json!({ "env": {}, "env_types": { "A": "text", "B": "secret" } }));
    let (status, error) = patch(&directory, "root", json!({ "env_type_patch": { "A": "secret" } }));
    assert_eq!(status, 503);
    assert!(error["error"]["message"].as_str().unwrap().contains("the key “b”"), "{error}");
    assert_eq!(patch(&directory, "root", json!({ "env_type_patch": { "B": "text" } })).0, 400);
    assert_eq!(patch(&directory, "root", json!({ "env_delete": ["A", "B"] })).0, 200);
}
