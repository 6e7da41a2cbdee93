//! Values of variables (spec §11; docs/variables.md): encrypted at rest, changed by requests of one form, and kept out
//! of everything that is shown. Threads and directories store them in the same kind of table, with the code of this
//! module.
//!
//! * `keys`: the deployment's keys, and values encrypted with them. `change`: what a request sets and deletes. `set`:
//!   the values of one object, and its table. `level`: copies of those of an account or the instance. `travel`: values on their way to another object. `redact`: secrets in
//!   texts. `scrub`: texts that look like secrets.
//!
//! Where a value is looked for, and in which order, is decided by the thread (`engine/env`).

pub(crate) mod change;
pub(crate) mod keys;
pub(crate) mod level;
pub(crate) mod redact;
pub(crate) mod scrub;
pub(crate) mod set;
pub(crate) mod travel;

pub use crate::env::change::{Change, Given, Level};
pub use crate::env::keys::{Encrypted, KEYS_VAR, Keys};
pub use crate::env::redact::Redactor;
pub(crate) use crate::env::redact::{Shown, Tells};
pub use crate::env::set::{Held, Set, Stored};
pub(crate) use crate::env::travel::{Plain, open, seal};
