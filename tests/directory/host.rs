//! The smallest host a directory runs on: SQLite in memory, a clock that tests set, an alarm slot, and a root
//! directory that may be out of reach.

use std::cell::{Cell as Flag, RefCell};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use bobbin::api::ThreadRequest;
use bobbin::code::{Door, Outcome, Run};
use bobbin::directory::Directory;
use bobbin::http::{Body, FetchError, Request, Response};
use bobbin::models::{ProviderCall, ProviderCode, ProviderError};
use bobbin::spec::Catalog;
use bobbin::spec::message::ToolResult;
use bobbin::thread::host::{Cell, EffectCall, Host, NativeCall, ObjectStream, Param, Sibling, Sql};
use bobbin::thread::{EndpointAnswer, EndpointCall, Frame, HookCall, Panicked};
use bobbin::{Code, Error, Result};
use bytes::Bytes;
use futures_util::stream::LocalBoxStream;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, StatementStatus};
use serde_json::Value as Json;

/// Real SQLite; remembers how many sorts the statements needed.
pub struct Database {
    connection: Connection,
    pub sorts: Flag<i32>,
}

impl Database {
    fn run_or_read(
        &self,
        statement: &str,
        params: &[Param<'_>],
        row: &mut dyn FnMut(&[Cell]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut prepared = self.connection.prepare(statement).map_err(Error::internal)?;
        let columns = prepared.column_count();
        let bound: Vec<ToSqlOutput<'_>> = params
            .iter()
            .map(|param| match *param {
                Param::Null => ToSqlOutput::Owned(Value::Null),
                Param::Int(value) => ToSqlOutput::Owned(Value::Integer(value)),
                Param::Real(value) => ToSqlOutput::Owned(Value::Real(value)),
                Param::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
                Param::Blob(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
            })
            .collect();
        let mut rows = prepared.query(rusqlite::params_from_iter(bound)).map_err(Error::internal)?;
        while let Some(found) = rows.next().map_err(Error::internal)? {
            let cells: Vec<Cell> = (0..columns)
                .map(|at| match found.get_ref_unwrap(at) {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(value) => Cell::Int(value),
                    ValueRef::Real(value) => Cell::Real(value),
                    ValueRef::Text(value) => Cell::Text(String::from_utf8(value.to_vec()).unwrap()),
                    ValueRef::Blob(value) => Cell::Blob(value.to_vec()),
                })
                .collect();
            if row(&cells)?.is_break() {
                break;
            }
        }
        drop(rows);
        self.sorts.set(self.sorts.get() + prepared.get_status(StatementStatus::Sort));
        Ok(())
    }
}

impl Sql for Database {
    fn run(&self, statement: &'static str, params: &[Param<'_>]) -> Result<()> {
        self.run_or_read(statement, params, &mut |_| Ok(ControlFlow::Continue(())))
    }

    fn each(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        row: &mut dyn FnMut(&[Cell]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.run_or_read(statement, params, row)
    }

    fn size(&self) -> i64 {
        0
    }
}

/// What tests hold on to: it outlives the directory, as storage outlives an object.
pub struct World {
    pub database: Database,
    pub now_us: Flag<i64>,
    pub alarm_us: Flag<Option<i64>>,
    /// The root, when this is an owner's directory and the root can be reached.
    pub root: RefCell<Option<Rc<Directory<TinyHost>>>>,
    pub log: RefCell<Vec<String>>,
    vars: RefCell<BTreeMap<String, String>>,
}

impl World {
    pub fn new() -> Rc<World> {
        Rc::new(World {
            database: Database { connection: Connection::open_in_memory().unwrap(), sorts: Flag::new(0) },
            now_us: Flag::new(1_795_219_200_000_000),
            alarm_us: Flag::new(None),
            root: RefCell::default(),
            log: RefCell::default(),
            vars: RefCell::default(),
        })
    }

    /// Sets a variable of the Worker.
    pub fn set_var(&self, name: &str, value: &str) {
        self.vars.borrow_mut().insert(name.into(), value.into());
    }

    /// Changes what is stored.
    pub fn alter(&self, statements: &str) {
        self.database.connection.execute_batch(statements).unwrap();
    }

    /// The integer that a query reads.
    pub fn count(&self, statement: &str) -> i64 {
        self.database.connection.query_row(statement, [], |row| row.get(0)).unwrap()
    }

    /// A directory on this storage, as a new object would be.
    pub fn open(self: &Rc<World>) -> Rc<Directory<TinyHost>> {
        let catalog = Catalog::from_json(
            r#"{
            "models": { "m": { "provider": "demo", "model": "demo" }, "o": { "provider": "openai", "model": "o" } },
            "prompts": { "p": { "toolDescription": "d", "prompt": "x", "model": "m" } },
            "agents": { "helper": { "sideA": { "prompt": "p" }, "title": "The helper", "icon": "/helper.svg" } }
        }"#,
        )
        .unwrap();
        Directory::new(TinyHost(self.clone()), Rc::new(catalog))
    }
}

pub struct TinyHost(Rc<World>);

fn no_bucket() -> FetchError {
    FetchError("a directory has no files".into())
}

pub struct NoBody;

impl Body for NoBody {
    async fn next(&mut self) -> Option<std::result::Result<Bytes, FetchError>> {
        None
    }
}

impl Host for TinyHost {
    type Sql = Database;
    type Body = NoBody;

    fn sql(&self) -> &Database {
        &self.0.database
    }

    fn transaction<T>(&self, f: impl FnOnce(&Database) -> Result<T>) -> Result<T> {
        let alarm = self.0.alarm_us.get();
        self.0.database.connection.execute_batch("BEGIN").unwrap();
        let result = f(&self.0.database);
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.0.database.connection.execute_batch(end).unwrap();
        if result.is_err() {
            self.0.alarm_us.set(alarm);
        }
        result
    }

    fn now_us(&self) -> i64 {
        self.0.now_us.get()
    }

    fn random(&self) -> [u8; 16] {
        [7; 16]
    }

    fn var(&self, name: &str) -> Option<String> {
        self.0.vars.borrow().get(name).cloned()
    }

    fn fetch(
        &self,
        _: Request,
    ) -> impl Future<Output = std::result::Result<Response<NoBody>, FetchError>> + 'static {
        std::future::ready(Err(FetchError("a directory fetches nothing".into())))
    }

    fn native(&self, _: NativeCall) -> impl Future<Output = ToolResult> + 'static {
        std::future::ready(ToolResult::error("a directory has no tools"))
    }

