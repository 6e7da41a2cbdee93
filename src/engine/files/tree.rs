//! The tree: creates, moves, removes and lists entries.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::engine::features::Files;
use crate::engine::files::conditions::Conditions;
use crate::engine::files::no_room;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::page::{Page, json_bytes};
use crate::protocols::responses::files::FilePage;
use crate::request::Query;
use crate::store::changes::FileChange;
use crate::store::file_path::{FilePath, too_long};
use crate::store::file_record::{FileRecord, FileStats};
use crate::store::files::{Kind, Row, Search, tree as places};
use crate::store::objects::Storage;
use crate::store::state::State;
use crate::store::{file_texts, files as table, objects};

/// The type of a directory (spec §16.2).
const DIRECTORY: &str = "inode/directory";

/// The kind of entry that may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// A file; a directory is refused.
    File,
    /// A directory without entries; a file is refused.
    Directory,
    /// Either.
    Either,
    /// A file, or a directory with all that is in it.
    Everything,
}

impl Files<'_> {
    /// The entry at a path.
    pub(crate) fn stat(&self, path: &FilePath) -> Result<Option<FileRecord>> {
        self.read(|state, sql| {
            if path.is_root() {
                return directory("", "", state.meta.created_us)
                    .record()
                    .map(|root| Some(FileRecord { path: "/".into(), ..root }));
            }
            table::find(sql, path)?.map(|row| row.record()).transpose()
        })
    }

    /// Creates a directory and its parents. An existing one is unchanged. Returns whether it was created.
    pub(crate) fn mkdir(&self, path: &FilePath, conditions: &Conditions) -> Result<(FileRecord, bool)> {
        let now = self.host.now_us();
        let created = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            if path.is_root() {
                return Ok(false);
            }
            let row = table::find(sql, path)?;
            conditions.check(row.as_ref().map(Row::etag).as_deref())?;
            match row {
                Some(row) if row.kind == Kind::Directory => Ok(false),
                Some(_) => Err(is_file(path)),
                None => {
                    make_parents(state, sql, path, now)?;
                    insert_directory(state, sql, path, now)?;
                    Ok(true)
                }
            }
        })?;
        let record = self.stat(path)?;
        let record = record.ok_or_else(|| Error::internal(format!("{path} went away as it was made")))?;
        Ok((record, created))
    }

    /// Removes a file or a directory. Returns whether it existed.
    pub(crate) fn remove(&self, path: &FilePath, what: Removal, conditions: &Conditions) -> Result<bool> {
        if path.is_root() {
            return Err(Error::field("path", "The root cannot be removed."));
        }
        let removed = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let row = table::find(sql, path)?;
            conditions.check(row.as_ref().map(Row::etag).as_deref())?;
            let Some(row) = row else { return Ok(false) };
            match (row.kind, what) {
                (Kind::Directory, Removal::File) => return Err(is_directory(path)),
                (Kind::File, Removal::Directory) => return Err(is_file(path)),
                (Kind::Directory, Removal::Everything) => {
                    discard_entries(sql, path)?;
                    discard(sql, &row)?;
                    state.changed.file(FileChange::RemovedBelow(path.clone()));
                    // Counted again on the next request.
                    state.files = None;
                    return Ok(true);
                }
                (Kind::Directory, _) if table::has_entries(sql, path)? => {
                    return Err(conflict(format!("{path} is not empty."))
                        .hint("Remove it with all that is in it: `?recursive=true`."));
                }
                _ => {
                    discard(sql, &row)?;
                    if row.kind == Kind::File {
                        state.changed.file(FileChange::Removed(path.clone()));
                    }
                }
            }
            state.files = state.files.map(|count| count.saturating_sub(1));
            Ok(true)
        })?;
        self.prune_files();
        Ok(removed)
    }

    /// Moves a file or a directory to another path.
    ///
    /// # Errors
    /// `not_found`; `conflict` if the new path exists, or a file is above it; `invalid_field` for the root and for a directory that would be moved into itself.
    pub(crate) fn rename(
        &self,
        from: &FilePath,
        to: &FilePath,
        conditions: &Conditions,
    ) -> Result<FileRecord> {
        let (Some(_), Some((parent, name))) = (from.split(), to.split()) else {
            return Err(Error::field("path", "The root cannot be moved or replaced."));
        };
        if to.is_below(from) {
            return Err(Error::field("path", format!("{from} cannot be moved into itself.")));
        }
        let now = self.host.now_us();
        let record = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            let row = table::find(sql, from)?.ok_or_else(|| no_file(from))?;
            conditions.check(Some(&row.etag()))?;
            if from == to {
                return row.record();
            }
            if table::find(sql, to)?.is_some() {
                return Err(conflict(format!("There is something at {to} already.")));
            }
            make_parents(state, sql, to, now)?;
            let row = Row { parent: Some(parent.to_owned()), name: name.to_owned(), ..row };
            row.update(sql)?;
            if row.kind == Kind::Directory {
                move_entries(sql, from, to)?;
            }
            state.changed.file(FileChange::Moved { from: from.clone(), to: to.clone() });
            row.record()
        })?;
        self.prune_files();
        Ok(record)
    }

    /// A page of a directory: directories first, then by name.
    pub(crate) fn list<'a>(&self, path: &'a FilePath, query: &Query) -> Result<FilePage<'a>> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let after = query.get("cursor").filter(|cursor| !cursor.is_empty()).map(place_of).transpose()?;
        self.read(|_, sql| {
            if !path.is_root() {
                match table::find(sql, path)? {
                    Some(row) if row.kind == Kind::Directory => {}
                    Some(_) => return Err(is_file(path)),
                    None => return Err(no_file(path)),
                }
            }
            let (mut page, mut last) = (Page::new(limit), None);
            places::entries(sql, path, after_place(after.as_ref()), i64::from(limit) + 1, &mut |row| {
                let taken = page.add_sized(|| {
                    let record = row.record()?;
                    let bytes = json_bytes(&record);
                    Ok((record, bytes))
                })?;
                if taken.is_continue() {
                    last = Some(format!("{}{}", row.kind as i64, row.name));
                }
                Ok(taken)
            })?;
            let cursor = last.filter(|_| page.has_more()).map(|last| URL_SAFE_NO_PAD.encode(last));
            Ok(FilePage { files: page.into_rows(), path: path.as_str(), cursor })
        })
    }

    /// All entries of a directory; empty if it does not exist.
    ///
    /// # Errors
    /// `too_large` if together they exceed [`limits::LIST_BYTES`].
    pub(crate) fn entries(&self, path: &FilePath) -> Result<Vec<FileRecord>> {
        self.read(|_, sql| {
            let mut page = Page::of_bytes(limits::FILES, limits::LIST_BYTES);
            places::entries(sql, path, after_place(None), i64::from(limits::FILES) + 1, &mut |row| {
                page.add_sized(|| {
                    let record = row.record()?;
                    let bytes = json_bytes(&record);
                    Ok((record, bytes))
                })
            })?;
            if page.has_more() {
                let bytes = limits::LIST_BYTES;
                let message = format!("The entries of {path} have more than {bytes} bytes together as JSON.");
                return Err(Error::new(Code::TooLarge, message).hint("Over HTTP they come in pages."));
            }
            Ok(page.into_rows())
        })
    }

    /// The totals of the thread's files.
    pub(crate) fn stats(&self) -> Result<FileStats> {
        self.read(|_, sql| places::stats(sql))
    }
}

