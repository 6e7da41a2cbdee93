//! Variables (spec §11; docs/variables.md): encrypted at rest, changed by requests of one form, and removed
//! from everything that is displayed. Threads and directories store them in the same kind of table, with the
//! code of this module.
//!
//! * `keys`: the deployment's keys, and encrypted values. `change`: a request's changes. `set`: the variables
//!   of one object, and its table. `level`: cached variables of an account or the instance. `transit`:
//!   variables in transit to another object. `redact`: known secrets in texts. `scrub`: texts that look like
//!   secrets.
//!
//! The thread decides where and in which order to look up a variable (`engine/env`).

mod change;
mod keys;
pub(crate) mod level;
mod set;
mod transit;

pub use crate::env::change::{Change, Level, RequestField};
pub use crate::env::keys::{EncryptedValue, KEYS_VAR, Keys};
pub use bobbin_redaction::redact::Redactor;
pub(crate) use bobbin_redaction::redact::{Redact, Redacted};
pub(crate) use bobbin_redaction::{redact, scrub};

pub use crate::env::set::{EncryptedRow, StoredValue, VariableSet};
pub(crate) use crate::env::transit::{PlainVariable, open, seal};
