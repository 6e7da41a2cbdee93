//! Cached variables of an account or the instance, with their version. Directories store them, and send them
//! encrypted.

use std::cell::RefCell;

use serde::Deserialize;

use crate::env::{EncryptedRow, KEYS_VAR, Keys, VariableSet};
use crate::error::{Error, Result};
use crate::host::{Object, Sibling};
use crate::request::directory_call as call;
use crate::request::directory_call::{DirectoryCall, EnvAsk};

/// The cache; `None` before the first request.
pub(crate) type Level = RefCell<Option<CachedSet>>;

/// The variables of one level.
pub(crate) struct CachedSet {
    version: i64,
    pub(crate) set: VariableSet,
}

/// A directory's response.
#[derive(Deserialize)]
struct DirectoryResponse {
    version: i64,
    /// Absent when the known version is current.
    values: Option<Vec<EncryptedRow>>,
}

/// Whether the deployment has encryption keys. Without them only its Worker variables exist.
pub(crate) fn are_kept(host: &dyn Object) -> bool {
    host.var(KEYS_VAR).is_some_and(|list| !list.trim().is_empty())
}

/// Requests the current variables from a directory. Returns whether they have changed.
///
/// # Errors
/// `overloaded`: the directory did not answer.
pub(crate) async fn refresh(host: &dyn Object, directory: String, level: &Level) -> Result<bool> {
    let known = level.borrow().as_ref().map(|copy| copy.version);
    let call = DirectoryCall::Env { directory: directory.clone(), ask: EnvAsk::Rows(known) };
    let call = call.to_json()?;
    let text = host.sibling(Sibling::Directory(directory.clone()), call).await?;
    let reply = call::answer(&text)?;
    let body = reply.body.as_ref().filter(|_| reply.status == 200);
    let body = body.ok_or_else(|| Error::internal(format!("the directory answered {}", reply.status)))?;
    let answer: DirectoryResponse = crate::json::from_str(body.get()).map_err(Error::internal)?;
    // Responses may arrive out of order; keep the newest version.
    let newer = level.borrow().as_ref().is_none_or(|copy| copy.version < answer.version);
    let Some(rows) = answer.values.filter(|_| newer) else { return Ok(false) };
    let keys = Keys::parse(&host.var(KEYS_VAR).unwrap_or_default())?;
    let set = VariableSet::of(&call::env_object(&directory), rows, &keys);
    *level.borrow_mut() = Some(CachedSet { version: answer.version, set });
    Ok(true)
}
