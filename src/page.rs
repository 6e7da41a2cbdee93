//! A page of a list: so many rows, and so many bytes of JSON. An answer crosses from object to object as one message, which
//! the platform limits, whatever the rows hold; so every list is read through a page, row by row, and ends where either
//! is used up. The first row always comes, however large it is: else a list could never be read past it.

use std::io;
use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::Value;

use crate::error::Result;
use crate::limits;

/// A page that is being filled.
#[derive(Debug)]
pub(crate) struct Page<T = Value> {
    rows: Vec<T>,
    /// Rows that it has at most.
    limit: usize,
    /// Bytes that are left.
    left: usize,
    /// Whether a row came that it has no room for.
    more: bool,
}

impl<T> Page<T> {
    /// An empty page of at most `limit` rows and [`limits::PAGE_BYTES`].
    pub(crate) fn new(limit: u32) -> Page<T> {
        Page::of_bytes(limit, limits::PAGE_BYTES)
    }

    /// An empty page of at most `limit` rows and so many bytes.
    pub(crate) fn of_bytes(limit: u32, bytes: usize) -> Page<T> {
        Page { rows: Vec::new(), limit: limit as usize, left: bytes, more: false }
    }

    /// Takes a row and its size, which is asked for only where there is room for another row. `Break`: the page ends
    /// before this row.
    pub(crate) fn add_sized(&mut self, row: impl FnOnce() -> Result<(T, usize)>) -> Result<ControlFlow<()>> {
        if self.more || self.rows.len() >= self.limit {
            self.more = true;
            return Ok(ControlFlow::Break(()));
        }
        let (row, bytes) = row()?;
        if bytes > self.left && !self.rows.is_empty() {
            self.more = true;
            return Ok(ControlFlow::Break(()));
        }
        self.left = self.left.saturating_sub(bytes);
        self.rows.push(row);
        Ok(ControlFlow::Continue(()))
    }

    /// Rows that it can still take; 0 once one had no room.
    pub(crate) fn room(&self) -> u32 {
        let room = if self.more { 0 } else { self.limit.saturating_sub(self.rows.len()) };
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    /// Whether a row came that it had no room for.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Its rows, in the order in which they came.
    pub(crate) fn into_rows(self) -> Vec<T> {
        self.rows
    }
}

impl Page {
    /// Takes a row as JSON. `Break`: the page ends before this row.
    pub(crate) fn add(&mut self, row: impl FnOnce() -> Result<Value>) -> Result<ControlFlow<()>> {
        self.add_sized(|| {
            let row = row()?;
            let bytes = json_bytes(&row);
            Ok((row, bytes))
        })
    }
}

/// Bytes that a value takes as JSON.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    let mut count = Count(0);
    // What counts never fails, and what cannot be written takes no room.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Counts what is written to it.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    /// How many of these rows a page takes, and whether there are more.
    fn taken(limit: u32, bytes: usize, sizes: &[usize]) -> (usize, bool) {
        let mut page = Page::of_bytes(limit, bytes);
        for size in sizes {
            if page.add_sized(|| Ok(((), *size))).unwrap().is_break() {
                break;
            }
        }
        (page.len(), page.has_more())
    }

    #[test]
    fn a_page_ends_by_rows_or_by_bytes_and_has_one_row_at_least() {
        assert_eq!(taken(3, 10, &[]), (0, false));
        assert_eq!(taken(3, 10, &[1, 1, 1]), (3, false));
        assert_eq!(taken(3, 10, &[1, 1, 1, 1]), (3, true));
        assert_eq!(taken(3, 10, &[5, 5]), (2, false));
        assert_eq!(taken(3, 10, &[5, 6]), (1, true));
        assert_eq!(taken(3, 10, &[99]), (1, false));
        assert_eq!(taken(3, 10, &[99, 1]), (1, true));
        assert_eq!(taken(0, 10, &[1]), (0, true));
    }

    #[test]
    fn a_row_that_has_no_place_is_not_even_made() {
        let mut page: Page = Page::new(1);
        assert!(page.add(|| Ok(json!(1))).unwrap().is_continue());
        assert!(page.add(|| panic!("there is no room")).unwrap().is_break());
        assert_eq!(page.room(), 0);
    }

    #[test]
    fn sizes_are_those_of_the_text() {
        for value in [json!(null), json!("ü\u{1}\"\\"), json!({ "a": [1, 2.5, "x"], "b": {} })] {
            assert_eq!(json_bytes(&value), value.to_string().len());
        }
    }
}
