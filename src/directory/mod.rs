//! The threads of an owner (spec §27.1). There is one directory object per owner, one for threads without an
//! owner, and the root, which lists the owners.
//!
//! A thread is created first; its row here is a copy, which the thread sends at least once. So a directory
//! serves lists and searches, and decides nothing about a thread except the id for a repeated
//! `POST /threads`.
//!
//! Requests to a directory are defined in `request/directory_call`.
//!
//! * `threads`: incoming rows of threads. `list`: listings. `claims`: idempotent creation. `owners`: the
//!   root.
//! * `inbox`: questions to people. `servers`: health of MCP servers.
//! * `env`: values of the owner, or of the instance. `tokens`: tokens for MCP servers. `store`: the tables.

mod claims;
mod env;
mod inbox;
mod list;
mod owners;
mod servers;
mod store;
mod threads;
mod tokens;

pub use crate::request::directory_call::{DirectoryCall, EnvAsk, ThreadRow, TokenAsk};

use std::cell::Cell as Flag;
use std::rc::Rc;

use crate::definitions::Catalog;
use crate::directory::store::threads::Activity;
use crate::error::{Code, Error, Result};
use crate::host::{Cell, Object, Transactions};
use crate::json;
use crate::request::Reply;
use futures::future::LocalBoxFuture;

/// One directory object: of an owner, of threads without owner, or the root.
pub struct Directory {
    host: Rc<dyn Object>,
    catalog: Rc<Catalog>,
    /// Whether the tables were migrated since the object woke.
    open: Flag<bool>,
}

impl Directory {
    /// The directory in this host's database.
    pub fn new(host: Rc<dyn Object>, catalog: Rc<Catalog>) -> Rc<Directory> {
        Rc::new(Directory { host, catalog, open: Flag::new(false) })
    }

    /// Responds to a call, given as JSON. Never fails; errors are in the reply.
    pub fn call(self: &Rc<Self>, json: &str) -> Reply {
        let call = match crate::json::from_str(json) {
            Ok(call) => call,
            Err(error) => {
                return Error::new(Code::BadJson, format!("Not a call of a directory: {error}.")).into();
            }
        };
        self.handle(call).unwrap_or_else(Reply::from)
    }

    fn handle(self: &Rc<Self>, call: DirectoryCall) -> Result<Reply> {
        if self.open()? {
            self.host.transaction(|sql| self.catch_up(sql))?;
        }
        self.answer(call)
    }

    fn answer(self: &Rc<Self>, call: DirectoryCall) -> Result<Reply> {
        match call {
            DirectoryCall::Several { calls } => {
                calls.into_iter().try_fold(Reply::json(200, &json!({})), |_, call| self.answer(call))
            }
            DirectoryCall::Claim { key, hash, thread_id } => self.claim(&key, &hash, &thread_id),
            DirectoryCall::Upsert { row } => self.upsert(&row),
            DirectoryCall::Activity {
                id,
                life,
                version,
                executing,
                last_activity_us,
                last_message,
                failed,
            } => {
                let preview = last_message.as_ref().map(|(text, _)| threads::preview(text));
                let message_us = last_message.as_ref().map(|(_, at)| *at);
                self.activity(&Activity {
                    id: &id,
                    life,
                    version,
                    executing,
                    at_us: last_activity_us,
                    preview: preview.as_deref(),
                    message_us,
                    failed: failed.as_deref(),
                })
            }
            DirectoryCall::Wait { row } => self.wait(&row),
            DirectoryCall::Waits { query } => self.waits(&query),
            DirectoryCall::Delete { id, life } => self.delete(&id, life),
            DirectoryCall::List { query, origin, only } => self.list(&query, &origin, only.as_deref()),
            DirectoryCall::Owner { owner, threads, version } => {
                self.owner(owner.as_deref(), threads, version)
            }
            DirectoryCall::Owners { query, order } => self.owners(&query, order),
            DirectoryCall::McpTold { report } => self.record_report(&report),
            DirectoryCall::McpKnown => self.servers_known(),
            DirectoryCall::Env { directory, ask } => self.env(&directory, ask),
            DirectoryCall::Token { name, ask } => self.token(&name, ask),
        }
    }

    /// The alarm: reports changes to the root. Never fails; a failed report sets the next alarm.
    pub fn alarm(self: Rc<Self>) -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            if let Err(error) = self.open() {
                return self.host.log(&format!("directory: {error}"));
            }
            self.report_to_root().await;
        })
    }

    /// Migrates the tables. Returns whether this was the first call since the object woke.
    fn open(&self) -> Result<bool> {
        if self.open.get() {
            return Ok(false);
        }
        self.host.transaction(crate::directory::store::schema::migrate)?;
        self.open.set(true);
        Ok(true)
    }
}

/// An integer column that is NOT NULL.
fn int_at(row: &[Cell], column: usize) -> Result<i64> {
    row.get(column).and_then(Cell::int).ok_or_else(|| unexpected(column))
}

/// A text column that may be NULL.
fn text_at(row: &[Cell], column: usize) -> Option<&str> {
    row.get(column).and_then(Cell::text)
}

fn unexpected(column: usize) -> Error {
    Error::internal(format!("directory: column {column} of a row is not what the schema promises"))
}
