//! Definitions: argument schemas against the official suite and a full implementation, templates, prompts, and the
//! validation of a whole catalog.

mod definitions;
mod random;
mod render;
mod rng;
mod schema;
mod suite;
mod template;
mod validate;
