//! Providers that a crate registers: asked, watched, stopped and replaced like those of this crate.

use bobbin::models::openai::{Decoder, request};
use bobbin::models::{Delta, FinishReason, ProviderCall, ProviderCode, ProviderError, Usage, register};
use serde_json::json;

use super::story;
use crate::host::{Answer, MODEL_URL, SECOND_US};
use crate::sim::{Sim, model};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![relayed(), torn()]
}

/// Chat completions by way of the door that providers are given.
async fn relay(call: ProviderCall, chunks: usize) -> Result<(), ProviderError> {
    let mut incoming =
        call.fetch(request(&call.request, MODEL_URL, call.api_key.as_deref(), call.answer)).await?;
    if !incoming.is_ok() {
        return Err(incoming.refusal().await);
    }
    let (mut decoder, mut deltas) = (Decoder::new(None), Vec::new());
    for _ in 0..chunks {
        let Some(chunk) = incoming.next().await else { break };
        decoder.push(&chunk?, &mut deltas)?;
        call.send_all(&mut deltas).await;
    }
    if chunks < usize::MAX {
        return Err(ProviderError::new(ProviderCode::InvalidRequest, "torn"));
    }
    decoder.finish(&mut deltas)?;
    call.send_all(&mut deltas).await;
    Ok(())
}

async fn say(call: &ProviderCall, text: &str) {
    call.send(Delta::Text(text.into())).await;
}

fn providers(_: &Sim) {
    register("relay", |call| Box::pin(relay(call, usize::MAX)));
    register("torn", |call| Box::pin(relay(call, 2)));
    register("silent", |call| {
        Box::pin(async move {
            say(&call, "half").await;
            std::future::pending().await
        })
    });
    register("patient", |call| {
        Box::pin(async move {
            for n in 0..10 {
                call.sleep(40 * SECOND_US).await;
                if n == 9 {
                    say(&call, "at last").await
                } else {
                    call.keep_alive()
                }
                call.send(Delta::Reasoning("hm".into())).await;
            }
            Ok(())
        })
    });
    register("broken", |_| panic!("no such luck"));
    register("endless", |call| {
        Box::pin(async move {
            loop {
                say(&call, &"x".repeat(1000)).await;
            }
        })
    });
    register("busy", |call| {
        Box::pin(async move {
            match call.stream {
                1 => {
                    let error = ProviderError::new(ProviderCode::RateLimit, "slow down, sk-secret");
                    Err(ProviderError { retry_after_ms: Some(7000), ..error })
                }
                _ => {
                    say(&call, &format!("{} {}", call.definition, call.request.model)).await;
                    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
                    call.send_all(&mut vec![Delta::Finish(FinishReason::Stop), Delta::Usage(usage)]).await;
                    Ok(())
                }
            }
        })
    });
}

/// The clerk behind the model `m` of a provider, with the fallback `m2` of chat completions.
fn on(provider: &'static str) -> Scenario {
    story(provider).setup(providers).define(move |catalog| {
        catalog["models"] = json!({
            "m": { "provider": provider, "model": "m", "fallbacks": ["m2"], "inputPrice": 1, "outputPrice": 2 },
            "m2": model("m2"),
        });
    })
}

fn asked(sim: &Sim) -> Vec<String> {
    sim.world.outside.requests.borrow().iter().map(|request| request.model.clone()).collect()
}

fn relayed() -> Scenario {
    on("relay")
        .drive(|sim| async move {
            sim.ask("use work").await;
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers()[1..], ["re: hello"]);
            if history.faults == 0 {
                assert_eq!(history.answers()[0], "done: w0");
            }
            assert!(asked(sim).iter().all(|model| model == "m"), "{:?}", asked(sim));
        })
}

#[test]
fn a_registered_provider_is_asked_like_any_other() {
    relayed().sweep();
}

fn torn() -> Scenario {
    on("torn")
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["re: hello"]);
            if history.faults == 0 {
                assert_eq!(
                    asked(sim),
                    ["m", "m2"],
                    "what it said so far is dropped, and the fallback is asked"
                );
            }
        })
}

#[test]
fn one_that_fails_in_the_middle_is_followed_by_the_fallback() {
    torn().sweep();
}

#[test]
fn one_that_breaks_its_word_is_followed_by_the_fallback() {
    for (provider, least, most) in [("silent", 45, 46), ("broken", 0, 0), ("endless", 0, 0)] {
        on(provider)
            .drive(|sim| async move {
                sim.ask("hello").await;
            })
            .check(move |sim, history| {
                assert_eq!(history.answers(), ["re: hello"]);
                assert_eq!(asked(sim), ["m2"], "{provider} asks nobody");
                let waited = sim.world.outside.requests.borrow()[0].at_us / SECOND_US;
                let began = history.of("user").next().unwrap()["created_at"].as_i64().unwrap() / SECOND_US;
                assert!((least..=most + 1).contains(&(waited - began)), "{provider}: {} s", waited - began);
            })
            .calm();
    }
}

#[test]
fn one_that_says_that_it_works_may_take_its_time() {
    on("patient")
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(history.answers(), ["at last"]);
            assert_eq!(asked(sim).len(), 0);
        })
        .calm();
}

#[test]
fn its_failures_are_retried_by_their_kind_and_its_tokens_cost() {
    on("busy")
        .define(|catalog| catalog["models"]["m"]["apiKeyEnv"] = "MODEL_KEY".into())
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("MODEL_KEY".into(), "sk-secret".into());
        })
        .drive(|sim| async move {
            let began = sim.world.now_us();
            sim.ask("hello").await;
            let waited = (sim.world.now_us() - began) / SECOND_US;
            assert!((6..=8).contains(&waited), "{waited} s");
            let logs = sim.get(bobbin::request::ThreadRoute::ListLogs, &[]).await;
            let text = logs.to_string();
            assert!(!text.contains("sk-secret") && text.contains("slow down, [redacted]"), "{text}");
            assert!(text.contains("\"cost_total\":0.00002"), "{text}");
        })
        .check(|_, history| assert_eq!(history.answers(), ["m m"]))
        .calm();
}

#[test]
fn a_stop_lets_go_of_it() {
    on("silent")
        .drive(|sim| async move {
            sim.send("hello").await;
            sim.world.pause(3 * SECOND_US).await;
            assert_eq!(sim.stop().await.body["status"], "stopped");
            sim.world.pause(300 * SECOND_US).await;
        })
        .check(|sim, _| assert_eq!(asked(sim).len(), 0, "a stop never walks the chain of fallbacks"))
        .terms(|terms| {
            terms.outcomes = vec!["stopped"];
            terms.one_answer = false;
        })
        .calm();
}

#[test]
fn one_that_is_not_there_is_passed_over() {
    on("nowhere")
        .drive(|sim| async move {
            sim.ask("hello").await;
        })
        .check(|sim, history| {
            assert_eq!(asked(sim), ["m2"]);
            assert_eq!(history.answers(), ["re: hello"]);
        })
        .calm();
    on("nowhere")
        .define(|catalog| catalog["models"]["m"]["fallbacks"] = json!([]))
        .answers(|_| Answer::refused())
        .drive(|sim| async move {
            let outcome = sim.ask("hello").await;
            assert_eq!(outcome["reason"], "model_error", "{outcome}");
        })
        .check(|_, history| {
            let told = history.statuses("run_failed")[0]["content"].as_str().unwrap();
            assert!(told.contains("provider \"nowhere\" is not part of this deployment"), "{told}");
        })
        .terms(|terms| terms.outcomes = vec!["failed"])
        .calm();
}
