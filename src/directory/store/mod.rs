//! The tables of a directory, one file each: the row, its `CREATE TABLE`, its statements. No other file names
//! the table; `npm test` checks that. Values of variables use the same table `env` as a thread's. `schema`
//! lists the tables: `threads`, `claims` (idempotency keys), `inbox` (open waits), `owners`, and `state`
//! (counts). `servers` (health of MCP servers) and `tokens` are created with their first row.

pub(super) mod claims;
pub(super) mod inbox;
pub(super) mod owners;
pub(super) mod schema;
pub(super) mod servers;
pub(super) mod state;
pub(super) mod threads;
pub(super) mod tokens;
