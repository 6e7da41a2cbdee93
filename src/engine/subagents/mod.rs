//! Subagents (spec §8, §24): threads of their own, siblings of this one, linked by letters.
//!
//! * `registry`: the rows of the children. `parent`: what a child knows of its parent. `letter`: what they tell each other.
//! * `offers`: what models may call. `asked`, `wanted`: what a call wants. `spawn`: a call makes a child, or writes to one; `fit`: what
//!   keeps it from that; `receipt`: its receipt.
//!   `birth`: the child's side of that. `report`: what a run of a child came to. `hear`: what is done with letters. `copy`:
//!   files that come with them. `wait`: the receipt that is parked until a child answers. `cascade`: stop and terminate.
//! * `values`: values of variables in letters. `deferred`: children that wait for some. `immediate`: children that begin
//!   with their prompt.
//! * `shown`: what messages say of them. `ask`: requests to other threads of the family. `cost`, `delete`: of a whole tree.
//!   `remote`: the family for the code that works in a thread.

#![expect(clippy::result_large_err, reason = "an error result is made once in a call, and read by a model")]

pub(crate) mod ask;
pub(crate) mod asked;
pub(crate) mod birth;
pub(crate) mod call;
pub(crate) mod cascade;
pub(crate) mod copy;
pub(crate) mod cost;
pub(crate) mod deferred;
pub(crate) mod delete;
pub(crate) mod fit;
pub(crate) mod hear;
pub(crate) mod heard;
pub(crate) mod immediate;
pub(crate) mod letter;
pub(crate) mod offers;
pub(crate) mod report;
pub(crate) mod shown;
pub(crate) mod spawn;
pub(crate) mod values;
pub(crate) mod wait;
pub(crate) mod wanted;

pub use crate::sdk::family::{RemoteThread, Subagent};
