//! Code in the sandbox, and what it gets there of its thread and of the web (spec §17).
//!
//! * `file`: files of a deployment with `"run": {"code": …}`. `web`: what code that a model wrote has of the web.
//! * `bridge`: the thread, for sandboxed code. `args`: arguments of calls that such code makes.
//! * `fetch`: requests of such code. `place`: where in a file it went wrong.

pub(crate) mod args;
pub(crate) mod bridge;
pub(crate) mod fetch;
pub(crate) mod file;
pub(crate) mod place;
pub(crate) mod web;
