//! Compares the list of a completion request with the thread that it names. Chat programs send the
//! conversation as it should be: usually the stored messages and a new one. The list may also request another
//! reply, change a text, or continue from an earlier message. Messages that it leaves out are then deleted,
//! because the page no longer shows them.
//!
//! Messages have no ids in this protocol. They are matched by the texts of people, from the end of the list,
//! because programs leave out the beginning of a long conversation.

use serde_json::{Map, Value};

use crate::openai::completion_request::Turn;
use crate::run_events::text_of;

/// The kind of name by which a request finds its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// A chat, whose list is always complete.
    Whole,
    /// A thread. A list without any reply may contain new messages only.
    Whatever,
}

/// Changes before the reply can be made.
#[derive(Debug, Default, PartialEq)]
pub struct Revision {
    /// Messages with a changed text: their ids and the new texts.
    pub changed: Vec<(String, String)>,
    /// The messages that the new one replaces. All messages after them are deleted as well.
    pub replaced: Option<Replacement>,
}

/// Messages that are replaced by another one.
#[derive(Debug, PartialEq)]
pub struct Replacement {
    /// Their ids, in order.
    pub messages: Vec<String>,
    /// The text of the first.
    pub text: String,
    /// Whether the first one can be edited and answered: it is the only one, was sent to the thread, and has
    /// the same number of files.
    pub is_answered: bool,
}

impl Replacement {
    /// Whether the text is unchanged, so that only another reply is requested.
    pub fn is_same(&self, text: &str) -> bool {
        self.is_answered && same(&self.text, text)
    }
}

/// A turn of the thread.
struct StoredTurn<'a> {
    /// Messages of people, in order.
    said: Vec<&'a Value>,
    /// The messages that answer them.
    answers: Vec<&'a Value>,
}

impl StoredTurn<'_> {
    fn text(&self) -> String {
        let texts: Vec<&str> = self.said.iter().map(|row| text_of(row, "content")).collect();
        texts.join("\n\n")
    }

    /// The answer, if it is one message with text only.
    fn answer(&self) -> Option<&Value> {
        match self.answers.as_slice() {
            [row]
                if text_of(row, "role") == "assistant" && row.pointer("/metadata/status_kind").is_none() =>
            {
                Some(row).filter(|row| row.get("tool_calls").is_none_or(Value::is_null)).copied()
            }
            _ => None,
        }
    }
}

/// The changes of a thread that a request asks for. `rows`: the thread's newest rows; `turns` and `files`:
/// the turns of the request's list, and the number of files of its new message. `more`: the thread has older
/// rows.
pub fn revision(rows: &[Value], more: bool, lists: Lists, turns: &[Turn], files: usize) -> Revision {
    let held = held(rows);
    if turns.is_empty() && lists == Lists::Whatever {
        return Revision::default();
    }
    let Some(at) = place(&held, more, turns) else { return Revision::default() };
    let pairs = held.get(..at).unwrap_or_default().iter().rev().zip(turns.iter().rev());
    let mut changed: Vec<(String, String)> = pairs.flat_map(|(held, turn)| changes(held, turn)).collect();
    changed.reverse();
    Revision { changed, replaced: held.get(at).map(|held| replaced(held, files)) }
}

/// Turns of rows, in their order.
fn held(rows: &[Value]) -> Vec<StoredTurn<'_>> {
    let mut turns: Vec<StoredTurn<'_>> = Vec::new();
    let shown = rows.iter().filter(|row| row.get("silent").and_then(Value::as_bool) != Some(true));
    for row in shown {
        let of_person = text_of(row, "role") == "user" && row.pointer("/metadata/prompt").is_none();
        match turns.last_mut() {
            // A result of a call that was stored as history.
            _ if of_person && text_of(row, "content").starts_with(RESULT) => {}
            Some(turn) if of_person && turn.answers.is_empty() => turn.said.push(row),
            _ if of_person => turns.push(StoredTurn { said: vec![row], answers: Vec::new() }),
            Some(turn) if text_of(row, "role") != "system" => turn.answers.push(row),
            _ => {}
        }
    }
    turns
}

/// The prefix of a call's result in `history`.
const RESULT: &str = "[Result of a call]";

