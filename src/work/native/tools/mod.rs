//! Native tools and their registry. A definition names one with `{"run": {"native": "name"}}`.
//!
//! Those of this crate stand in one table, a line each. A crate that embeds this one adds its own, also in a line:
//!
//! ```
//! use bobbin::spec::message::ToolResult;
//! bobbin::tools::register("greet", |call| {
//!     let name = call.args["name"].as_str().unwrap_or("you").to_owned();
//!     Box::pin(async move { ToolResult::success(format!("Hello, {name}!")) })
//! });
//! ```
//!
//! * `arithmetic`, `units`, `text`, `dice`, `time`: what models are bad at. `memory`, `files`, `reminder`: the values, files
//!   and effects of the thread, for a model.
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
use crate::work::native::NativeCall;

/// What runs when a model calls a native tool.
pub type Native = fn(NativeCall) -> LocalBoxFuture<'static, ToolResult>;

/// The tools of this crate.
const BUILT_IN: &[(&str, Native)] = &[
    // A step's calls of it park the run before they get here.
    (crate::spec::ask_user::NAME, |call| now(text::no_answer(&call.name))),
    ("calculate", |call| now(crate::work::native::tools::arithmetic::calculate(&call.args))),
    ("call_each", |call| Box::pin(crate::work::native::tools::calls::call_each(call))),
    ("call_later", |call| now(crate::work::native::tools::calls::call_later(&call))),
    ("convert_units", |call| now(crate::work::native::tools::units::convert_units(&call.args))),
    ("current_time", |call| now(crate::work::native::tools::time::current_time(&call.args, call.now_us))),
    (crate::spec::execute_code::NAME, |call| {
        Box::pin(crate::work::native::tools::execute::execute_code(call))
    }),
    ("list_files", |call| now(crate::work::native::tools::files::list_files(&call))),
    (crate::spec::skill::LOAD, |_| {
        now(ToolResult::error("Skills are loaded by a model, in a step of its prompt."))
    }),
    ("read_file", |call| now(crate::work::native::tools::files::read_file(&call))),
    ("recall", |call| now(crate::work::native::tools::memory::recall(&call))),
    ("remind_me", |call| now(crate::work::native::tools::reminder::remind_me(&call))),
    ("remember", |call| now(crate::work::native::tools::memory::remember(&call))),
    ("roll_dice", |call| now(crate::work::native::tools::dice::roll_dice(&call.args, call.random))),
    ("say", |call| now(crate::work::native::tools::text::say(&call.args))),
    ("search_files", |call| now(crate::work::native::tools::files::search_files(&call))),
    ("text_statistics", |call| now(crate::work::native::tools::text::text_statistics(&call.args))),
    ("wait", wait),
    ("write_file", |call| now(crate::work::native::tools::files::write_file(&call))),
];

/// A result that needs no waiting.
fn now(result: ToolResult) -> LocalBoxFuture<'static, ToolResult> {
    Box::pin(std::future::ready(result))
}

registry!(Native, BUILT_IN, "a native tool");

/// Runs a native tool. An unknown name is an error result.
pub async fn run(call: NativeCall) -> ToolResult {
    match find(&call.name) {
        Some(native) => native(call).await,
        None => {
            ToolResult::error(format!("The native tool \"{}\" is not part of this deployment.", call.name))
        }
    }
}

/// Waits `seconds` (0 to 600) and says so: for demonstrations of what happens when a process dies in the middle.
fn wait(call: NativeCall) -> LocalBoxFuture<'static, ToolResult> {
    let seconds =
        call.args.get("seconds").and_then(serde_json::Value::as_f64).unwrap_or(1.0).clamp(0.0, 600.0);
    Box::pin(async move {
        (call.sleep)((seconds * 1e6) as i64).await;
        ToolResult::success(format!("Waited {seconds} s."))
    })
}
