//! AG-UI.
//!
//! * `events`: the stream; `resume`: ids of its events; `state`: the thread's values; `parts`: parts of
//!   events; `message`: messages, derived from rows.
//! * `request`: requests; `answers`: answers to waits; `revision`: repeated messages.
//! * `tanstack`: extensions for TanStack AI.

pub mod answers;
pub mod events;
pub mod message;
pub mod parts;
pub mod request;
pub mod resume;
pub mod revision;
mod state;
pub mod tanstack;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_results;
#[cfg(test)]
mod tests_resume;
