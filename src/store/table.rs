//! The declaration of a table.

use crate::error::Error;

/// The statements that create a table with its indexes, and that drop it.
pub(crate) struct Table {
    pub(crate) create: &'static [&'static str],
    pub(crate) drop: &'static str,
}

/// Whether a statement failed because its table was never created.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.message.contains("no such table")
}
