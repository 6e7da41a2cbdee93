//! Real SQLite with the platform's limits, the platform's coalescing of writes between two awaits, and counters.
//!
//! A *stretch* is what the process writes between two awaits: the platform commits it as a whole. It is a SQLite
//! transaction that the first write opens and the executor commits when the poll ends; `Host::transaction` is a
//! savepoint in it. A crash rolls the stretch back (lost) or commits what is outside unfinished savepoints (kept).
//!
//! What is counted approximates the platform's billing. Rows read: rows handed over, plus one for each row that an
//! `UPDATE` or `DELETE` changed; a full scan counts the rows it stepped over, and an aggregate that used more than
//! 1,000 steps of SQLite's machine counts one row per ten of them, so that a hidden scan shows. Rows written: changed
//! rows, each once more per index of its table (`UPDATE`: per index that names a column the statement sets). Schema
//! statements are not counted as rows.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use bobbin::host::{Cell as Column, Param, Rows};
use bobbin::{Error, Result};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, StatementStatus};

use super::statement::Statement;

/// Our own limit for a row, bytes (docs/durability.md).
pub const ROW_BYTES: usize = 1_310_720;

/// What the database did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Statements run.
    pub statements: u64,
    /// Rows read.
    pub read: u64,
    /// Rows written.
    pub written: u64,
    /// Times the alarm was set or removed.
    pub alarms: u64,
}

impl std::ops::Sub for Counters {
    type Output = Counters;
    fn sub(self, earlier: Counters) -> Counters {
        Counters {
            statements: self.statements - earlier.statements,
            read: self.read - earlier.read,
            written: self.written - earlier.written,
            alarms: self.alarms - earlier.alarms,
        }
    }
}

/// The object's database.
pub struct Database {
    connection: Connection,
    stretch: Cell<bool>,
    depth: Cell<u32>,
    /// What was done so far.
    pub counters: Cell<Counters>,
    /// Times that what is stored may have become something else.
    changes: Cell<u64>,
    /// Every statement, when the log is wanted: text, rows read, rows written.
    pub log: RefCell<Option<Vec<(String, u64, u64)>>>,
    /// Statements that the platform would refuse or that break our own rules.
    pub violations: RefCell<Vec<String>>,
    /// Columns of each index of a table.
    indexes: RefCell<HashMap<String, Vec<Vec<String>>>>,
    /// Names of the tables, until they may have become others.
    tables: RefCell<Option<BTreeSet<String>>>,
    /// By where a statement's text lies: the index entries that one row of it writes.
    entries: RefCell<HashMap<*const u8, u64>>,
    numbers_as_floats: bool,
    /// Statements that were left before their last row since the process began.
    left_open: Cell<u32>,
}

