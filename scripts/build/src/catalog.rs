//! `catalog`: compiles definitions like the npm package's wasm; the scripts read the folder and write the
//! result.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Compiles the request in the file `request` (package/compiler/src/request.rs) and writes the answer to
/// `answer`.
pub(crate) fn run(request: &Path, answer: &Path) -> Result<()> {
    let text = fs::read(request).with_context(|| format!("cannot read {}", request.display()))?;
    let answered = bobbin_catalog::compile_json(&text);
    fs::write(answer, answered).with_context(|| format!("cannot write {}", answer.display()))
}
