//! Tokens for MCP servers: which thread renews one.

use std::rc::Rc;

use bobbin::directory::{Directory, DirectoryCall, TokenAsk};
use serde_json::{Value, json};

use super::call;
use super::host::World;

fn ask(directory: &Rc<Directory>, name: &str, ask: TokenAsk) -> Value {
    let (status, body) = call(directory, &DirectoryCall::Token { name: name.into(), ask });
    assert_eq!(status, 200, "{body}");
    body
}

fn take(version: i64, by: &str, until_us: i64) -> TokenAsk {
    TokenAsk::Take { version, by: by.into(), until_us }
}

fn put(by: Option<&str>, token: Option<&str>) -> TokenAsk {
    TokenAsk::Put { by: by.map(str::to_owned), token: token.map(str::to_owned) }
}

#[test]
fn one_thread_at_a_time_renews_a_token() {
    let world = World::new();
    let directory = world.open();
    let now = world.now_us.get();
    let said = |version: i64, token: Value, taken: bool| json!({ "version": version, "token": token, "taken": taken });
    assert_eq!(ask(&directory, "/shop", TokenAsk::Read), said(0, json!(null), false));
    assert_eq!(ask(&directory, "/shop", take(0, "a", now + 10)), said(0, json!(null), true));
    // It may take it again, as after a crash; nobody else may.
    assert_eq!(ask(&directory, "/shop", take(0, "b", now + 10))["taken"], false);
    assert_eq!(ask(&directory, "/shop", take(0, "a", now + 10))["taken"], true);
    assert_eq!(ask(&directory, "/shop", put(Some("b"), Some("of b")))["taken"], false);
    assert_eq!(ask(&directory, "/shop", put(Some("a"), Some("of a"))), said(1, json!("of a"), true));
    // Whoever knows an older one is shown this one.
    assert_eq!(ask(&directory, "/shop", take(0, "b", now + 10)), said(1, json!("of a"), false));
    assert_eq!(ask(&directory, "/shop", put(Some("a"), Some("late")))["taken"], false, "once");
    // Who does not come back has it only so long.
    assert_eq!(ask(&directory, "/shop", take(1, "b", now + 10))["taken"], true);
    world.now_us.set(now + 10);
    assert_eq!(ask(&directory, "/shop", take(1, "c", now + 20))["taken"], true);
    assert_eq!(ask(&directory, "/shop", put(Some("b"), Some("late")))["taken"], false);
    // Who has signed in need not have taken it.
    assert_eq!(ask(&directory, "/shop", put(None, None)), said(2, json!(null), true));
    assert_eq!(ask(&directory, "/other", TokenAsk::Read), said(0, json!(null), false));
}

#[test]
fn tokens_of_a_thread_go_with_it() {
    let world = World::new();
    let directory = world.open();
    for name in ["t1/shop", "t10/shop", "/shop"] {
        ask(&directory, name, put(None, Some("x")));
    }
    call(&directory, &DirectoryCall::Delete { id: "t1".into(), life: 1 });
    let left = |name: &str| ask(&directory, name, TokenAsk::Read)["token"].is_string();
    assert_eq!([left("t1/shop"), left("t10/shop"), left("/shop")], [false, true, true]);
}
