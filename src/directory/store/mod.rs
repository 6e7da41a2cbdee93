//! The tables of a directory, one file each: the row, its `CREATE TABLE`, its statements. No other file names
//! the table; `npm test` checks that. Values of variables use the same table `env` as a thread's. `schema`
//! lists the tables: `threads`, `claims` (idempotency keys), `inbox` (open waits), `owners`, and `state`
//! (counts). `servers` (health of MCP servers) and `tokens` are created with their first row.

pub(crate) mod claims;
pub(crate) mod inbox;
pub(crate) mod owners;
pub(crate) mod schema;
pub(crate) mod servers;
pub(crate) mod state;
pub(crate) mod threads;
pub(crate) mod tokens;
