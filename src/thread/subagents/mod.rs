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

mod ask;
mod asked;
mod birth;
mod cascade;
mod copy;
mod cost;
mod deferred;
mod delete;
mod fit;
mod hear;
mod immediate;
mod letter;
mod offers;
mod parent;
mod receipt;
mod registry;
mod remote;
mod report;
mod shown;
mod spawn;
mod values;
mod wait;
mod wanted;

pub(super) use delete::{BY_PARENT, Told};
pub(super) use letter::{TO_THREAD, What, head};
pub(super) use offers::{Family, offers};
pub(crate) use parent::Parent;
pub(super) use receipt::KIND;
pub(crate) use registry::{Child, next_due};
pub(super) use remote::{BY_CODE, FamilyDoor};
pub use remote::{RemoteThread, Subagent};
pub(super) use shown::{message as message_json, project};
pub(super) use spawn::Wanted;
pub(super) use wanted::is_tool;
