//! Subagents (spec §8, §24): threads of their own, siblings of this one, linked by letters. The rows of the children are in
//! `store/children`, what a child knows of its parent in `store/parent`.
//!
//! * `registry`: the rows of the children. `parent`: what a child knows of its parent. `envelope`: what they tell each other.
//! * `toolset`: what models may call. `arguments`, `resolve`: what a call wants. `spawn`: a call makes a child, or writes to one; `checks`: what
//!   keeps it from that; `receipt`: its receipt.
//!   `create_child`: the child's side of that. `report`: what a run of a child came to. `inbox`: what is done with letters. `copy`:
//!   files that come with them. `wait`: the receipt that is parked until a child answers. `cascade`: stop and terminate.
//! * `values`: values of variables in letters. `deferred`: children that wait for some. `immediate`: children that begin
//!   with their prompt.
//! * `shown`: what messages say of them. `ask`: requests to other threads of the family. `cost`, `delete`: of a whole tree.
//!   `remote`: the family for the code that works in a thread.

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

pub use crate::sdk::family::{RemoteThread, Subagent};
