//! The smallest host a directory runs on: SQLite in memory, a clock that tests set, an alarm slot, and a root
//! directory that may be out of reach.

use std::cell::{Cell as Flag, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bobbin::definitions::Catalog;
use bobbin::directory::Directory;
use bobbin::host::{Cell, Object, Param, Pending, Rows, Sibling, Sql};
use bobbin::{Code, Error, Result};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Statement, StatementStatus};

/// Real SQLite; remembers how many sorts the statements needed.
pub struct Database {
    connection: Connection,
    pub sorts: Flag<i32>,
}

impl Database {
    fn prepare(&self, statement: &str, params: &[Param<'_>]) -> Result<Statement<'_>> {
        let mut prepared = self.connection.prepare(statement).map_err(Error::internal)?;
        for (index, param) in params.iter().enumerate() {
            let bound = match *param {
                Param::Null => ToSqlOutput::Owned(Value::Null),
                Param::Int(value) => ToSqlOutput::Owned(Value::Integer(value)),
                Param::Real(value) => ToSqlOutput::Owned(Value::Real(value)),
                Param::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
                Param::Blob(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
            };
            prepared.raw_bind_parameter(index + 1, bound).map_err(Error::internal)?;
        }
        Ok(prepared)
    }
}

/// The rows of a statement, until they are read or closed.
struct LazyRows<'a> {
    rows: Option<rusqlite::Rows<'a>>,
    cells: Vec<Cell>,
}

impl Rows for LazyRows<'_> {
    fn next(&mut self) -> Result<Option<&[Cell]>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let Some(row) = rows.next().map_err(Error::internal)? else {
            self.close();
            return Ok(None);
        };
        self.cells = (0..row.as_ref().column_count())
            .map(|at| match row.get_ref_unwrap(at) {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Int(value),
                ValueRef::Real(value) => Cell::Real(value),
                ValueRef::Text(value) => Cell::Text(String::from_utf8(value.to_vec()).unwrap()),
                ValueRef::Blob(value) => Cell::Blob(value.to_vec()),
            })
            .collect();
        Ok(Some(&self.cells))
    }

    fn close(&mut self) {
        self.rows = None;
    }
}

impl Sql for Database {
    fn run(&self, statement: &'static str, params: &[Param<'_>]) -> Result<()> {
        self.each(statement, params, &mut |_| {
            Err(Error::internal(format!("nobody reads the rows that would stay open: {statement}")))
        })
    }

    fn read(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        reader: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> Result<()> {
        let mut prepared = self.prepare(statement, params)?;
        let mut rows = LazyRows { rows: Some(prepared.raw_query()), cells: Vec::new() };
        let outcome = reader(&mut rows);
        // No table of a directory is ever dropped, so what the platform refuses while a statement is open shows here.
        assert!(rows.rows.is_none(), "this stays open: {statement}");
        drop(rows);
        self.sorts.set(self.sorts.get() + prepared.get_status(StatementStatus::Sort));
        outcome
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
    pub root: RefCell<Option<Rc<Directory>>>,
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

    /// The text that a query reads.
    pub fn text(&self, statement: &str) -> String {
        self.database.connection.query_row(statement, [], |row| row.get(0)).unwrap()
    }

    /// A directory on this storage, as a new object would be.
    pub fn open(self: &Rc<World>) -> Rc<Directory> {
        let catalog = Catalog::from_json(
            r#"{
            "models": { "m": { "provider": "demo", "model": "demo" }, "o": { "provider": "openai", "model": "o" } },
            "prompts": { "p": { "toolDescription": "d", "prompt": "x", "model": "m" } },
            "agents": { "helper": { "sideA": { "prompt": "p" }, "title": "The helper", "icon": "/helper.svg" } }
        }"#,
        )
        .unwrap();
        Directory::new(Rc::new(TinyHost(self.clone())), Rc::new(catalog))
    }
}

pub struct TinyHost(Rc<World>);

impl Object for TinyHost {
    fn sql(&self) -> &dyn Sql {
        &self.0.database
    }

    fn transact(&self, work: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        let alarm = self.0.alarm_us.get();
        self.0.database.connection.execute_batch("BEGIN").unwrap();
        let result = work(&self.0.database);
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

    fn sibling(&self, to: Sibling, call: String) -> Pending<Result<String>> {
        assert_eq!(to, Sibling::Directory("root".into()));
        let root = self.0.root.borrow().clone();
        Box::pin(async move {
            let root = root.ok_or_else(|| Error::new(Code::Overloaded, "the root is out of reach"))?;
            serde_json::to_string(&root.call(&call)).map_err(Error::internal)
        })
    }

    fn sleep_until(&self, _: i64) -> Pending<()> {
        Box::pin(std::future::ready(()))
    }

    fn set_alarm(&self, due_us: Option<i64>) -> Result<()> {
        self.0.alarm_us.set(due_us);
        Ok(())
    }

    fn alarm(&self) -> Pending<Result<Option<i64>>> {
        Box::pin(std::future::ready(Ok(self.0.alarm_us.get())))
    }

    fn spawn(&self, _: Pending<()>) {}

    fn log(&self, line: &str) {
        self.0.log.borrow_mut().push(line.to_owned());
    }
}
