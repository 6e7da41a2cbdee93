//! Subagents (spec §8, §24): threads of their own, siblings of this one, linked by envelopes. The rows of the children are in
//! `store/children`, what a child knows of its parent in `store/parent`.
//!
//! * `toolset`: what models may call. `resolve`: whether a call is for subagents; `arguments`: what it asks; `call`: what comes
//!   of that, a new child or a message to one.
//! * `spawn`: a call makes a child, or writes to one; `checks`: what keeps it from that; `create_child`: the child's side of
//!   it.
//! * `envelope`: what a thread and its child tell each other. `inbox`: what is done with an envelope; `applied`: what it has
//!   changed. `copy`: files that come with it.
//! * `wait`: the receipt that is parked until a child answers. `report`: what a run of a child came to. `cascade`: stop and
//!   terminate.
//! * `values`: values of variables in envelopes. `deferred`: children that wait for some. `immediate`: children that begin with
//!   their prompt.
//! * `workers`: children that a model leads.
//! * `shown`: what messages say of children. `ask`: requests to other threads of the family. `cost`, `delete`: of a whole tree.

#![expect(clippy::result_large_err, reason = "an error result is made once in a call, and read by a model")]

pub(crate) mod applied;
pub(crate) mod arguments;
pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod cascade;
pub(crate) mod checks;
pub(crate) mod copy;
pub(crate) mod cost;
pub(crate) mod create_child;
pub(crate) mod deferred;
pub(crate) mod delete;
pub(crate) mod envelope;
pub(crate) mod immediate;
pub(crate) mod inbox;
pub(crate) mod report;
pub(crate) mod resolve;
pub(crate) mod shown;
pub(crate) mod spawn;
pub(crate) mod toolset;
pub(crate) mod values;
pub(crate) mod wait;
pub(crate) mod workers;

pub use crate::sdk::family::{RemoteThread, Subagent};
