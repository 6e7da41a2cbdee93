//! Native tools and their registry. A definition names one with `{"run": {"native": "name"}}`.
//!
//! This crate's tools are in one table. A crate that embeds this one can register its own:
//!
//! ```
//! use bobbin::definitions::message::ToolResult;
//! bobbin::tools::register("greet", |call| {
//!     let name = call.args["name"].as_str().unwrap_or("you").to_owned();
//!     Box::pin(async move { ToolResult::success(format!("Hello, {name}!")) })
//! });
//! ```
//!
//! * `arithmetic`, `units`, `text`, `dice`, `time`: tasks for which models are unreliable. `memory`, `files`,
//!   `reminder`: the thread's values, files and effects, for a model.
//! * `calls`: calls of other tools. `execute`: a model's own code.

mod arithmetic;
mod calls;
mod dice;
pub(crate) mod execute;
mod files;
mod memory;
mod reminder;
mod text;
mod time;
mod units;

use futures::future::LocalBoxFuture;

use crate::definitions::message::ToolResult;
use crate::work::native::NativeCall;
use crate::work::native::registry::registry;

/// Runs when a model calls a native tool.
pub type Native = fn(NativeCall) -> LocalBoxFuture<'static, ToolResult>;

/// The tools of this crate, as [`crate::definitions::natives`] lists them.
const BUILT_IN: &[(&str, Native)] = &[
    // In a step, such a call parks the run before it gets here.
    (crate::definitions::ask_user::NAME, |call| now(text::no_answer(&call.name))),
    ("calculate", |call| now(arithmetic::calculate(&call.args))),
    ("call_each", |call| Box::pin(calls::call_each(call))),
    ("call_later", |call| now(calls::call_later(&call))),
    ("convert_units", |call| now(units::convert_units(&call.args))),
    ("current_time", |call| now(time::current_time(&call.args, call.now_us))),
    (crate::definitions::execute_code::NAME, |call| Box::pin(execute::execute_code(call))),
    ("list_files", |call| now(files::list_files(&call))),
    (crate::definitions::skill::LOAD, |_| {
        now(ToolResult::error("Skills are loaded by a model, in a step of its prompt."))
    }),
    ("memory_delete", in_a_step),
    ("memory_save", in_a_step),
    ("memory_search", in_a_step),
    ("memory_update", in_a_step),
    ("read_file", |call| now(files::read_file(&call))),
    ("recall", |call| now(memory::recall(&call))),
    ("remind_me", |call| now(reminder::remind_me(&call))),
    ("remember", |call| now(memory::remember(&call))),
    ("roll_dice", |call| now(dice::roll_dice(&call.args, call.random))),
    ("say", |call| now(text::say(&call.args))),
    ("scratchpad_clear", in_a_step),
    ("scratchpad_read", in_a_step),
    ("scratchpad_write", in_a_step),
    ("search_files", |call| now(files::search_files(&call))),
    ("text_statistics", |call| now(text::text_statistics(&call.args))),
    ("wait", wait),
    ("write_file", |call| now(files::write_file(&call))),
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

registry!(Native, BUILT_IN, "a native tool");

/// Runs a native tool. An unknown name is an error result.
pub async fn run(call: NativeCall) -> ToolResult {
    match find(&call.name) {
        Some(run) => run(call).await,
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
