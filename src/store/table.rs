//! What the file of a table gives of it to the schema.

/// How a table is made, its indexes included, and how it goes.
pub(crate) struct Table {
    pub(crate) create: &'static [&'static str],
    pub(crate) drop: &'static str,
}
