//! Code in the sandbox, with its access to its thread and to the network (spec §17).
//!
//! * `file`: files of a deployment with `"run": {"code": …}`. `web`: web APIs for code that a model wrote.
//! * `bridge`: the thread, for sandboxed code. `args`: arguments of calls from such code.
//! * `fetch`: requests of such code. `place`: the position of an error in a file.

mod args;
pub(crate) mod bridge;
mod fetch;
pub(super) mod file;
mod place;
pub(crate) mod web;
