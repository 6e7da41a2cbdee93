//! The tool `execute_code`: code that a model writes (spec §17).

use crate::definitions::tool::Implementation;

/// The tool's name.
pub const NAME: &str = "execute_code";

/// What a model reads about it, before the declarations.
pub const DESCRIPTION: &str = "Runs TypeScript that you write, in a sandbox, and gives back what it returns and prints. \
The code is the body of an async function: use `await`, `console.log` for output, and `return` for the result. One async \
function without parameters is called; without `return`, the value of the last expression is the result. It has no imports, no network and no timers except what is declared here. Use it to call several tools, to compute, and to keep large \
results out of the conversation. A tool that fails throws an Error with its message. \
`files.read(path)`, `files.write(path, text)` and `files.list(path)` work below the working directory.";

/// Whether an implementation is `execute_code`.
pub fn runs(run: &Implementation) -> bool {
    matches!(run, Implementation::Native(native) if native == NAME)
}
