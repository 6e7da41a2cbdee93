//! Definitions: argument schemas against the official suite and a full implementation, templates, prompts, and the
//! validation of a whole catalog.

mod random;
mod rng;
mod schema;
mod suite;
