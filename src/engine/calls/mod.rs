//! Calls of tools, from a reply of the model or from code.
//!
//! * `call`: a call, and everything that it runs in. `scope`: its origin. `tool_run`: runs it: checks, questions
//!   to people, receipt, tool. `tool_call`: its receipt and its work. `tool_result`: results and their files.
//!   `tool_events`: events for clients.
//! * `batch`: the outcome of each call of a step, and read-only calls at the same time. `tool_queue`: calls that
//!   code queues. `invoke`: calls that code waits for. `detached`: calls outside any run.
//! * `work_context`: the host and the catalog for code.

pub(in crate::engine) mod batch;
pub(in crate::engine) mod call;
pub(in crate::engine) mod detached;
pub(in crate::engine) mod invoke;
pub(in crate::engine) mod scope;
pub(in crate::engine) mod tool_call;
pub(in crate::engine) mod tool_events;
pub(in crate::engine) mod tool_queue;
pub(crate) mod tool_result;
pub(in crate::engine) mod tool_run;
pub(in crate::engine) mod work_context;
