//! Definitions and records as plain data.
pub mod message;
