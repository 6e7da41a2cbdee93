//! Code execution (spec §17): what sandboxed code is given, how it is started and ended, and what comes of it. The sandbox
//! itself is the isolate Worker (`isolate/`), which [`Host::sandbox`](crate::host::Host::sandbox) reaches.
//!
//! - [`Value`]: what crosses; [`packed`]: how it travels.
//! - [`Options`]: what a caller may say, and what is wrong with it.
//! - [`Run`], [`Door`], [`Outcome`]: what a host is asked for and what it answers.
//! - [`Execution`]: the handle. [`CodeResult`]: what comes of it.

mod calls;
mod execution;
mod inner;
mod inside;
mod life;
mod options;
mod packed;
mod result;
mod room;
mod sandbox;
mod surrogates;
#[cfg(test)]
mod tree;
mod value;

pub use execution::Execution;
pub(crate) use execution::{Start, start};
pub use options::{Engine, Language, Options, Reports, WrongOptions};
pub use packed::Packed;
pub use result::{CodeError, CodeResult, Log, Status};
pub use sandbox::{Answer, Back, Door, Outcome, RawLog, Run, Sandbox};
pub use value::{BinaryKind, Called, Function, Thrown, Value};
