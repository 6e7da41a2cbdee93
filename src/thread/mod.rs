//! The engine of one thread.
pub mod frame;
pub mod host;
pub use frame::{Filter, Frame};
pub use host::{Cell, Host, NativeCall, Param, Sibling, Sql};