/// The end of the previous page.
struct Cursor {
    kind: i64,
    name: String,
}

fn place_of(cursor: &str) -> Result<Cursor> {
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let place = text.as_deref().and_then(|text| match text.split_at_checked(1)? {
        ("0", name) => Some(Cursor { kind: Kind::Directory as i64, name: name.to_owned() }),
        ("1", name) => Some(Cursor { kind: Kind::File as i64, name: name.to_owned() }),
        _ => None,
    });
    place.ok_or_else(|| {
        Error::new(Code::BadCursor, format!("`cursor` is none that this list gave out: “{cursor}”."))
            .at("cursor")
    })
}

/// The beginning of a page: directly after this place; the first page begins before all entries.
fn after_place(place: Option<&Cursor>) -> (i64, &str) {
    place.map_or((-1, ""), |place| (place.kind, place.name.as_str()))
}

fn directory(parent: &str, name: &str, now: i64) -> Row {
    Row {
        id: 0,
        parent: Some(parent.to_owned()),
        name: name.to_owned(),
        kind: Kind::Directory,
        mime: DIRECTORY.to_owned(),
        size: 0,
        chunks: 0,
        metadata: None,
        width: None,
        height: None,
        created_us: now,
        updated_us: now,
        search: Search::No,
        storage: Storage::Local,
    }
}

