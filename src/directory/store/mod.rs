//! The tables of a directory, one file each: the row, its `CREATE TABLE`, its statements. No other file names the table,
//! which `npm test` checks. Values of variables lie in the same table `env` as a thread's. `schema` lists the tables:
//! `threads`, `claims` (idempotency keys), `inbox` (what is open), `owners`, and `state` (counts); `servers` (how MCP servers
//! answer) is made when the root is first told of one. `tokens` is made with its first
//! row.

pub(crate) mod claims;
pub(crate) mod inbox;
pub(crate) mod owners;
pub(crate) mod schema;
pub(crate) mod servers;
pub(crate) mod state;
pub(crate) mod threads;
pub(crate) mod tokens;
