//! See the crate.

pub(crate) mod code;
pub mod native;
