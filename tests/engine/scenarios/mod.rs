//! What happens to threads: stories with every way to fail at every point.

mod any_history;
mod attachments;
mod background;
mod batches;
mod budgets;
mod code;
mod context;
mod cuts;
mod deleted_after_reads;
mod dropped;
mod earlier;
mod edits;
mod effects;
mod effects_crowded;
mod endings;
mod endpoints;
mod env;
mod env_exits;
mod env_shown;
mod execute;
mod expiry;
mod failures;
mod family;
mod family_env;
mod feeds;
mod file_routes;
mod file_search;
mod files;
mod followed;
mod forks;
mod handoff;
mod hooks;
mod hooks_failing;
mod hooks_of_changes;
mod hooks_once;
mod immediate;
mod invoke;
mod keys;
mod limits;
mod mcp;
mod mcp_auth;
mod mcp_eras;
mod mcp_input;
mod mcp_live;
mod mcp_sign_in;
mod mcp_tasks;
mod memories;
mod memories_paid;
mod memories_seen;
mod memories_sources;
mod models;
mod offered;
mod operator;
mod owed;
mod pages;
mod pictures;
mod progress;
mod providers;
mod queue;
mod queue_tool;
mod reasoning;
mod recipes;
mod result_files;
mod retries;
mod retries_parked;
mod runs;
mod schema;
mod scrubbing;
mod shared_memories;
mod shared_memories_late;
mod sides;
mod skills;
mod soak;
mod spans;
mod spans_beside;
mod spans_named;
mod spans_refused;
mod spending;
mod spending_asked;
mod spill;
mod stops;
mod streams;
mod subagent_tools;
mod subagents;
mod subprompts;
mod summary;
mod summary_paid;
mod summary_sides;
mod tiers;
mod tools;
mod turns;
mod values;
mod waits;
mod waits_ending;
mod waits_size;
mod waits_within;
mod window;

use serde_json::{Value, json};

use crate::host::outside::ModelRequest;
use crate::host::{Native, SECOND_US, Say};
use crate::sim::{Sim, native};
use crate::sweep::Scenario;

pub const INDETERMINATE: &str = "The runtime restarted while \"work\" was running. It may or may not have taken \
     effect. Check before trying again.";

/// A model that does as it is told by the last user message: `use a,b` calls these tools in one reply and says
/// `done: <results>`; `loop n` calls `work` in n steps and says `done n`; anything else is repeated.
pub fn clerk(request: &ModelRequest) -> Say {
    let user = request.last_user();
    let results = request.results();
    if let Some(tools) = user.strip_prefix("use ") {
        if results.is_empty() {
            return tools.split(',').fold(Say::default(), |say, tool| say.and_call(tool, "{}"));
        }
        return Say::text(format!("done: {}", results.join("|"))).chunks(2);
    }
    if let Some(n) = user.strip_prefix("loop ") {
        let n: usize = n.parse().unwrap();
        if results.len() < n {
            return Say::call("work", &json!({ "n": results.len() }));
        }
        return Say::text(format!("done {n}"));
    }
    Say::text(format!("re: {user}")).chunks(3)
}

/// A native tool `work` that takes a second and says how often it ran before.
pub fn work(sim: &Sim) {
    sim.world.outside.native("work", |_, before| {
        Native::Gives(SECOND_US, bobbin::definitions::message::ToolResult::success(format!("w{before}")))
    });
}

/// The tool `work` in a catalog.
pub fn with_work() -> Value {
    json!({ "work": native(false) })
}

/// A scenario with the clerk and the tool `work`.
pub fn story(name: &'static str) -> Scenario {
    Scenario::new(name, &with_work()).says(clerk).setup(work)
}

/// Stories that the soak shakes.
pub fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    all.extend(turns::all());
    all.extend(earlier::all());
    all.extend(sides::all());
    all.extend(tools::all());
    all.extend(tiers::all());
    all.extend(batches::all());
    all.extend(mcp::all());
    all.extend(mcp_auth::all());
    all.extend(mcp_eras::all());
    all.extend(mcp_input::all());
    all.extend(offered::all());
    all.extend(mcp_tasks::all());
    all.extend(mcp_live::all());
    all.extend(mcp_sign_in::all());
    all.extend(background::all());
    all.extend(queue::all());
    all.extend(stops::all());
    all.extend(models::all());
    all.extend(providers::all());
    all.extend(retries::all());
    all.extend(retries_parked::all());
    all.extend(skills::all());
    all.extend(reasoning::all());
    all.extend(streams::all());
    all.extend(values::all());
    all.extend(code::all());
    all.extend(context::all());
    all.extend(summary::all());
    all.extend(summary_paid::all());
    all.extend(cuts::all());
    all.extend(forks::all());
    all.extend(followed::all());
    all.extend(dropped::all());
    all.extend(execute::all());
    all.extend(endings::all());
    all.extend(limits::all());
    all.extend(env::all());
    all.extend(family_env::all());
    all.extend(immediate::all());
    all.extend(family::all());
    all.extend(effects::all());
    all.extend(effects_crowded::all());
    all.extend(feeds::all());
    all.extend(files::all());
    all.extend(spans::all());
    all.extend(spans_beside::all());
    all.extend(spans_refused::all());
    all.extend(spending::all());
    all.extend(spending_asked::all());
    all.extend(memories::all());
    all.extend(memories_paid::all());
    all.extend(memories_seen::all());
    all.extend(memories_sources::all());
    all.extend(shared_memories::all());
    all.extend(shared_memories_late::all());
    all.extend(owed::all());
    all.extend(spill::all());
    all.extend(endpoints::all());
    all.extend(attachments::all());
    all.extend(result_files::all());
    all.extend(runs::all());
    all.extend(file_routes::all());
    all.extend(handoff::all());
    all.extend(queue_tool::all());
    all.extend(subprompts::all());
    all.extend(invoke::all());
    all.extend(keys::all());
    all.extend(expiry::all());
    all.extend(deleted_after_reads::all());
    all.extend(hooks_once::all());
    all.extend(subagents::all());
    all.extend(waits::all());
    all.extend(waits_ending::all());
    all.extend(waits_size::all());
    all.extend(waits_within::all());
    all.extend(scrubbing::all());
    all
}