/// Number of the thread's turns that are kept: those up to the last one of the list. `None` if the list has
/// nothing in common with the thread.
fn place(held: &[StoredTurn<'_>], more: bool, turns: &[Turn]) -> Option<usize> {
    if turns.is_empty() {
        return (!more).then_some(0);
    }
    let chain = |at: usize| {
        let pairs = held.get(..at).unwrap_or_default().iter().rev().zip(turns.iter().rev());
        pairs.map(|(held, turn)| likeness(held, turn)).take_while(|points| *points > 0).sum::<usize>()
    };
    let whole = |at: usize, points: usize| !more && at == turns.len() && points == at * SAME_WORDS;
    let found = (1..=held.len()).map(|at| (at, chain(at))).filter(|(_, points)| *points > 0);
    found.max_by_key(|(at, points)| (whole(*at, *points), *points, *at)).map(|(at, _)| at)
}

/// Score of turns with the same texts of people.
const SAME_WORDS: usize = 2;

/// Similarity of a turn of the list and a turn of the thread: by the texts of people, otherwise by the answer
/// alone. Open WebUI sends a question once with the results of its search, and afterwards without them.
fn likeness(held: &StoredTurn<'_>, turn: &Turn) -> usize {
    if same(&held.text(), &turn.said) {
        return SAME_WORDS;
    }
    let answer = held.answer().map(|row| plain(text_of(row, "content"))).filter(|text| !text.is_empty());
    let has =
        answer.is_some_and(|answer| turn.answer.as_ref().is_some_and(|told| plain(told).contains(&answer)));
    usize::from(has)
}

/// Changed texts in a turn of the list. A program may add its own content to an answer, and leave out content
/// that it had added to a question. These are no changes.
fn changes(held: &StoredTurn<'_>, turn: &Turn) -> Vec<(String, String)> {
    let mut changes = Vec::new();
    let id = |row: &Value| text_of(row, "id").to_owned();
    if let ([said], false) = (held.said.as_slice(), plain(&held.text()).contains(&plain(&turn.said))) {
        changes.push((id(said), turn.said.clone()));
    }
    if let (Some(row), Some(answer)) = (held.answer(), &turn.answer)
        && !answer.trim().is_empty()
        && !plain(answer).contains(&plain(text_of(row, "content")))
    {
        changes.push((id(row), answer.clone()));
    }
    changes
}

fn replaced(held: &StoredTurn<'_>, files: usize) -> Replacement {
    let ids = held.said.iter().map(|row| text_of(row, "id").to_owned());
    let attached = |row: &Value| row.get("attachments").and_then(Value::as_array).map_or(0, Vec::len);
    let is_answered = match held.said.as_slice() {
        [row] => row.pointer("/metadata/openai/request").is_some() && attached(row) == files,
        _ => false,
    };
    let text = held.said.first().map_or("", |row| text_of(row, "content")).to_owned();
    Replacement { messages: ids.collect(), text, is_answered }
}

/// Whether two texts are equal except for white space and the notes about files in a history.
fn same(a: &str, b: &str) -> bool {
    plain(a) == plain(b)
}

fn plain(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !matches!(*word, "[image]" | "[file]"));
    words.collect::<Vec<_>>().join(" ")
}

/// The message that the same request has stored, found by its key among the newest rows.
pub fn stored_by<'a>(rows: &'a [Value], key: &str) -> Option<&'a Value> {
    let known = |row: &&Value| row.pointer("/metadata/openai/key").and_then(Value::as_str) == Some(key);
    rows.iter().rev().find(known)
}

