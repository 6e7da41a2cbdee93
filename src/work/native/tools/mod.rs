//! Native tools and their registry. A definition names one with `{"run": {"native": "name"}}`.
//!
//! This crate's tools are in one table. A crate that embeds this one can register its own:
//!
//! ```
//! use bobbin::spec::message::ToolResult;
//! bobbin::tools::register("greet", |call| {
//!     let name = call.args["name"].as_str().unwrap_or("you").to_owned();
//!     Box::pin(async move { ToolResult::success(format!("Hello, {name}!")) })
//! });
//! ```
//!
//! * `arithmetic`, `units`, `text`, `dice`, `time`: tasks for which models are unreliable. `memory`, `files`,
//!   `reminder`: the thread's values, files and effects, for a model.
//! * `calls`: calls of other tools. `execute`: a model's own code.

pub(crate) mod arithmetic;
pub(crate) mod calls;
pub(crate) mod dice;
pub(crate) mod execute;
pub(crate) mod files;
pub(crate) mod memory;
pub(crate) mod reminder;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod units;

use futures::future::LocalBoxFuture;

use crate::registry::registry;
use crate::spec::message::ToolResult;
use crate::spec::tool::Tier;
use crate::work::native::NativeCall;

/// Runs when a model calls a native tool.
pub type Native = fn(NativeCall) -> LocalBoxFuture<'static, ToolResult>;

/// A native tool and its default tier.
#[derive(Clone, Copy)]
struct Entry {
    tier: Tier,
    run: Native,
}

const fn reads(run: Native) -> Entry {
    Entry { tier: Tier::ReadOnly, run }
}

const fn changes(run: Native) -> Entry {
    Entry { tier: Tier::SideEffecting, run }
}

const fn privileged(run: Native) -> Entry {
    Entry { tier: Tier::Privileged, run }
}

/// The tools of this crate. `wait` counts as side-effecting, to demonstrate the recovery of such a call.
const BUILT_IN: &[(&str, Entry)] = &[
    // In a step, such a call parks the run before it gets here.
    (crate::spec::ask_user::NAME, changes(|call| now(text::no_answer(&call.name)))),
    ("calculate", reads(|call| now(arithmetic::calculate(&call.args)))),
    ("call_each", changes(|call| Box::pin(calls::call_each(call)))),
    ("call_later", changes(|call| now(calls::call_later(&call)))),
    ("convert_units", reads(|call| now(units::convert_units(&call.args)))),
    ("current_time", reads(|call| now(time::current_time(&call.args, call.now_us)))),
    (crate::spec::execute_code::NAME, privileged(|call| Box::pin(execute::execute_code(call)))),
    ("list_files", reads(|call| now(files::list_files(&call)))),
    (
        crate::spec::skill::LOAD,
        reads(|_| now(ToolResult::error("Skills are loaded by a model, in a step of its prompt."))),
    ),
    ("memory_delete", changes(in_a_step)),
    ("memory_save", changes(in_a_step)),
    ("memory_search", reads(in_a_step)),
    ("memory_update", changes(in_a_step)),
    ("read_file", reads(|call| now(files::read_file(&call)))),
    ("recall", reads(|call| now(memory::recall(&call)))),
    ("remind_me", changes(|call| now(reminder::remind_me(&call)))),
    ("remember", changes(|call| now(memory::remember(&call)))),
    ("roll_dice", reads(|call| now(dice::roll_dice(&call.args, call.random)))),
    ("say", reads(|call| now(text::say(&call.args)))),
    ("scratchpad_clear", changes(in_a_step)),
    ("scratchpad_read", reads(in_a_step)),
    ("scratchpad_write", changes(in_a_step)),
    ("search_files", reads(|call| now(files::search_files(&call)))),
    ("text_statistics", reads(|call| now(text::text_statistics(&call.args)))),
    ("wait", changes(wait)),
    ("write_file", changes(|call| now(files::write_file(&call)))),
];

/// Tools of the engine, for prompts with memory.
fn in_a_step(call: NativeCall) -> LocalBoxFuture<'static, ToolResult> {
    let text = format!("{} is called by a model, in a step of its prompt.", call.name);
    now(ToolResult::error(text))
}

/// A result without waiting.
fn now(result: ToolResult) -> LocalBoxFuture<'static, ToolResult> {
    Box::pin(std::future::ready(result))
}

registry!(Native as Entry, changes, BUILT_IN, "a native tool");

/// The default tier of a native tool.
pub(crate) fn tier(name: &str) -> Tier {
    find(name).map_or(Tier::SideEffecting, |entry| entry.tier)
}

/// Runs a native tool. An unknown name is an error result.
pub async fn run(call: NativeCall) -> ToolResult {
    match find(&call.name) {
        Some(Entry { run, .. }) => run(call).await,
        None => {
            ToolResult::error(format!("The native tool \"{}\" is not part of this deployment.", call.name))
        }
    }
}

/// Waits `seconds` (0 to 600), to demonstrate a crash in the middle of a call.
fn wait(call: NativeCall) -> LocalBoxFuture<'static, ToolResult> {
    let seconds =
        call.args.get("seconds").and_then(serde_json::Value::as_f64).unwrap_or(1.0).clamp(0.0, 600.0);
    Box::pin(async move {
        (call.sleep)((seconds * 1e6) as i64).await;
        ToolResult::success(format!("Waited {seconds} s."))
    })
}
