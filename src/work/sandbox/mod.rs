//! Code execution (spec §17): what sandboxed code is given, how it is started and ended, and what comes of it. The sandbox
//! itself is the isolate Worker (`isolate/`), which [`Host::sandbox`](crate::host::Host::sandbox) reaches.
//!
//! - [`Value`]: what crosses; [`packed`]: how it travels.
//! - [`Options`]: what a caller may say, and what is wrong with it.
//! - [`Run`], [`Door`], [`Outcome`]: what a host is asked for and what it answers.
//! - [`Execution`]: the handle. [`CodeResult`]: what comes of it.

pub(crate) mod calls;
pub(crate) mod execution;
pub(crate) mod inner;
pub(crate) mod inside;
pub(crate) mod life;
pub(crate) mod options;
pub(crate) mod packed;
pub(crate) mod result;
pub(crate) mod room;
pub(crate) mod sandbox;
pub(crate) mod surrogates;
#[cfg(test)]
pub(crate) mod tree;
pub(crate) mod value;

pub use crate::work::sandbox::execution::Execution;
pub use crate::work::sandbox::options::Engine;
pub use crate::work::sandbox::options::Language;
pub use crate::work::sandbox::options::Options;
pub use crate::work::sandbox::options::Reports;
pub use crate::work::sandbox::options::WrongOptions;
pub use crate::work::sandbox::packed::Packed;
pub use crate::work::sandbox::result::CodeError;
pub use crate::work::sandbox::result::CodeResult;
pub use crate::work::sandbox::result::Log;
pub use crate::work::sandbox::result::Status;
pub use crate::work::sandbox::sandbox::Answer;
pub use crate::work::sandbox::sandbox::Back;
pub use crate::work::sandbox::sandbox::Door;
pub use crate::work::sandbox::sandbox::Outcome;
pub use crate::work::sandbox::sandbox::RawLog;
pub use crate::work::sandbox::sandbox::Run;
pub use crate::work::sandbox::sandbox::Sandbox;
pub use crate::work::sandbox::value::BinaryKind;
pub use crate::work::sandbox::value::Called;
pub use crate::work::sandbox::value::Function;
pub use crate::work::sandbox::value::Thrown;
pub use crate::work::sandbox::value::Value;