/// An edit of a message, or a request for another reply, in the form of `PATCH …/messages/:id`.
pub fn patch(replaced: &Replacement, text: &str, metadata: &Value) -> Value {
    let mut body = Map::new();
    body.insert("metadata".into(), metadata.clone());
    if !replaced.is_same(text) {
        body.insert("content".into(), text.into());
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::json;

    fn row(seq: usize, role: &str, text: &str) -> Value {
        json!({ "id": format!("m_t_{seq}"), "role": role, "content": text, "metadata": { "openai": { "request": "h" } } })
    }

    /// Rows of turns: each a person's text and its answer.
    fn rows(turns: &[(&str, &str)]) -> Vec<Value> {
        let mut rows = Vec::new();
        for (at, (said, answer)) in turns.iter().enumerate() {
            rows.push(row(2 * at + 1, "user", said));
            if !answer.is_empty() {
                rows.push(row(2 * at + 2, "assistant", answer));
            }
        }
        rows
    }

    fn list(turns: &[(&str, &str)]) -> Vec<Turn> {
        let turn =
            |(said, answer): &(&str, &str)| Turn { said: (*said).into(), answer: Some((*answer).into()) };
        turns.iter().map(turn).collect()
    }

    fn of(held: &[(&str, &str)], turns: &[(&str, &str)]) -> Revision {
        revision(&rows(held), false, Lists::Whole, &list(turns), 0)
    }

    /// The message that the new one replaces.
    fn first(revision: &Revision) -> Option<&str> {
        revision.replaced.as_ref().and_then(|replaced| replaced.messages.first()).map(String::as_str)
    }

    const TWO: &[(&str, &str)] = &[("one", "A"), ("two", "B")];

    #[test]
    fn what_is_there_and_something_new_goes_on() {
        type Turns<'a> = &'a [(&'a str, &'a str)];
        let cases: [(Turns<'_>, Turns<'_>); 6] = [
            (&[], &[]),
            (TWO, TWO),
            (TWO, &[("two", "B")]),
            (&[("go on", "A"), ("go on", "B")], &[("go on", "A"), ("go on", "B")]),
            (TWO, &[("one", "A"), ("two", "Thought for 3 s. B")]),
            // A question that was sent with search results, and equal answers.
            (
                &[("Found: x. one", "A"), ("Found: y. two", "A"), ("Found: z. three", "A")],
                &[("two", "A"), ("three", "A")],
            ),
        ];
        for (held, turns) in cases {
            assert_eq!(of(held, turns), Revision::default(), "{turns:?}");
        }
    }

    #[test]
    fn a_list_that_ends_earlier_takes_the_place_of_what_follows() {
        for (turns, message) in [(&TWO[..1], "m_t_3"), (&TWO[..0], "m_t_1")] {
            let revision = of(TWO, turns);
            assert_eq!((first(&revision), revision.changed.len()), (Some(message), 0), "{turns:?}");
            assert!(revision.replaced.unwrap().is_answered);
        }
        // Two turns with the same texts: the beginning of the list tells them apart.
        let twice = &[("go on", "A"), ("go on", "B")];
        assert_eq!(first(&of(twice, &twice[..1])), Some("m_t_3"));
    }

    #[test]
    fn another_text_somewhere_is_changed_there() {
        let changed = |turns: &[(&str, &str)]| of(TWO, turns).changed;
        assert_eq!(changed(&[("one", "A"), ("two", "C")]), [("m_t_4".to_owned(), "C".to_owned())]);
        assert_eq!(changed(&[("1", "A"), ("two", "B")]), [("m_t_1".to_owned(), "1".to_owned())]);
        let all = of(&TWO[..1], &[("1", "A")]);
        assert_eq!((all.changed.len(), all.replaced), (1, None), "only the answer is in common");
    }

    #[test]
    fn only_a_chat_says_all_of_it_in_a_list_without_an_answer() {
        let rows = rows(TWO);
        assert_eq!(revision(&rows, false, Lists::Whatever, &[], 0), Revision::default());
        let shorter = revision(&rows, false, Lists::Whatever, &list(&TWO[..1]), 0);
        assert_eq!(first(&shorter), Some("m_t_3"));
        assert_eq!(
            revision(&rows, true, Lists::Whole, &[], 0),
            Revision::default(),
            "it may have begun long before"
        );
    }

    #[test]
    fn what_a_run_cannot_answer_as_it_is_comes_anew() {
        let mut rows = rows(TWO);
        rows[2]["attachments"] = json!([{ "name": "a.png" }]);
        let of = |rows: &[Value], files| {
            revision(rows, false, Lists::Whole, &list(&TWO[..1]), files).replaced.unwrap().is_answered
        };
        assert_eq!((of(&rows, 1), of(&rows, 0)), (true, false), "its files are others");
        rows[2]["metadata"] = Value::Null;
        assert!(!of(&rows, 1), "it came with the thread");
    }

    #[test]
    fn several_messages_without_an_answer_are_one_turn() {
        let held = [row(1, "user", "one"), row(2, "user", "two"), row(3, "assistant", "A")];
        let replaced = revision(&held, false, Lists::Whole, &[], 0).replaced.unwrap();
        assert_eq!((replaced.messages.len(), replaced.is_answered), (2, false));
        let joined = revision(&held, false, Lists::Whole, &list(&[("one\n\ntwo", "A")]), 0);
        assert_eq!(joined, Revision::default());
    }
}
