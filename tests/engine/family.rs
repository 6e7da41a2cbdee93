//! What holds between the threads of a family that has come to rest (docs/durability.md): parent and child know each
//! other, each has heard everything that the other said, once, and nobody waits.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::contract::Terms;
use crate::host::Member;
use crate::sim::Sim;

/// A row of a registry.
struct Child {
    reference: String,
    state: String,
    sent: i64,
    received: i64,
    receipt: Option<i64>,
}

fn children(member: &Member) -> Vec<Child> {
    let rows: Vec<String> = member.database.ask(
        "SELECT json_array(reference, state, sent, received, receipt) FROM children ORDER BY created_us",
    );
    let read = |row: &String| {
        let (reference, state, sent, received, receipt) = serde_json::from_str(row).unwrap();
        Child { reference, state, sent, received, receipt }
    };
    rows.iter().map(read).collect()
}

/// What a thread knows of its parent; `null` for a top-level thread.
pub fn parent(member: &Member) -> Value {
    let stored: Vec<Option<String>> = member.database.ask("SELECT parent FROM meta");
    stored.into_iter().flatten().next().map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

/// Says everything that does not hold.
pub fn check(sim: &Sim, terms: &Terms, broken: &mut Vec<String>) {
    let family = sim.family();
    let members: BTreeMap<&str, &Member> =
        family.iter().map(|thread| (thread.member.id.as_str(), &*thread.member)).collect();
    for (id, member) in &members {
        if !member.has_table("children") {
            continue;
        }
        let own = children(member);
        for child in &own {
            with_child(id, child, members.get(child.reference.as_str()).copied(), terms, broken);
        }
        nobody_waits(member, terms, broken);
        let parent = parent(member);
        if parent.is_null() {
            continue;
        }
        reported_once(member, broken);
        let above = parent["thread"].as_str().unwrap_or_default();
        let listed = members
            .get(above)
            .is_some_and(|above| children(above).iter().any(|child| child.reference == *id));
        if !listed {
            broken.push(format!("{id} is an orphan: {above} does not know it"));
        }
    }
}

fn terminated(member: &Member) -> bool {
    member.database.ask::<Option<i64>>("SELECT terminated_us FROM meta")[0].is_some()
}

/// A row of the registry and the thread that it names.
fn with_child(id: &str, child: &Child, member: Option<&Member>, terms: &Terms, broken: &mut Vec<String>) {
    let Child { reference, state, sent, received, receipt } = child;
    if receipt.is_some() && !terms.may_wait {
        broken.push(format!("{id} still waits for {reference}"));
    }
    let Some(member) = member else {
        // One that was never made, or that was deleted.
        if state != "terminated" && state != "pending" {
            broken.push(format!("{id} has {reference} as {state}, which does not exist"));
        }
        return;
    };
    match (state.as_str(), terminated(member)) {
        ("live", false) | ("terminated", true) => {}
        (state, ended) => broken.push(format!("{id} has {reference} as {state}; terminated: {ended}")),
    }
    let parent = parent(member);
    if parent["thread"] != id {
        broken.push(format!("{reference} says that its parent is {}, not {id}", parent["thread"]));
    }
    let counts = &parent["envelopes"];
    // What is said to a thread that takes no more work may have been refused.
    if counts["received"] != *sent && !terminated(member) {
        broken.push(format!("{id} sent {reference} {sent} envelopes, of which it counts {counts}"));
    }
    if counts["sent"] != *received {
        broken.push(format!("{reference} counts {counts}, {id} received {received}"));
    }
}

/// What each run of a child came to was told once. That the parent heard it, the numbers of the letters say.
fn reported_once(member: &Member, broken: &mut Vec<String>) {
    let odd: Vec<String> = member.database.ask(
        "SELECT runs.id || ' (' || runs.reason || '): ' || count(logs.run) FROM runs LEFT JOIN logs
         ON logs.run = runs.id AND logs.kind = 'subagent_report' WHERE outcome IS NOT NULL GROUP BY runs.id
         HAVING count(logs.run) != (runs.reason NOT IN ('stopped_by_parent', 'terminated'))",
    );
    if !odd.is_empty() {
        broken.push(format!("{}: runs and how often each was reported: {}", member.id, odd.join(", ")));
    }
}

/// No receipt waits, no run is parked, no letter lies about.
fn nobody_waits(member: &Member, terms: &Terms, broken: &mut Vec<String>) {
    let id = &member.id;
    let waiting: Vec<i64> = member.database.ask("SELECT id FROM calls WHERE state = 'waiting'");
    if !waiting.is_empty() && !terms.may_wait {
        broken.push(format!("{id}: the receipts {waiting:?} wait"));
    }
    let parked: Vec<i64> = member.database.ask("SELECT id FROM runs WHERE phase LIKE 'parked%'");
    if !parked.is_empty() && !terms.may_wait {
        broken.push(format!("{id}: the runs {parked:?} are parked"));
    }
    let letters: Vec<String> = member.database.ask("SELECT subject FROM outbox WHERE target LIKE 't:%'");
    if !letters.is_empty() {
        broken.push(format!("{id}: letters lie about: {letters:?}"));
    }
}
