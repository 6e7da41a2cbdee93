//! Servers that want to know who asks: tokens, and who renews them (docs/mcp.md).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use super::env::{KEY_A, nowhere, var};
use super::mcp::{counting, shop};
use crate::host::Answer;
use crate::host::mcp::Server;
use crate::sim::Sim;
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![application()]
}

/// Version, token, who renews it, until when.
type Kept = (i64, Option<String>, Option<String>, i64);

/// The tokens in directories, as they keep them.
#[derive(Clone, Default)]
pub(super) struct Tokens(Rc<RefCell<BTreeMap<String, Kept>>>);

impl Tokens {
    pub(super) fn serve(&self, sim: &Sim) {
        let (this, clock) = (self.clone(), sim.world.clone());
        sim.world.outside.sibling(move |call| {
            let call: Value = serde_json::from_str(call).unwrap();
            match call["call"].as_str().unwrap() {
                "token" => {}
                "env" => return Ok(r#"{"status":200,"body":{"version":0,"values":[]}}"#.into()),
                _ => return Ok(r#"{"status":204}"#.into()),
            }
            let name = call["name"].as_str().unwrap().to_owned();
            let mut all = this.0.borrow_mut();
            let (version, token, holder, until) = all.entry(name).or_default();
            let (take, put) = (&call["ask"]["take"], &call["ask"]["put"]);
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let taken = if take.is_object() {
                let busy = *holder != text(&take["by"]) && *until > clock.now_us();
                let taken = take["version"] == *version && !busy;
                if taken {
                    (*holder, *until) = (text(&take["by"]), take["until_us"].as_i64().unwrap());
                }
                taken
            } else if put.is_object() {
                let taken = put["by"].is_null() || *holder == text(&put["by"]);
                if taken {
                    (*version, *token, *holder, *until) = (*version + 1, text(&put["token"]), None, 0);
                }
                taken
            } else {
                false
            };
            let body = json!({ "version": version, "token": token, "taken": taken });
            Ok(json!({ "status": 200, "body": body }).to_string())
        });
    }
}

/// The server `shop`, which takes tokens alone.
pub(super) fn guarded(sim: &Sim) {
    let world = sim.world.clone();
    let server = Server {
        guard: Some(Rc::new(move |call| {
            let known = world.outside.issuer.knows(call.header("authorization"));
            let metadata =
                "Bearer resource_metadata=\"https://mcp.test/.well-known/oauth-protected-resource/shop\"";
            (!known).then(|| Answer::status(401, "").header("www-authenticate", metadata))
        })),
        ..counting()
    };
    sim.world.outside.mcp.serve("shop", server);
}

fn signed(name: &'static str, auth: Value) -> Scenario {
    shop(name)
        .define(move |catalog| {
            catalog["mcp"]["shop"]["auth"] = auth.clone();
            catalog["mcp"]["shop"]["variables"] = json!([{ "name": "SHOP_SECRET", "type": "secret" }]);
            for tool in ["work", "safe"] {
                catalog["tools"][tool]["variables"] = json!([{ "name": "SHOP_SECRET", "type": "secret" }]);
            }
        })
        .setup(|sim| {
            var(sim, "BOBBIN_ENCRYPTION_KEYS", KEY_A);
            var(sim, "SHOP_SECRET", "s3cret");
            Tokens::default().serve(sim);
            guarded(sim);
        })
}

/// The application signs in by itself. Its token is asked for once, and again when it has ended or is not taken any more.
fn application() -> Scenario {
    let auth =
        json!({ "type": "client_credentials", "clientId": "app", "clientSecret": "{{env SHOP_SECRET}}" });
    signed("a server that knows the application", auth)
        .drive(|sim| async move {
            sim.ask("use work,safe").await;
            sim.evict().await;
            sim.ask("use safe").await;
            // The next one has ended as soon as it was used.
            sim.world.outside.issuer.lasts.set(30);
            sim.world.outside.issuer.revoke();
            sim.ask("use safe").await;
            sim.ask("use safe").await;
        })
        .check(|sim, history| {
            let results = history.texts("tool");
            assert_eq!(results.len(), 5, "{results:?}");
            assert!(results[1..].iter().all(|text| text.starts_with("find ")), "{results:?}");
            let issuer = &sim.world.outside.issuer;
            if history.faults == 0 {
                assert_eq!(results[0], "work 0");
                assert_eq!(issuer.asked.borrow().len(), 3, "one for all, one after each end");
            }
            nowhere(sim, "of-the-issuer");
            nowhere(sim, "s3cret");
        })
}

#[test]
fn an_application_gets_a_token_and_another_when_it_has_ended() {
    application().sweep();
}

/// Calls of one reply that are made at the same time ask for one token.
#[test]
fn readers_of_a_reply_share_one_token() {
    let auth =
        json!({ "type": "client_credentials", "clientId": "app", "clientSecret": "{{env SHOP_SECRET}}" });
    signed("readers that share a token", auth)
        .define(|catalog| {
            catalog["tools"]["safe"]["tier"] = json!("read_only");
            catalog["prompts"]["p"]["parallelToolCalls"] = json!(true);
            catalog["prompts"]["p"]["parallelReadOnly"] = json!(true);
        })
        .terms(|terms| terms.overlap = true)
        .drive(|sim| async move {
            sim.ask("use safe,safe,safe").await;
        })
        .check(|sim, history| {
            assert!(history.texts("tool").iter().all(|text| text.starts_with("find ")));
            assert_eq!(sim.world.outside.issuer.asked.borrow().len(), 1);
        })
        .once();
}
