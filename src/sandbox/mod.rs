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

pub(crate) mod ancestry;
pub(crate) mod backlog;
pub(crate) mod boundary;
pub(crate) mod calls;
pub(crate) mod execution;
pub(crate) mod options;
pub(crate) mod packed;
pub(crate) mod result;
pub(crate) mod room;
pub(crate) mod run_state;
pub(crate) mod session;
pub(crate) mod surrogates;
#[cfg(test)]
pub(crate) mod tree;
pub(crate) mod value;

pub use crate::definitions::tool::Engine;
pub use crate::sandbox::boundary::{
    Callback, FunctionReply, FunctionResult, HostCalls, Outcome, RawLog, Run, Sandbox,
};
pub use crate::sandbox::execution::CodeHandle;
pub use crate::sandbox::options::{Form, Language, Options, Reports, WrongOptions};
pub use crate::sandbox::packed::EncodedValue;
pub use crate::sandbox::result::{CodeError, CodeResult, Log, Status};
pub use crate::sandbox::value::{BinaryKind, CallFuture, Exception, Function, Value};
