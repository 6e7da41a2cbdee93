//! See the crate.

pub(crate) mod code;
pub mod native;
pub mod sandbox;
