//! Files of messages, for the transitions that store, send and delete messages.

use crate::engine::files::conditions::Conditions;
use crate::engine::files::write::{Content, Draft, check_room, install};
use crate::engine::files::{search, tree};
use crate::error::Result;
use crate::host::Sql;
use crate::store::changes::FileChange;
use crate::store::file_path::FilePath;
use crate::store::file_record::{FileOptions, FileRecord};
use crate::store::files::Kind;
use crate::store::state::State;
use crate::store::{chunks, files as table};

/// Writes a file from its whole content. Requires the index over texts (`make_index`).
pub(crate) fn put(
    state: &mut State,
    sql: &dyn Sql,
    path: &str,
    mime: &str,
    content: &[u8],
    options: FileOptions,
    now: i64,
) -> Result<FileRecord> {
    let draft = Draft::new(FilePath::parse("path", path)?, mime, options, Conditions::default())?;
    check_room(sql, content.len() as u64)?;
    install(state, sql, &draft, Content::Whole(content), now).map(|written| written.record)
}

/// The file at a path, if it exists.
///
/// # Errors
/// `invalid_field` with `field` for an invalid path; `conflict` for a directory.
pub(crate) fn stat(sql: &dyn Sql, field: &str, path: &str) -> Result<Option<FileRecord>> {
    let path = FilePath::parse(field, path)?;
    match table::find(sql, &path)? {
        Some(row) if row.kind == Kind::Directory => Err(tree::is_directory(&path)),
        Some(row) => row.record().map(Some),
        None if path.is_root() => Err(tree::is_directory(&path)),
        None => Ok(None),
    }
}

/// The size of a file; `None` if it does not exist, or only the bucket has its content.
pub(crate) fn size(sql: &dyn Sql, path: &str) -> Result<Option<u64>> {
    let found = table::find(sql, &FilePath::parse("path", path)?)?;
    let is_here = |row: &table::Row| row.kind == Kind::File && !row.storage.is_away();
    Ok(found.filter(is_here).map(|row| row.size.unsigned_abs()))
}

/// The bytes of a file of at most `limit` bytes; `None` if it does not exist or is longer.
pub(crate) fn content(sql: &dyn Sql, path: &str, limit: usize) -> Result<Option<Vec<u8>>> {
    let found = table::find(sql, &FilePath::parse("path", path)?)?;
    let fits = |row: &table::Row| {
        row.kind == Kind::File && row.size.unsigned_abs() <= limit as u64 && !row.storage.is_away()
    };
    found.filter(fits).map(|row| search::content(sql, &row)).transpose()
}

/// The first row of a file's content, for checks of its beginning.
pub(crate) fn beginning(sql: &dyn Sql, path: &str) -> Result<Option<bytes::Bytes>> {
    match table::find(sql, &FilePath::parse("path", path)?)?.filter(|row| row.kind == Kind::File) {
        Some(row) => chunks::find(sql, row.id, 0),
        None => Ok(None),
    }
}

/// Deletes a file if `is_it` accepts it.
pub(crate) fn remove_if(
    state: &mut State,
    sql: &dyn Sql,
    path: &str,
    is_it: impl FnOnce(&FileRecord) -> bool,
) -> Result<()> {
    let Some(row) = table::find(sql, &FilePath::parse("path", path)?)? else { return Ok(()) };
    if row.kind == Kind::File && is_it(&row.record()?) {
        tree::discard(sql, &row)?;
        state.changed.file(FileChange::Removed(FilePath::parse("path", path)?));
        state.files = state.files.map(|count| count.saturating_sub(1));
    }
    Ok(())
}
