//! `bindgen`: the JavaScript glue of the Worker's wasm.

use std::path::Path;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

/// Writes `index.js` and `index_bg.wasm` for the module at `input` into the folder `out`.
pub(crate) fn run(input: &Path, out: &Path) -> Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(input).out_name("index").typescript(false);
    // The wasm is imported as a module (`import source`), which the platform compiles ahead of time.
    bindgen.module(true)?;
    // The shim replaces an instance that a trap has destroyed. It must learn of the trap (the abort handler
    // sets a flag) and be able to start over (`__wbg_reset_state`).
    bindgen.reset_state_function(true).force_enable_abort_handler(true);
    bindgen.generate(out).with_context(|| format!("bindgen of {}", input.display()))
}
