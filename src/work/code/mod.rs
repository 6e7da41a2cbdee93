//! Code that runs in the sandbox for a thread (spec §17): `runCode`.

pub(crate) mod args;
pub(crate) mod bridge;
pub(crate) mod fetch;
pub(crate) mod file;
pub(crate) mod outbound;
pub(crate) mod place;
pub(crate) mod web;
