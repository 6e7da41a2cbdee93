//! What must hold of budgets after every story: what models gave out is booked, and what is lent is held.

use serde_json::Value;

use crate::sim::Sim;

/// What models gave out is booked, whatever was lost: of a thread whose runs all have a budget.
pub fn paid(sim: &Sim, broken: &mut Vec<String>) {
    let database = &sim.member.database;
    if !database.has_table("runs") {
        return;
    }
    let without: Vec<i64> = database.ask("SELECT count(*) FROM runs WHERE budget IS NULL");
    let ledgers: Vec<String> = database.ask("SELECT budget FROM runs WHERE budget IS NOT NULL");
    if without != [0] || ledgers.is_empty() {
        return;
    }
    let (mut cost, mut tokens) = (0, 0);
    for ledger in &ledgers {
        let ledger: Value = serde_json::from_str(ledger).unwrap();
        cost += ledger["s"][0].as_i64().unwrap();
        tokens += ledger["s"][1].as_i64().unwrap();
    }
    // What summaries have used after their runs is the thread's.
    let apart: Vec<String> = database.ask("SELECT budget FROM meta WHERE budget IS NOT NULL");
    for apart in &apart {
        let apart: Value = serde_json::from_str(apart).unwrap();
        cost += apart["a"][0].as_i64().unwrap_or(0);
        tokens += apart["a"][1].as_i64().unwrap_or(0);
    }
    let catalog = serde_json::to_value(&sim.catalog.borrow().models).unwrap();
    let models: Vec<&Value> = catalog.as_object().into_iter().flat_map(|models| models.values()).collect();
    let (mut given_cost, mut given_tokens) = (0.0, 0);
    for given in sim.world.outside.given.borrow().iter().filter(|given| given.thread == sim.member.id) {
        let model = models.iter().find(|model| model["model"] == given.model.as_str());
        let price = |name: &str| model.and_then(|model| model[name].as_f64()).unwrap_or(0.0);
        given_cost += given.input as f64 * price("inputPrice") + given.output as f64 * price("outputPrice");
        given_tokens += (given.input + given.output) as i64;
    }
    if tokens < given_tokens || (cost as f64) < given_cost - 1e-6 {
        broken.push(format!(
            "{tokens} tokens and {cost} millionths are booked; models gave out {given_tokens} and {given_cost}: {ledgers:?}"
        ));
    }
}

/// What is lent is what children hold: of a thread that has come to rest no run goes on, and all of it is the thread's.
pub fn lent(sim: &Sim, broken: &mut Vec<String>) {
    let database = &sim.member.database;
    if !sim.member.has_table("children") || !sim.member.has_table("meta") {
        return;
    }
    let active: Vec<i64> = database.ask("SELECT id FROM runs WHERE phase != 'ended'");
    let parse = |text: &String| serde_json::from_str::<Value>(text).unwrap();
    let held: Vec<String> = database.ask("SELECT budget FROM children WHERE budget IS NOT NULL");
    let held: Vec<Value> = held.iter().map(parse).collect();
    let kept: Vec<String> = database.ask("SELECT budget FROM meta WHERE budget IS NOT NULL");
    let kept = kept.first().map(parse).unwrap_or_default();
    let sums = |of: &dyn Fn(i64) -> bool| -> Vec<i64> {
        let of = held.iter().filter(|child| of(child["r"].as_i64().unwrap()));
        let of: Vec<&Value> = of.collect();
        (0..3).map(|unit| of.iter().map(|child| child["g"][unit].as_i64().unwrap()).sum()).collect()
    };
    let amounts = |of: &Value| -> Vec<i64> { (0..3).map(|unit| of[unit].as_i64().unwrap_or(0)).collect() };
    let apart = sums(&|run| !active.contains(&run));
    if apart != amounts(&kept["c"]) {
        broken.push(format!("children hold {apart:?}, and the thread has {}: {held:?}", kept["c"]));
    }
    for errand in kept["e"].as_array().into_iter().flatten() {
        let run = errand["r"].as_i64().unwrap();
        let of_run = sums(&|of| of == run);
        if of_run != amounts(&errand["c"]) {
            broken.push(format!("children of run {run} hold {of_run:?}, and it has {errand}: {held:?}"));
        }
    }
}
