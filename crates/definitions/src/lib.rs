//! What a developer writes: models, prompts, tools, agents and the rest, the catalog that they are compiled
//! into, and its validation. Below them, the small modules that all crates of Bobbin use.
//!
//! * [`json`]: JSON to and from types. [`json_text`]: JSON text with the type of its content. [`literal`]: the
//!   macro for JSON literals. [`error`]: the error codes of
//!   the API, with their statuses. [`limits`]: the constants of the runtime.
//! * [`text`]: cutting and decoding of texts. [`bigrams`]: common
//!   pairs of letters. [`tokens`]: estimates of token counts. [`dates`]: dates in queries and responses.
//!   [`page`]: pages bounded by rows and bytes. [`signing`]: signatures of outgoing calls.
//! * [`definitions`]: the definitions, the catalog, and the records that a thread keeps. Plain data.
//!   [`names`]: validation and suggestions of names. [`validate`]: validation of a catalog.

#![forbid(unsafe_code)]

pub mod bigrams;
pub mod dates;
pub mod definitions;
pub mod error;
pub mod json;
pub mod json_text;
pub mod limits;
pub mod literal;
pub mod names;
pub mod page;
pub mod signing;
pub mod text;
pub mod tokens;
pub mod validate;

pub use crate::error::{Code, Error, Fault, Result};
