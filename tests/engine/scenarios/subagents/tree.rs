//! Children of children.

use serde_json::{Value, json};

use crate::host::SECOND_US;

use super::{agent, goes_on, heard, lists, references, story, tell, times, waits};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![waited_for(), not_waited_for(), mixed()]
}

fn tree(name: &'static str, leaf: fn(&str) -> Value, research: fn(&str) -> Value) -> Scenario {
    story(name)
        .define(move |catalog| {
            agent(catalog, "leaf", &json!([]));
            agent(catalog, "research", &json!([leaf("leaf"), "work"]));
            lists(catalog, json!([research("research")]));
        })
        .drive(|sim| async move {
            let research = json!({ "q": r#"call leaf {"q":"say leaf."}"# });
            tell(&sim, &format!("call research {research}")).await;
        })
}

fn waited_for() -> Scenario {
    tree("three levels that wait", waits, waits).check(|_, history| {
        let results = history.texts("tool");
        assert_eq!((results.len(), times(&results, "leaf.")), (1, 1), "{results:?}");
        assert_eq!(history.family.len(), 2);
    })
}

/// The middle one ends its session with its first answer, and so its child: what that comes to nobody hears.
fn not_waited_for() -> Scenario {
    tree("three levels that do not wait", goes_on, goes_on).terms(|terms| terms.one_answer = false).check(
        |_, history| {
            let heard = heard(history);
            assert_eq!(heard.len(), 1, "{heard:?}");
            assert_eq!(history.family.len(), 2);
        },
    )
}

fn mixed() -> Scenario {
    tree("three levels, of which one waits", waits, goes_on).terms(|terms| terms.one_answer = false).check(
        |sim, history| {
            let heard = heard(history);
            assert_eq!((heard.len(), times(&heard, "leaf.")), (1, 1), "{heard:?}");
            let child = sim.of(&references(sim)[0]);
            assert_eq!(references(&child).len(), 1);
        },
    )
}

#[test]
fn three_levels_that_wait_have_one_answer() {
    waited_for().sampled(300).sweep();
}

#[test]
fn three_levels_that_do_not_wait_come_to_rest() {
    not_waited_for().sampled(300).sweep();
}

#[test]
fn three_levels_of_which_one_waits_have_one_answer() {
    mixed().sampled(300).sweep();
}

#[test]
fn a_stop_reaches_a_whole_tree_at_once() {
    let leaf = json!({ "q": r#"call nap {}"# }).to_string();
    let research = json!({ "q": format!("call leaf {leaf}") }).to_string();
    story("a tree that is stopped")
        .define(|catalog| {
            agent(catalog, "leaf", &json!(["nap"]));
            agent(catalog, "research", &json!([waits("leaf")]));
            lists(catalog, json!([goes_on("research")]));
        })
        .drive(move |sim| {
            let research = research.clone();
            async move {
                sim.send(&format!("call research {research}")).await;
                // The leaf is in its nap of three seconds, which ends long after the stop.
                sim.until_executions(1).await;
                sim.stop().await;
                // One hop each.
                sim.world.pause(SECOND_US / 5).await;
                let runs = "SELECT count(*) FROM runs WHERE phase != 'ended'";
                for thread in sim.family() {
                    assert_eq!(thread.member.database.ask::<i64>(runs), [0], "{}", thread.member.id);
                }
                let asked = sim.world.outside.requests.borrow().len();
                sim.world.pause(10 * SECOND_US).await;
                assert_eq!(sim.world.outside.requests.borrow().len(), asked, "no model is asked after it");
                assert_eq!(sim.world.outside.executions.borrow().len(), 1, "no tool is called after it");
            }
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.overlap = true;
            terms.outcomes = vec!["stopped", "completed"];
        })
        .calm();
}
