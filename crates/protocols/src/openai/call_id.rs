//! Ids of calls that are left to clients. An id names the thread, so that results find it although the client
//! keeps no conversation.

use crate::openai::response_request::dashed;

/// Maximum characters of a call's id in OpenAI's format.
const CHARS: usize = 64;

/// The id for the client.
pub(super) fn told(call: &str, thread: &str) -> String {
    let told = format!("{call}-{}", thread.replace('-', ""));
    if told.chars().count() <= CHARS { told } else { call.to_owned() }
}

/// The model's id of a call, and the thread if the client's id names it.
pub fn of(told: &str) -> (&str, Option<String>) {
    let found = told.len().checked_sub(32).and_then(|at| told.split_at_checked(at));
    let found = found.and_then(|(call, hex)| Some((call.strip_suffix('-')?, dashed(hex)?)));
    found.map_or((told, None), |(call, thread)| (call, Some(thread)))
}
