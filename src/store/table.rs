//! What the file of a table gives of it to the schema.

use crate::error::Error;

/// How a table is made, its indexes included, and how it goes.
pub(crate) struct Table {
    pub(crate) create: &'static [&'static str],
    pub(crate) drop: &'static str,
}

/// Whether a statement failed because its table was never made.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.message.contains("no such table")
}
