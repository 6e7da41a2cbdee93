//! Code execution (spec §17): the input of sandboxed code, how it starts and ends, and its result. The
//! sandbox itself is the isolate Worker (`isolate/`), which the engine reaches through a [`Sandbox`].
//!
//! * `value`: values that cross the boundary; `packed`: their encoding; `room`: their size limits;
//!   `surrogates`: lone surrogates, which Rust strings cannot contain.
//! * `options`: the caller's options, and their validation. `result`: the result of a run.
//! * `boundary`: requests to a sandbox, its responses, and the calls that it makes in between.
//! * `execution`: the handle. `run_state`: ownership and the order of the end. `session`: the side that the
//!   sandbox sees. `calls`: active calls to the host. `backlog`: answers in transit. `ancestry`: the runs
//!   inside which code is called.
//! * `tree`: tests of ownership.

mod ancestry;
pub(crate) mod backlog;
mod boundary;
mod calls;
pub(crate) mod execution;
mod options;
pub(crate) mod packed;
mod result;
pub(crate) mod room;
mod run_state;
mod session;
mod surrogates;
#[cfg(test)]
mod tree;
mod value;

pub use crate::definitions::tool::Engine;
pub use crate::sandbox::boundary::{
    Callback, FunctionReply, FunctionResult, HostCalls, Outcome, RawLog, Run, Sandbox,
};
pub use crate::sandbox::execution::CodeHandle;
pub use crate::sandbox::options::{Form, Language, Options, Reports, WrongOptions};
pub use crate::sandbox::packed::EncodedValue;
pub use crate::sandbox::result::{CodeError, CodeResult, Log, Status};
pub use crate::sandbox::value::{BinaryKind, CallFuture, Exception, Function, Value};
