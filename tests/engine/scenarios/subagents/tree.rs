//! Children of children.

use serde_json::{Value, json};

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