    fn effect(&self, _: EffectCall) -> impl Future<Output = std::result::Result<(), String>> + 'static {
        std::future::ready(Err("a directory has no effects".to_owned()))
    }

    fn endpoint(
        &self,
        _: EndpointCall,
    ) -> impl Future<Output = std::result::Result<Result<EndpointAnswer>, Panicked>> + 'static {
        std::future::ready(Ok(Err(Error::internal("a directory has no endpoints"))))
    }

    fn hook(
        &self,
        _: HookCall,
    ) -> impl Future<Output = std::result::Result<std::result::Result<Json, String>, Panicked>> + 'static
    {
        std::future::ready(Ok(Err("a directory has no hooks".into())))
    }

    fn provider(
        &self,
        _: ProviderCall,
    ) -> impl Future<Output = std::result::Result<std::result::Result<(), ProviderError>, Panicked>> + 'static
    {
        std::future::ready(Ok(Err(ProviderError::new(ProviderCode::Unknown, "a directory has no models"))))
    }

    fn sandbox(&self, _: Run, _: Rc<dyn Door>) -> impl Future<Output = Outcome> + 'static {
        std::future::ready(Outcome::lost("a directory runs no code"))
    }

    fn sibling(&self, to: Sibling, call: String) -> impl Future<Output = Result<String>> + 'static {
        assert_eq!(to, Sibling::Directory("root".into()));
        let root = self.0.root.borrow().clone();
        async move {
            let root = root.ok_or_else(|| Error::new(Code::Overloaded, "the root is out of reach"))?;
            serde_json::to_string(&root.call(&call)).map_err(Error::internal)
        }
    }

    fn sibling_stream(
        &self,
        _: String,
        _: ThreadRequest,
    ) -> impl Future<Output = std::result::Result<Response<ObjectStream>, FetchError>> + 'static {
        std::future::ready(Err(FetchError("a directory reads no threads".into())))
    }

    fn bucket(&self) -> Option<u64> {
        None
    }

    fn put_object(
        &self,
        _: String,
        _: u64,
        _: LocalBoxStream<'static, Result<Bytes>>,
    ) -> impl Future<Output = std::result::Result<(), FetchError>> + 'static {
        std::future::ready(Err(no_bucket()))
    }

    fn get_object(
        &self,
        _: String,
        _: Range<u64>,
    ) -> impl Future<Output = std::result::Result<Option<ObjectStream>, FetchError>> + 'static {
        std::future::ready(Err(no_bucket()))
    }

    fn delete_objects(
        &self,
        _: Vec<String>,
    ) -> impl Future<Output = std::result::Result<(), FetchError>> + 'static {
        std::future::ready(Err(no_bucket()))
    }

    fn sleep_until(&self, _: i64) -> impl Future<Output = ()> + 'static {
        std::future::ready(())
    }

    fn set_alarm(&self, due_us: Option<i64>) -> Result<()> {
        self.0.alarm_us.set(due_us);
        Ok(())
    }

    fn alarm(&self) -> impl Future<Output = Result<Option<i64>>> + 'static {
        std::future::ready(Ok(self.0.alarm_us.get()))
    }

    fn close_listeners(&self, _: &str) {}

    fn has_listeners(&self) -> bool {
        false
    }

    fn broadcast(&self, _: &Frame) {}

    fn spawn(&self, _: impl Future<Output = ()> + 'static) {}

    fn log(&self, line: &str) {
        self.0.log.borrow_mut().push(line.to_owned());
    }
}
