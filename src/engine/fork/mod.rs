//! Copies of threads: the messages up to a given one, values, files and the thread's own settings. Effects,
//! waits and subagents are never copied.
//!
//! * `ask`: `POST …/fork` in the source thread. `begin`: creates the copy, which is locked until it is
//!   complete.
//! * `copy`: the job of the copy. It fetches one page per transaction, so that it resumes after a crash.
//!   `page`: the source's pages, bounded in bytes, while the source continues to work.

mod ask;
mod begin;
mod copy;
mod page;
