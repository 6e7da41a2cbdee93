//! Code execution (spec §17): what sandboxed code is given, how it is started and ended, and what comes of it. The sandbox
//! itself is the isolate Worker (`isolate/`), which the engine reaches through a [`Sandbox`].
//!
//! * `value`: what crosses; `packed`: how it travels; `room`: how much it may be; `surrogates`: halves of pairs, which our
//!   texts cannot hold.
//! * `options`: what a caller may say, and what is wrong with it. `result`: what comes of a run.
//! * `boundary`: what a sandbox is asked for, what it answers, and what it may ask in between.
//! * `execution`: the handle. `life`: who owns what of a run, and what ends with what. `session`: the side that the sandbox
//!   sees. `calls`: calls of the host that are under way. `backlog`: answers that are. `ancestry`: from inside which runs code is
//!   called.
//! * `tree`: tests of who owns what.

pub(crate) mod ancestry;
pub(crate) mod backlog;
pub(crate) mod boundary;
pub(crate) mod calls;
pub(crate) mod execution;
pub(crate) mod life;
pub(crate) mod options;
pub(crate) mod packed;
pub(crate) mod result;
pub(crate) mod room;
pub(crate) mod session;
pub(crate) mod surrogates;
#[cfg(test)]
pub(crate) mod tree;
pub(crate) mod value;

pub use crate::sandbox::boundary::{Answer, Answered, Back, HostCalls, Outcome, RawLog, Run, Sandbox};
pub use crate::sandbox::execution::CodeHandle;
pub use crate::sandbox::options::{Form, Language, Options, Reports, WrongOptions};
pub use crate::sandbox::packed::Packed;
pub use crate::sandbox::result::{CodeError, CodeResult, Log, Status};
pub use crate::sandbox::value::{BinaryKind, Called, Function, Thrown, Value};
pub use crate::spec::tool::Engine;
