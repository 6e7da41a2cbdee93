//! The core's view of SQLite: parameters, cells, one statement at a time.

use std::ops::ControlFlow;

use crate::error::Result;

/// A value bound to a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    /// SQL `NULL`.
    Null,
    /// An integer; the platform carries 53 bits.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

impl From<i64> for Param<'_> {
    fn from(value: i64) -> Self {
        Param::Int(value)
    }
}
impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Param::Text(value)
    }
}
impl<'a> From<&'a String> for Param<'a> {
    fn from(value: &'a String) -> Self {
        Param::Text(value)
    }
}
impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Param::Null, Into::into)
    }
}

/// A column of a row that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// SQL `NULL`.
    Null,
    /// An integer.
    Int(i64),
    /// A floating-point number. The platform hands integers over as numbers too: see [`Cell::int`].
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Cell {
    /// The integer in this cell; `None` for anything else. A whole floating-point number counts.
    pub fn int(&self) -> Option<i64> {
        match self {
            Cell::Int(value) => Some(*value),
            Cell::Real(value) if value.fract() == 0.0 => Some(*value as i64),
            _ => None,
        }
    }

    /// The number in this cell.
    pub fn real(&self) -> Option<f64> {
        match self {
            Cell::Int(value) => Some(*value as f64),
            Cell::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes in this cell; `None` for anything else.
    pub fn blob(&self) -> Option<&[u8]> {
        match self {
            Cell::Blob(value) => Some(value),
            _ => None,
        }
    }

    /// The text in this cell; `None` for anything else.
    pub fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(value) => Some(value),
            _ => None,
        }
    }
}

/// The rows that a statement returns, read one at a time.
pub trait Rows {
    /// The next row; `None` after the last one. A failure is an error of code `internal` with SQLite's
    /// message.
    fn next(&mut self) -> Result<Option<&[Cell]>>;

    /// Ends the statement early. Has no effect after the last row.
    fn close(&mut self);
}

/// An object's SQLite database. Every call runs exactly one statement. A failure is an error of code
/// `internal` with SQLite's message.
pub trait Sql {
    /// Runs a statement that returns no rows.
    fn run(&self, statement: &'static str, params: &[Param<'_>]) -> Result<()>;

    /// Runs a statement and passes its rows to `reader`. Only [`Sql::each`] may call it: a statement that is
    /// neither read to its end nor closed may stay open, and SQLite drops no table while any statement is
    /// open.
    fn read(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        reader: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> Result<()>;

    /// Reads rows lazily until `row` breaks. The statement is closed when this returns, even if `row` fails
    /// or panics.
    fn each(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        row: &mut dyn FnMut(&[Cell]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.read(statement, params, &mut |rows| {
            let open = RowsGuard(rows);
            while let Some(cells) = open.0.next()? {
                if row(cells)?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Size of the object's database in bytes.
    fn size(&self) -> i64;
}

/// Closes the rows when dropped.
struct RowsGuard<'a>(&'a mut dyn Rows);

impl Drop for RowsGuard<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Rows of two integers; NULL becomes 0.
pub(crate) fn pairs(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<(i64, i64)>> {
    let mut found = Vec::new();
    sql.each(statement, params, &mut |cells| {
        if let [at, id] = cells {
            found.push((at.int().unwrap_or_default(), id.int().unwrap_or_default()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The first column of the first row, as an integer.
pub(crate) fn integer(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Option<i64>> {
    let mut value = None;
    sql.each(statement, params, &mut |cells| {
        value = cells.first().and_then(Cell::int);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(value)
}
