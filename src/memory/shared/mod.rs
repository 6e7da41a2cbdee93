//! A memory that several threads share, of an owner or of the instance. It has its own object, whose name
//! follows from the owner and the memory ([`crate::request::memory::object_name`]), never from a model's
//! output.
//!
//! * here: the object as the host of a memory, and its calls. `alarm`: its alarm, which indexes documents.
//!   `values`: variables for its model, and secrets that it must not store.

mod alarm;
mod values;

use std::cell::Cell as Flag;
use std::rc::Rc;

use futures::future::LocalBoxFuture;

use serde::de::DeserializeOwned;

use crate::definitions::{Catalog, Memory, MemoryScope};
use crate::env::scrub::{Rules, Scrubber};
use crate::error::{Code, Error, Result};
use crate::host::{Host, Sql, Transactions};
use crate::json;
use crate::limits;
use crate::memory::calls::{MemoryRequest, answer, check_body};
use crate::memory::log::row_of;
use crate::memory::notes::NoteRequest;
use crate::memory::search::{Hit, SearchQuery, SearchResults, current_hit};
use crate::memory::shared::values::Values;
use crate::memory::{MemoryHost, MemoryStore, PendingWork, UnloggedRequests, named};
use crate::request::memory::{MemoryAsk, MemoryCall};
use crate::request::{MemoryRoute, Reply};
use crate::store::log_record::Attempt;
use crate::store::logs;
use crate::store::memory as stores;
use crate::store::memory::shared as table;

/// The object of one memory.
pub struct SharedMemory {
    host: Rc<dyn Host>,
    catalog: Rc<Catalog>,
    /// Whether the tables are known to exist.
    tables: Flag<bool>,
    /// Whether the alarm's handler is running, which reads the pending work again before it returns.
    working: Flag<bool>,
    values: Values,
}

impl SharedMemory {
    /// The memory in this host's database. Reads nothing yet.
    pub fn new(host: Rc<dyn Host>, catalog: Rc<Catalog>) -> Rc<SharedMemory> {
        let values = Values::default();
        Rc::new(SharedMemory { host, catalog, tables: Flag::new(false), working: Flag::new(false), values })
    }

    /// Responds to a call: a [`MemoryCall`] as JSON, a line break, and its body. Never fails; errors are in
    /// the reply.
    pub fn call<'a>(self: &'a Rc<Self>, text: &'a str) -> LocalBoxFuture<'a, Reply> {
        Box::pin(async move {
            let (head, body) = text.split_once('\n').unwrap_or((text, ""));
            let call = match crate::json::from_str(head) {
                Ok(call) => call,
                Err(error) => return Error::internal(format!("not a call of a memory: {error}")).into(),
            };
            self.answer(call, body).await.unwrap_or_else(|error| {
                if error.code == Code::Internal {
                    self.log(&format!("internal error: {error}"));
                }
                error.into()
            })
        })
    }

    async fn answer(self: &Rc<Self>, call: MemoryCall, body: &str) -> Result<Reply> {
        let MemoryCall { memory, owner, ask } = call;
        let scope = if owner.is_some() { MemoryScope::Owner } else { MemoryScope::Instance };
        let memory = named(&self.catalog, &memory, scope)?;
        let memory_store = MemoryStore::new(&**self, &self.catalog, memory);
        match ask {
            MemoryAsk::Route { of, query, idempotency_key } => {
                check_body(&of, body)?;
                match of {
                    MemoryRoute::AddDocument => self.ready_to_clean(owner.as_deref()).await?,
                    MemoryRoute::Search => self.ready_to_embed(memory).await?,
                    _ => {}
                }
                let idempotency_key = idempotency_key.as_deref();
                let request = MemoryRequest {
                    route: &of,
                    query: &query,
                    idempotency_key,
                    body,
                    file: None,
                    requests: None,
                };
                answer(&memory_store, request).await
            }
            MemoryAsk::Find => {
                self.ready_to_embed(memory).await?;
                let found = memory_store.search(&parse_body::<SearchQuery>(body)?).await?;
                // The caller logs the requests.
                let found = SearchResults { asked: memory_store.asked.take(), ..found };
                Ok(Reply::json(200, &serde_json::to_value(found).map_err(Error::internal)?))
            }
            MemoryAsk::Look => {
                let wanted: Vec<Vec<i64>> = parse_body(body)?;
                Ok(Reply::json(200, &json!(self.look(memory, &wanted)?)))
            }
            MemoryAsk::Apply => {
                let told = memory_store.apply(parse_body::<NoteRequest>(body)?)?;
                Ok(Reply::json(200, &json!(told)))
            }
        }
    }

    /// The current texts of results; `None` for deleted ones.
    fn look(&self, memory: &Memory, wanted: &[Vec<i64>]) -> Result<Vec<Option<Hit>>> {
        if !self.has_tables()? {
            return Ok(vec![None; wanted.len()]);
        }
        wanted.iter().map(|chunks| current_hit(self.host.sql(), &memory.name, chunks, 0.0)).collect()
    }
}

/// Writes rows to the memory's own log, which keeps the newest.
fn keep_logged(sql: &dyn Sql, rows: impl Iterator<Item = Attempt>) -> Result<()> {
    logs::TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    for row in rows {
        row.insert(sql)?;
    }
    logs::keep(sql, limits::MEMORY_LOG_ROWS)
}

fn parse_body<T: DeserializeOwned>(body: &str) -> Result<T> {
    crate::json::from_str(body).map_err(|error| Error::internal(format!("a call of a memory: {error}")))
}

impl MemoryHost for SharedMemory {
    fn host(&self) -> &dyn Host {
        &*self.host
    }

    fn make_tables(&self) -> Result<()> {
        table::create_tables(self.host.sql())?;
        stores::make(self.host.sql())?;
        self.tables.set(true);
        Ok(())
    }

    fn has_tables(&self) -> Result<bool> {
        if !self.tables.get() {
            self.tables.set(stores::is_there(self.host.sql()));
        }
        Ok(self.tables.get())
    }

    fn change(
        &self,
        name: &str,
        asked: UnloggedRequests<'_>,
        work: &mut dyn FnMut(&dyn Sql) -> Result<PendingWork>,
    ) -> Result<()> {
        self.host.transaction(|sql| {
            if let Some((model, requests)) = asked {
                let now = self.host.now_us();
                let rows = requests.iter().map(|request| row_of(model, "", request, now));
                keep_logged(sql, rows)?;
            }
            match work(sql)? {
                PendingWork::Index => {
                    let now = self.host.now_us();
                    table::schedule(sql, name, now)?;
                    // A running handler reads the pending work again before it returns.
                    if self.working.get() { Ok(()) } else { self.host.set_alarm(Some(now)) }
                }
                PendingWork::Progress => table::record_progress(sql, true),
                PendingWork::Settled => table::record_progress(sql, false),
                PendingWork::Nothing => Ok(()),
            }
        })
    }

    fn deployment(&self, name: &str) -> Option<String> {
        self.of_deployment(name)
    }

    fn clean(&self, text: String) -> String {
        let rules = Rules::of(&self.catalog.settings.scrub, None);
        Scrubber::new(&rules).text(self.redactor().owned(text))
    }
}