impl Database {
    /// An empty database. The platform hands integers over as floating-point numbers; whether this one does is
    /// the seed's choice, so that the engine can rely on neither.
    pub fn new(numbers_as_floats: bool) -> Database {
        let connection = Connection::open_in_memory().unwrap();
        for (limit, value) in [
            (Limit::SQLITE_LIMIT_LENGTH, 2_000_000),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
            (Limit::SQLITE_LIMIT_COLUMN, 100),
            (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
            (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 5),
            (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
            (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
            (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
            (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 10),
        ] {
            connection.set_limit(limit, value).unwrap();
        }
        connection.set_prepared_statement_cache_capacity(1000);
        Database {
            connection,
            stretch: Cell::new(false),
            depth: Cell::new(0),
            counters: Cell::default(),
            changes: Cell::default(),
            log: RefCell::default(),
            violations: RefCell::default(),
            indexes: RefCell::default(),
            tables: RefCell::default(),
            entries: RefCell::default(),
            numbers_as_floats,
            left_open: Cell::default(),
        }
    }

    /// The process has ended, and with it the statements that it left open.
    pub fn restarted(&self) {
        self.left_open.set(0);
    }

    /// Opens the stretch if none is open; true when it did.
    pub fn open_stretch(&self) -> bool {
        if self.stretch.replace(true) {
            return false;
        }
        self.raw("BEGIN");
        true
    }

    /// Whether writes wait for the next await.
    pub fn in_stretch(&self) -> bool {
        self.stretch.get()
    }

    /// Ends the stretch: commits it, or rolls it back.
    pub fn close_stretch(&self, commit: bool) {
        if self.stretch.replace(false) {
            self.depth.set(0);
            self.raw(if commit { "COMMIT" } else { "ROLLBACK" });
            if !commit {
                self.changed();
                self.forget_schema();
            }
        }
    }

    /// Opens a savepoint.
    pub fn begin(&self) {
        self.depth.set(self.depth.get() + 1);
        self.raw(&format!("SAVEPOINT s{}", self.depth.get()));
    }

    /// Ends the innermost savepoint.
    pub fn end(&self, keep: bool) {
        let depth = self.depth.get();
        if !keep {
            self.raw(&format!("ROLLBACK TO s{depth}"));
            self.changed();
            self.forget_schema();
        }
        self.raw(&format!("RELEASE s{depth}"));
        self.depth.set(depth - 1);
    }

    fn raw(&self, statement: &str) {
        self.connection.prepare_cached(statement).unwrap().execute([]).unwrap();
    }

    fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// Another number whenever what is stored may have become something else.
    pub fn version(&self) -> u64 {
        self.changes.get()
    }

    /// Bytes of the database.
    pub fn size(&self) -> i64 {
        let number = |pragma| self.connection.query_row(pragma, [], |row| row.get::<_, i64>(0)).unwrap();
        number("PRAGMA page_count") * number("PRAGMA page_size")
    }

    /// A question of a test, not counted.
    pub fn ask<T: rusqlite::types::FromSql>(&self, statement: &str) -> Vec<T> {
        let mut prepared = self.connection.prepare_cached(statement).unwrap();
        prepared.query_map([], |row| row.get(0)).unwrap().map(|value| value.unwrap()).collect()
    }

    /// Whether there is a table of this name. The names are read once, as a sweep asks some thousand times.
    pub fn has_table(&self, name: &str) -> bool {
        let mut known = self.tables.borrow_mut();
        let names = || self.ask("SELECT name FROM sqlite_schema WHERE type = 'table'").into_iter().collect();
        known.get_or_insert_with(names).contains(name)
    }

    /// Changes the database behind the process's back.
    pub fn alter(&self, statement: &str) {
        self.changed();
        self.forget_schema();
        self.connection.execute_batch(statement).unwrap();
    }

    /// The largest row of any table if it is larger than it may be: bytes of its columns, with the table's name. None is in a
    /// database that is smaller as a whole, and then no table is asked.
    pub fn row_beyond(&self, most: usize) -> Option<(usize, String)> {
        let small = usize::try_from(self.size()).is_ok_and(|size| size <= most);
        (!small).then(|| self.largest_row()).filter(|(bytes, _)| *bytes > most)
    }

    /// The largest row of any table, bytes of its columns, with the table's name.
    fn largest_row(&self) -> (usize, String) {
        let tables: Vec<String> =
            self.ask("SELECT name || char(10) || sql FROM sqlite_schema WHERE type = 'table'");
        let mut largest = (0, String::new());
        for table in tables {
            let question = self.longest_row_of(&table);
            let bytes: Vec<Option<i64>> = self.ask(&question);
            let bytes = bytes.first().copied().flatten().unwrap_or(0) as usize;
            if bytes > largest.0 {
                largest = (bytes, table);
            }
        }
        largest
    }

    /// What asks for the bytes of the longest row of a table, which is given by its name and, in the next line, what made
    /// it. The columns are asked for once for all databases.
    fn longest_row_of(&self, table: &str) -> String {
        thread_local! {
            static KNOWN: RefCell<HashMap<String, String>> = RefCell::default();
        }
        if let Some(known) = KNOWN.with_borrow(|known| known.get(table).cloned()) {
            return known;
        }
        let name = table.lines().next().unwrap_or("");
        let columns: Vec<String> = self.ask(&format!("SELECT name FROM pragma_table_info('{name}')"));
        let sum: Vec<String> =
            columns.iter().map(|column| format!("coalesce(length(CAST(\"{column}\" AS BLOB)), 0)")).collect();
        let question = format!("SELECT max({}) FROM \"{name}\"", sum.join(" + "));
        KNOWN.with_borrow_mut(|known| known.insert(table.to_owned(), question.clone()));
        question
    }

    fn check(&self, text: &str, Statement { verb, writes, several, .. }: &Statement, params: &[Param<'_>]) {
        let mut violations = self.violations.borrow_mut();
        let short = || text.chars().take(80).collect::<String>();
        if matches!(
            verb.as_str(),
            "BEGIN" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "ATTACH" | "VACUUM"
        ) {
            violations.push(format!("the platform refuses {verb}: {}", short()));
        }
        if *several {
            violations.push(format!("more than one statement at once: {}", short()));
        }
        let bytes: usize = params
            .iter()
            .map(|param| match param {
                Param::Text(text) => text.len(),
                Param::Blob(blob) => blob.len(),
                _ => 8,
            })
            .sum();
        if bytes > ROW_BYTES && *writes {
            violations.push(format!("a row of {bytes} bytes, more than 1.25 MB: {}", short()));
        }
        for param in params {
            if let Param::Int(value) = param
                && value.unsigned_abs() > 1 << 53
            {
                violations.push(format!("the platform carries 53 bits, not {value}: {}", short()));
            }
        }
    }

    /// Runs a statement that returns no rows.
    pub fn run(&self, statement: &'static str, params: &[Param<'_>]) -> Result<()> {
        self.read(statement, params, &mut |rows| {
            if rows.next()?.is_some() {
                self.violations.borrow_mut().push(format!("rows that nobody reads stay open: {statement}"));
            }
            Ok(())
        })
    }

    /// Runs one statement. `reader` gets the rows that it returns, lazily.
    pub fn read(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        reader: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> Result<()> {
        let known = Statement::of(statement);
        self.check(statement, &known, params);
        if known.verb == "DROP" && self.left_open.get() > 0 {
            return Err(failed("database table is locked", statement));
        }
        self.step(statement, &known, params, reader).unwrap_or_else(|error| Err(failed(error, statement)))
    }

    fn step(
        &self,
        statement: &'static str,
        known: &Statement,
        params: &[Param<'_>],
        reader: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> rusqlite::Result<Result<()>> {
        let mut prepared = self.connection.prepare_cached(statement)?;
        if prepared.parameter_count() != params.len() {
            let expected = prepared.parameter_count();
            self.violations
                .borrow_mut()
                .push(format!("{} parameters for {expected} places: {statement}", params.len()));
        }
        for (index, param) in params.iter().enumerate() {
            prepared.raw_bind_parameter(index + 1, bound(param))?;
        }
        let columns = prepared.column_count();
        let readonly = prepared.readonly();
        if !readonly {
            self.changed();
        }
        // SQLite runs a statement without rows by its first step.
        let mut rows = LazyRows {
            rows: Some(prepared.raw_query()),
            statement,
            database: self,
            cells: Vec::with_capacity(columns),
            handed: 0,
        };
        let outcome = reader(&mut rows);
        let handed = rows.handed;
        if rows.rows.is_some() {
            self.left_open.set(self.left_open.get() + 1);
        }
        drop(rows);
        let scanned = prepared.reset_status(StatementStatus::FullscanStep) as u64;
        let steps = prepared.reset_status(StatementStatus::VmStep) as u64;
        drop(prepared);
        let hidden = if steps > 1_000 && handed < steps / 100 { steps / 10 } else { 0 };
        let changed = match known.verb.as_str() {
            _ if readonly => 0,
            "CREATE" | "ALTER" | "DROP" | "PRAGMA" => {
                self.forget_schema();
                0
            }
            _ => self.connection.changes(),
        };
        let modified = if known.verb == "INSERT" || known.verb == "REPLACE" { 0 } else { changed };
        let returned = if readonly { handed } else { 0 };
        let read = (returned + modified).max(scanned).max(hidden);
        let written = if changed == 0 { 0 } else { changed * (1 + self.entries(statement, known)) };
        let mut counters = self.counters.get();
        counters.statements += 1;
        counters.read += read;
        counters.written += written;
        self.counters.set(counters);
        if let Some(log) = self.log.borrow_mut().as_mut() {
            log.push((statement.split_whitespace().collect::<Vec<_>>().join(" "), read, written));
        }
        Ok(outcome)
    }

    fn forget_schema(&self) {
        self.indexes.borrow_mut().clear();
        self.tables.borrow_mut().take();
        self.entries.borrow_mut().clear();
    }

    /// Index entries that one changed row of this statement writes.
    fn entries(&self, statement: &'static str, known: &Statement) -> u64 {
        let place = statement.as_ptr();
        if let Some(entries) = self.entries.borrow().get(&place) {
            return *entries;
        }
        let entries = self.count_entries(known);
        self.entries.borrow_mut().insert(place, entries);
        entries
    }

    fn count_entries(&self, Statement { verb, table, assigned, .. }: &Statement) -> u64 {
        let Some(table) = table else { return 0 };
        let mut cache = self.indexes.borrow_mut();
        let indexes = cache.entry((*table).to_owned()).or_insert_with(|| {
            let without_rowid: Vec<i64> =
                self.ask(&format!("SELECT wr FROM pragma_table_list('{table}') WHERE schema = 'main'"));
            let names: Vec<String> = self.ask(&format!(
                "SELECT name FROM pragma_index_list('{table}') WHERE NOT (origin = 'pk' AND {})",
                without_rowid.first().copied().unwrap_or(0)
            ));
            names
                .iter()
                .map(|name| {
                    let columns: Vec<Option<String>> =
                        self.ask(&format!("SELECT name FROM pragma_index_info('{name}')"));
                    columns.into_iter().flatten().collect()
                })
                .collect()
        });
        if verb != "UPDATE" {
            return indexes.len() as u64;
        }
        indexes.iter().filter(|columns| columns.iter().any(|c| assigned.contains(&c.as_str()))).count() as u64
    }

    fn cell(&self, value: ValueRef<'_>) -> Column {
        match value {
            ValueRef::Null => Column::Null,
            ValueRef::Integer(value) if self.numbers_as_floats => Column::Real(value as f64),
            ValueRef::Integer(value) => Column::Int(value),
            ValueRef::Real(value) => Column::Real(value),
            ValueRef::Text(text) => Column::Text(String::from_utf8(text.to_vec()).unwrap()),
            ValueRef::Blob(blob) => Column::Blob(blob.to_vec()),
        }
    }
}

/// The rows of a statement. The platform keeps one that is neither read to its end nor closed open, until its garbage collector
/// comes by.
struct LazyRows<'a> {
    rows: Option<rusqlite::Rows<'a>>,
    statement: &'static str,
    database: &'a Database,
    cells: Vec<Column>,
    handed: u64,
}

impl Rows for LazyRows<'_> {
    fn next(&mut self) -> Result<Option<&[Column]>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let failed = |error| failed(error, self.statement);
        let Some(row) = rows.next().map_err(failed)? else {
            self.close();
            return Ok(None);
        };
        self.handed += 1;
        self.cells.clear();
        for index in 0..row.as_ref().column_count() {
            self.cells.push(self.database.cell(row.get_ref(index).map_err(failed)?));
        }
        Ok(Some(&self.cells))
    }

    fn close(&mut self) {
        self.rows = None;
    }
}

fn failed(error: impl std::fmt::Display, statement: &str) -> Error {
    Error::internal(format!("{error}: {statement}"))
}

fn bound<'a>(param: &Param<'a>) -> ToSqlOutput<'a> {
    ToSqlOutput::Borrowed(match *param {
        Param::Null => ValueRef::Null,
        Param::Int(value) => ValueRef::Integer(value),
        Param::Real(value) => ValueRef::Real(value),
        Param::Text(text) => ValueRef::Text(text.as_bytes()),
        Param::Blob(blob) => ValueRef::Blob(blob),
    })
}