fn insert_directory(state: &mut State, sql: &dyn Sql, path: &FilePath, now: i64) -> Result<()> {
    no_room(count(state, sql)?)?;
    let (parent, name) = path.split().unwrap_or_default();
    directory(parent, name, now).insert(sql)?;
    state.files = state.files.map(|count| count + 1);
    Ok(())
}

/// Missing directories above a path, innermost first.
///
/// # Errors
/// `conflict` if one of them is a file.
pub(super) fn missing_parents(sql: &dyn Sql, path: &FilePath) -> Result<Vec<FilePath>> {
    let mut missing = Vec::new();
    let above: Vec<FilePath> = path.ancestors().collect();
    for path in above.into_iter().rev() {
        match table::find(sql, &path)? {
            // Its parents exist too.
            Some(row) if row.kind == Kind::Directory => break,
            Some(_) => return Err(is_file(&path)),
            None => missing.push(path),
        }
    }
    Ok(missing)
}

/// Creates the directories above a path.
pub(super) fn make_parents(state: &mut State, sql: &dyn Sql, path: &FilePath, now: i64) -> Result<()> {
    for path in missing_parents(sql, path)?.iter().rev() {
        insert_directory(state, sql, path, now)?;
    }
    Ok(())
}

/// Number of files and directories; counted once while the object lives.
pub(super) fn count(state: &mut State, sql: &dyn Sql) -> Result<u32> {
    if let Some(count) = state.files {
        return Ok(count);
    }
    let count = u32::try_from(places::count(sql)?).unwrap_or(u32::MAX);
    state.files = Some(count);
    Ok(count)
}

/// Removes a row from the tree. Its content is deleted at once unless it is large; then it is deleted step by
/// step. A possible object in the bucket stays named until it is deleted.
pub(super) fn discard(sql: &dyn Sql, row: &Row) -> Result<()> {
    if row.search == Search::Index {
        file_texts::forget(sql, row.id)?;
    }
    if row.storage != Storage::Local {
        let (kind, storage) = (Kind::Gone, Storage::Copying);
        return Row { parent: None, kind, search: Search::No, storage, ..row.clone() }.update(sql);
    }
    if row.chunks <= limits::PRUNED_CHUNKS {
        // One more row is the thumbnail, and one beyond the maximum proves that this was all.
        return table::delete(sql, row, limits::PRUNED_CHUNKS + 2).map(|_| ());
    }
    Row { parent: None, kind: Kind::Gone, search: Search::No, ..row.clone() }.update(sql)
}

/// Removes everything below a directory from the tree.
fn discard_entries(sql: &dyn Sql, path: &FilePath) -> Result<()> {
    let below = path.below();
    // A possible object in the bucket stays named until it is deleted.
    objects::name_all(sql, &below)?;
    places::discard(sql, &below)
}

/// Moves everything below a moved directory.
fn move_entries(sql: &dyn Sql, from: &FilePath, to: &FilePath) -> Result<()> {
    let below = from.below();
    let longest = places::longest(sql, &below)?;
    let grown = longest.unwrap_or(0) as usize + to.as_str().len();
    let longest = grown.saturating_sub(from.as_str().len());
    if longest > limits::FILE_PATH_BYTES {
        return Err(too_long("path", longest));
    }
    places::shift(sql, &below, to)
}

/// The error for an entry that prevents an operation.
fn conflict(message: String) -> Error {
    Error::new(Code::Conflict, message).at("path")
}

/// The error for a path without an entry.
pub(crate) fn no_file(path: &FilePath) -> Error {
    Error::new(Code::NotFound, format!("There is no file {path}."))
}

/// The error for a directory in place of a file.
pub(super) fn is_directory(path: &FilePath) -> Error {
    conflict(format!("{path} is a directory."))
}

/// The error for a file in place of a directory.
fn is_file(path: &FilePath) -> Error {
    conflict(format!("{path} is a file, not a directory."))
}
