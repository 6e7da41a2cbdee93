//! Which threads an owner has (design: one directory object per owner, one for threads without owner, and the root
//! that knows the owners).

pub mod call;

pub use call::{DirectoryCall, ThreadRow};
