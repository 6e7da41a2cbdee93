//! A page of a list, bounded by rows and by bytes of JSON. A response crosses between objects as one message,
//! which the platform limits. So every list is read row by row into a page. The first row always fits,
//! however large it is, because otherwise no client could read past it.

use std::io;
use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::Value;

use crate::error::Result;
use crate::json_text::JsonText;
use crate::limits;

/// A page that is being filled.
#[derive(Debug)]
pub struct Page<T = Value> {
    rows: Vec<T>,
    /// Maximum number of rows.
    limit: usize,
    /// Remaining bytes.
    left: usize,
    /// Whether a row did not fit.
    more: bool,
}

impl<T> Page<T> {
    /// An empty page of at most `limit` rows and [`limits::PAGE_BYTES`].
    pub fn new(limit: u32) -> Page<T> {
        Page::of_bytes(limit, limits::PAGE_BYTES)
    }

    /// An empty page of at most `limit` rows and `bytes`.
    pub fn of_bytes(limit: u32, bytes: usize) -> Page<T> {
        Page { rows: Vec::new(), limit: limit as usize, left: bytes, more: false }
    }

    /// Adds a row with its size. `row` is only called if there may be room. `Break`: the page ends before
    /// this row.
    pub fn add_sized(&mut self, row: impl FnOnce() -> Result<(T, usize)>) -> Result<ControlFlow<()>> {
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

    /// Number of rows that still fit; 0 after one did not fit.
    pub fn room(&self) -> u32 {
        let room = if self.more { 0 } else { self.limit.saturating_sub(self.rows.len()) };
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    /// Whether a row did not fit.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// Number of rows.
    #[expect(clippy::len_without_is_empty, reason = "a page is never asked whether it is empty")]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows, in order.
    pub fn into_rows(self) -> Vec<T> {
        self.rows
    }
}

impl Page {
    /// Adds a row of JSON. `Break`: the page ends before this row.
    pub fn add(&mut self, row: impl FnOnce() -> Result<Value>) -> Result<ControlFlow<()>> {
        self.add_sized(|| {
            let row = row()?;
            let bytes = json_bytes(&row);
            Ok((row, bytes))
        })
    }
}

impl<T> Page<JsonText<T>> {
    /// Adds a row of JSON text. `Break`: the page ends before this row.
    pub fn add_text(&mut self, row: impl FnOnce() -> Result<JsonText<T>>) -> Result<ControlFlow<()>> {
        self.add_sized(|| {
            let row = row()?;
            let bytes = row.get().len();
            Ok((row, bytes))
        })
    }
}

/// Size of a value as JSON.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut count = Count(0);
    // The counter never fails, and a value that cannot be serialized counts as nothing.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// A writer that counts bytes.
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

    /// The number of these rows that fit a page, and whether there are more.
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
