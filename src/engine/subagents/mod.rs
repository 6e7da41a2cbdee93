//! Subagents (spec §8, §24): independent threads, linked to their parent by envelopes. The rows of the
//! children are in `store/children`, a child's data about its parent in `store/parent`.
//!
//! * Calls: `toolset` builds the tool definitions, `arguments` parses calls, `call` defines the actions,
//!   `resolve` maps a call to its action.
//! * Creation: `spawn` creates or messages a child, `checks` refuses it, `create_child` is the child's side,
//!   `immediate` begins children with their prompt (`immediate_start`: which ones), `deferred` holds children
//!   that lack variables.
//! * Envelopes: `envelope` defines them, `inbox` receives them, `follow_up` collects their effects, `copy`
//!   transfers files, `values` transfers variables.
//! * Results: `wait` parks a receipt until a child answers, `report` sends the outcome of a child's run.
//! * Trees: `cascade` stops and terminates, `cost` sums up, `delete` deletes.
//! * `delegates`: children that a model leads. `shown`: subagents in messages. `ask`: requests to other
//!   threads.

#![expect(clippy::result_large_err, reason = "an error result is made once in a call, and read by a model")]

pub(crate) mod arguments;
mod ask;
pub(super) mod call;
mod cascade;
mod checks;
mod copy;
mod cost;
pub(super) mod create_child;
mod deferred;
mod delegates;
pub(super) mod delete;
pub(super) mod envelope;
pub(super) mod follow_up;
mod immediate;
mod immediate_start;
mod inbox;
mod report;
mod resolve;
pub(super) mod shown;
mod spawn;
pub(super) mod toolset;
pub(super) mod values;
mod wait;

pub use crate::sdk::relations::{RemoteThread, Subagent};
