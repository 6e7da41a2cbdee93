//! Subagents (spec §8, §24): independent threads, linked to their parent by envelopes. The rows of the
//! children are in `store/children`, a child's data about its parent in `store/parent`.
//!
//! * Calls: `toolset` builds the tool definitions, `arguments` parses calls, `call` defines the actions,
//!   `resolve` maps a call to its action.
//! * Creation: `spawn` creates or messages a child, `checks` refuses it, `create_child` is the child's side,
//!   `immediate` begins children with their prompt, `deferred` holds children that lack variables.
//! * Envelopes: `envelope` defines them, `inbox` receives them, `follow_up` collects their effects, `copy`
//!   transfers files, `values` transfers variables.
//! * Results: `wait` parks a receipt until a child answers, `report` sends the outcome of a child's run.
//! * Trees: `cascade` stops and terminates, `cost` sums up, `delete` deletes.
//! * `delegates`: children that a model leads. `shown`: subagents in messages. `ask`: requests to other
//!   threads.

#![expect(clippy::result_large_err, reason = "an error result is made once in a call, and read by a model")]

pub(crate) mod arguments;
pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod cascade;
pub(crate) mod checks;
pub(crate) mod copy;
pub(crate) mod cost;
pub(crate) mod create_child;
pub(crate) mod deferred;
pub(crate) mod delegates;
pub(crate) mod delete;
pub(crate) mod envelope;
pub(crate) mod follow_up;
pub(crate) mod immediate;
pub(crate) mod inbox;
pub(crate) mod report;
pub(crate) mod resolve;
pub(crate) mod shown;
pub(crate) mod spawn;
pub(crate) mod toolset;
pub(crate) mod values;
pub(crate) mod wait;

pub use crate::sdk::relations::{RemoteThread, Subagent};
