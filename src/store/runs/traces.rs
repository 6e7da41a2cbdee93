//! Queries of runs for trace exports.

use crate::error::Result;
use crate::host::{Param, Sql, integer};
use crate::store::runs::Run;

pub(crate) fn find(sql: &dyn Sql, id: i64) -> Result<Option<Run>> {
    Run::query(sql, concat!("SELECT ", run_columns!(), " FROM runs WHERE id = ?"), &[Param::Int(id)])
}

/// The last block of the previous run.
pub(crate) fn block_before(sql: &dyn Sql, id: i64) -> Result<Option<i64>> {
    integer(sql, "SELECT block FROM runs WHERE id < ? ORDER BY id DESC LIMIT 1", &[Param::Int(id)])
}

/// Stores the trace of a run, including how far its spans are exported.
pub(crate) fn set_trace(sql: &dyn Sql, id: i64, trace: &str) -> Result<()> {
    sql.run("UPDATE runs SET trace = ? WHERE id = ?", &[Param::Text(trace), Param::Int(id)])
}
