//! See the crate.

pub(crate) mod fetch;
pub(crate) mod file;
pub(crate) mod kinds;
pub(crate) mod web;
