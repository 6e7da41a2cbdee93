//! Creates, messages and closes workers. Each call is one transition that also writes the envelope.

use crate::definitions::message::ToolResult;
use crate::definitions::subagent::{SEND, SPAWN};
use crate::engine::features::Delegates;
use crate::engine::subagents::call::{Dispatch, NewChild, WorkerMessage};
use crate::engine::subagents::checks::may_wait;
use crate::engine::subagents::delegates::arguments::{busy, full, invalid, not_found};
use crate::engine::subagents::delegates::outcome;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::engine::subagents::follow_up::FollowUp;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::store::children;
use crate::store::children::{Child, ChildState};
use crate::store::log_record::Event;
use crate::store::runs::Parking;
use crate::store::state::State;

/// Ids given by the model raise the counter up to this number.
const COUNTED: i64 = 1_000_000;

/// The open workers, oldest first.
fn workers(state: &mut State, sql: &dyn Sql) -> Result<Vec<Child>> {
    if state.meta.workers == 0 {
        return Ok(Vec::new());
    }
    let mut found: Vec<Child> =
        state.open_children(sql)?.iter().filter(|child| child.is_worker()).cloned().collect();
    // Workers of one reply may have the same time of creation.
    found.sort_by_key(|child| {
        let id = child.facts.alias.clone().unwrap_or_default();
        (child.created_us, id.len(), id)
    });
    Ok(found)
}

fn ids(workers: &[Child]) -> Vec<String> {
    workers.iter().filter_map(|child| child.facts.alias.clone()).collect()
}

/// A worker by its id.
pub(super) fn find(state: &mut State, sql: &dyn Sql, id: &str) -> Result<Result<Child, ToolResult>> {
    let workers = workers(state, sql)?;
    let found = workers.iter().find(|child| child.facts.alias.as_deref() == Some(id));
    Ok(found.cloned().ok_or_else(|| not_found(id, &ids(&workers))))
}

/// A result about a worker.
fn about(child: &Child, result: serde_json::Value) -> ToolResult {
    ToolResult { result: Some(result), subagent_id: Some(child.reference.clone()), ..ToolResult::success("") }
}

/// The result for a new worker.
pub(crate) fn started(child: &Child) -> ToolResult {
    about(child, json!({ "agentId": child.facts.alias, "status": "started" }))
}

impl Delegates<'_> {
    /// Assigns an id to a new worker. Returns a result instead if the id exists or the limit is reached.
    pub(crate) fn place_worker(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        new: &mut NewChild<'_>,
    ) -> Result<Result<(), ToolResult>> {
        let Some(worker) = &mut new.worker else { return Ok(Ok(())) };
        let known = workers(state, sql)?;
        if let Some(id) = &worker.alias {
            if let Some(child) = known.iter().find(|child| child.facts.alias.as_ref() == Some(id)) {
                return Ok(Err(about(child, json!({ "agentId": id, "status": "exists" }))));
            }
            if state.meta.workers > 0 && children::terminated_worker(sql, id)?.is_some() {
                let problem =
                    format!("agentId: \"{id}\" was a worker that is closed; ids are never given twice.");
                return Ok(Err(invalid(SPAWN, vec![problem])));
            }
        }
        if known.len() >= worker.most as usize {
            return Ok(Err(full(worker.most, &ids(&known))));
        }
        match &worker.alias {
            None => {
                state.meta.workers += 1;
                worker.alias = Some(format!("{}.{}", worker.prefix, state.meta.workers));
            }
            // A given id with a number raises the counter, so that no counted id repeats it.
            Some(id) => {
                let number = id.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
                let number = number.filter(|number| (1..=COUNTED).contains(number)).unwrap_or(1);
                state.meta.workers = state.meta.workers.max(number);
            }
        }
        Ok(Ok(()))
    }

    /// Sends a message to a worker.
    pub(crate) fn send_to_worker(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        message: &WorkerMessage,
        receipt: Option<i64>,
        parking: Parking,
    ) -> Result<Result<Dispatch, ToolResult>> {
        let WorkerMessage { id, words, waits, queues } = message;
        let now = self.host.now_us();
        let mut child = match find(state, sql, id)? {
            Ok(child) => child,
            Err(result) => return Ok(Err(result)),
        };
        if child.state == ChildState::Pending {
            let text =
                format!("\"{id}\" waits for values that a person gives, and can be written to afterwards.");
            return Ok(Err(ToolResult { error: Some(text), ..busy(id) }));
        }
        if let Err(result) = may_wait(*waits, receipt, parking, SEND) {
            return Ok(Err(result));
        }
        if !queues && outcome::works(&child)? {
            return Ok(Err(busy(id)));
        }
        if let Some(wrong) = self.subagents().check_content(sql, words)? {
            return Ok(Err(invalid(SEND, vec![wrong.text()])));
        }
        if let Err(result) = self.subagents().write_to_child(state, sql, &mut child, words)? {
            return Ok(Err(result));
        }
        let receipt = receipt.filter(|_| *waits);
        if let Some(receipt) = receipt {
            self.subagents().begin_wait(state, sql, &mut child, receipt, now)?;
        }
        state.update_child(sql, child.clone())?;
        let event = if receipt.is_some() { "ask" } else { "message" };
        Event::subagent(event, &child, state.active(), None).insert(sql, now)?;
        Ok(Ok(match receipt {
            Some(_) => Dispatch::default(),
            None => Dispatch::now(about(&child, json!({ "agentId": id, "status": "working" }))),
        }))
    }

    /// Closes a worker for good. Its place is free after the commit. Its thread stays readable.
    pub(crate) fn close_worker(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        id: &str,
    ) -> Result<Result<Dispatch, ToolResult>> {
        let mut child = match find(state, sql, id)? {
            Ok(child) => child,
            Err(result) => return Ok(Err(result)),
        };
        let mut applied = FollowUp::default();
        if child.state.exists() {
            self.subagents().send_to_child(state, sql, &mut child, EnvelopeBody::Terminate)?;
        }
        child.state = ChildState::Terminated;
        "terminated".clone_into(&mut child.status);
        (child.due_us, child.body) = (None, None);
        let text = format!("The worker \"{id}\" was closed.");
        applied.add_event("closed", &child);
        Event::subagent("closed", &child, state.active(), None).insert(sql, self.host.now_us())?;
        // Only code can close a worker that a call waits for.
        self.subagents().end_wait(state, sql, &mut child, &ToolResult::error(text), &mut applied)?;
        state.update_child(sql, child.clone())?;
        self.answer_waits(state, sql, &mut applied)?;
        let result = about(&child, json!({ "agentId": id, "closed": true }));
        Ok(Ok(Dispatch { applied, ..Dispatch::now(result) }))
    }
}
