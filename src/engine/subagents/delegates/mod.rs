//! Workers: subagents that a model leads with the tools `agent_spawn`, `agent_send`, `agent_wait` and
//! `agent_close` (docs/subagents.md). They are resumable children with an id chosen for the model. A worker's
//! outcome stays in its row until a call waits for it, or until the run ends.
//!
//! * `offers`: the definitions of the four tools. `arguments`: parses their calls. `manage`: creates, messages
//!   and closes workers. `wait`: waits for several. `outcome`: stores and delivers outcomes. `permissions`:
//!   restricts a worker's tools.

pub(super) mod arguments;
pub(super) mod manage;
pub(super) mod offers;
pub(super) mod outcome;
mod permissions;
mod wait;
