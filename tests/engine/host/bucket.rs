//! The bucket beside the object: it survives crashes, has an object as a whole or not at all, and refuses when told to.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use bytes::Bytes;

/// See the module.
#[derive(Default)]
pub struct Bucket {
    /// The size in bytes above which files go there; `None` while none is bound.
    pub above: Cell<Option<u64>>,
    /// Whether every call fails.
    pub refuses: Cell<bool>,
    /// What is there.
    pub objects: RefCell<BTreeMap<String, Bytes>>,
    /// Objects that were stored, again or not.
    pub puts: Cell<u32>,
    /// Times that an object was read.
    pub gets: Cell<u32>,
}
