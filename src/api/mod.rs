//! See the crate.

pub(crate) mod create;
pub(crate) mod endpoint_answer;
pub(crate) mod endpoints;
pub(crate) mod files;
pub(crate) mod logs;
pub(crate) mod read;
