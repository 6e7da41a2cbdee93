//! Native tools, effects, hooks and endpoints of this application. A file in `agents/tools/` with `"run": {
//! "native": "greet" }` turns the function `greet` into a tool.

use bobbin::definitions::message::ToolResult;
use bobbin_worker as _;
use wasm_bindgen::prelude::wasm_bindgen;

/// Called once, when the Worker is loaded.
#[wasm_bindgen(start)]
pub fn register() {
    bobbin::tools::register("greet", |call| {
        let name = call.args["name"].as_str().unwrap_or("you").to_owned();
        Box::pin(async move { ToolResult::success(format!("Hello, {name}!")) })
    });
}
