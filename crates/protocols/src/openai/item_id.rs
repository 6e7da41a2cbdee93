//! Ids of items for clients of OpenAI. Each names its thread, and the id of a message also names the message.
//! A client that stores references instead of items finds with them the response that it continues.

use crate::openai::call_id;
use crate::openai::response_request::dashed;

/// Hex digits of a thread's id without its dashes.
const THREAD: usize = 32;

/// The location of an item.
#[derive(Debug, PartialEq, Eq)]
pub struct ItemLocation {
    /// The thread.
    pub thread: String,
    /// The message of the item, or the message that it came with; `None` if the id names a call or a wait.
    pub message: Option<String>,
}

/// The id of an item of a message: of its text (`msg`), or of its reasoning (`rs`).
pub(super) fn of_message(kind: &str, thread: &str, message: &str) -> String {
    format!("{kind}_{}_{}", thread.replace('-', ""), message.trim_start_matches("m_"))
}

/// The id of an item for a call or a wait, with an id of any length.
pub(super) fn in_thread(id: &str, thread: &str) -> String {
    format!("{id}-{}", thread.replace('-', ""))
}

/// The location of an item; `None` if the id is not ours, or is from a time when ids named no thread.
pub fn place_of(item: &str) -> Option<ItemLocation> {
    if let (_, Some(thread)) = call_id::of(item) {
        return Some(ItemLocation { thread, message: None });
    }
    let (_, rest) = item.split_once('_')?;
    let (thread, message) = rest.split_at_checked(THREAD)?;
    Some(ItemLocation { thread: dashed(thread)?, message: Some(message_in(message.strip_prefix('_')?)?) })
}

/// The message of an item, or the message that it came with; `None` if the id does not name one.
pub fn message_of(item: &str) -> Option<String> {
    match place_of(item) {
        Some(place) => place.message,
        None => message_in(item.strip_prefix("msg_")?),
    }
}

/// The message at the end of an id. An item that was restarted after a lost attempt has one more number
/// there.
fn message_in(rest: &str) -> Option<String> {
    let mut parts = rest.split('_');
    let (stem, seq) = (parts.next()?, parts.next()?);
    let hex =
        |text: &str| !text.is_empty() && text.len() <= 20 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let number =
        |text: &str| !text.is_empty() && text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit());
    (hex(stem) && number(seq) && parts.next().is_none_or(number) && parts.next().is_none())
        .then(|| format!("m_{stem}_{seq}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "6f0c8a52-1111-4111-8111-111111111111";

    #[test]
    fn an_id_names_the_thread_and_where_there_is_one_the_message() {
        let place =
            |message: Option<&str>| ItemLocation { thread: ID.into(), message: message.map(str::to_owned) };
        let message = of_message("msg", ID, "m_6f0c8a52_7");
        assert_eq!(place_of(&message), Some(place(Some("m_6f0c8a52_7"))));
        assert_eq!(
            place_of(&format!("{message}_2")),
            Some(place(Some("m_6f0c8a52_7"))),
            "of a later attempt"
        );
        assert_eq!(place_of(&in_thread("mcp_call_1", ID)), Some(place(None)));
        assert_eq!(message_of(&message).as_deref(), Some("m_6f0c8a52_7"));
        assert_eq!(message_of("msg_6f0c8a52_7").as_deref(), Some("m_6f0c8a52_7"), "of an older build");
    }

    #[test]
    fn what_is_no_id_of_ours_is_nowhere() {
        let hex = ID.replace('-', "");
        let long = format!("msg_{hex}_6f_{}", "7".repeat(21));
        let others = [format!("msg_{hex}"), format!("msg_{hex}_6f_x"), format!("msg_{hex}_6f_1_2_3"), long];
        for id in ["", "msg_", "msg_6f0c8a52_7", "msg_0aé", "msg_68af0f3c24a081a2b7b6a9e5fb2b6a0d"]
            .into_iter()
            .chain(others.iter().map(String::as_str))
        {
            assert_eq!(place_of(id), None, "{id}");
        }
        for id in ["", "msg_x_1", "msg_6f", "fc_c1", "msg_6f_1/.."] {
            assert_eq!(message_of(id), None, "{id}");
        }
    }
}
