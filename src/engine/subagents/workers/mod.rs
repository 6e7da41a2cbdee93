//! Workers: subagents that a model leads with the tools `agent_spawn`, `agent_send`, `agent_wait` and `agent_close`
//! (docs/subagents.md). They are children as any others, resumable, with an id that the model calls them by. What a worker
//! comes to is kept in its row until it is asked for, or until the run ends.
//!
//! * `offers`: the four tools. `arguments`: what a call of them asks, and what is wrong with it. `lead`: one is made, written to
//!   or ended. `wait`: several are waited for. `outcome`: what one came to, and who is told of it. `narrow`: which tools one may
//!   call.

pub(crate) mod arguments;
pub(crate) mod lead;
pub(crate) mod narrow;
pub(crate) mod offers;
pub(crate) mod outcome;
pub(crate) mod wait;
