//! Copies of threads: what was said up to a message, values, files and the thread's own settings; never effects, waits or
//! subagents.
//!
//! * `ask`: `POST …/fork`, in the thread that is copied. `begin`: the copy comes to be, and holds off everybody until all is there.
//! * `copy`: its job, which fetches one page after the other; each is one transaction, so that a lost process goes on where it
//!   was. `page`: what the copied thread gives, bounded in bytes, whatever it does meanwhile.

pub(crate) mod ask;
pub(crate) mod begin;
pub(crate) mod copy;
pub(crate) mod page;
