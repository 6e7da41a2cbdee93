//! AG-UI events for clients that reconnect with the id of their last event. Each part of a run is sent once,
//! wherever the connection broke, and text of a lost attempt is retracted.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::ag_ui::events::{AgUi, Settings};
use crate::ag_ui::resume::Position;
use crate::ag_ui::tests::{caller, pushed};
use crate::openai::tests::{Frame, chunk, ended, live, parked, reply, result, run, settled};
use bobbin_definitions::json;

const USER: &str = r#"{"id":"u1","role":"user","content":"Hi"}"#;

fn settings(after: Option<&str>) -> Settings {
    Settings {
        conversation: "chat-1".into(),
        run: "run-1".into(),
        thread: "t".into(),
        told_of: "m1".into(),
        reasoning: true,
        held: USER.into(),
        caller: Some(caller()),
        after: after.map(|id| Position::parse(id).unwrap()),
        ..Settings::default()
    }
}

/// The events of frames, each with its id.
fn told(frames: &[Frame], settings: Settings) -> Vec<(Option<String>, Value)> {
    let text = pushed(&mut AgUi::new(settings), frames, &Map::new());
    let events = text.split_terminator("\n\n").map(|event| {
        let (id, data) = match event.strip_prefix("id: ").and_then(|rest| rest.split_once('\n')) {
            Some((id, data)) => (Some(id.to_owned()), data),
            None => (None, event),
        };
        (id, bobbin_definitions::json::from_str(data.strip_prefix("data: ").unwrap()).unwrap())
    });
    events.collect()
}

/// A page that reconnects like that of TanStack AI: it skips events with known ids, and appends the others.
#[derive(Clone, Default)]
struct Page {
    known: BTreeSet<String>,
    last: Option<String>,
    messages: Vec<(String, String)>,
    calling: String,
    ends: usize,
}

impl Page {
    fn take(&mut self, (id, event): &(Option<String>, Value)) {
        if let Some(id) = id {
            if self.known.contains(id) {
                return;
            }
            self.known.insert(id.clone());
            self.last = Some(id.clone());
        }
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let mut add = |id: String, more: &str| match self.messages.iter_mut().find(|(known, _)| *known == id)
        {
            Some((_, said)) => said.push_str(more),
            None => self.messages.push((id, more.to_owned())),
        };
        match text("type").as_str() {
            "TEXT_MESSAGE_START" => add(text("messageId"), ""),
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => add(text("messageId"), &text("delta")),
            "TOOL_CALL_START" => {
                self.calling = text("parentMessageId");
                add(text("parentMessageId"), &format!("[{}]", text("toolCallName")));
            }
            "TOOL_CALL_ARGS" => add(self.calling.clone(), &text("delta")),
            "TOOL_CALL_RESULT" => add(text("messageId"), &text("content")),
            "MESSAGES_SNAPSHOT" => {
                let messages = event["messages"].as_array().unwrap().iter().map(|message| {
                    let calls =
                        message["toolCalls"].as_array().into_iter().flatten().map(|call| &call["function"]);
                    let calls = calls.map(|call| {
                        format!("[{}]{}", call["name"].as_str().unwrap(), call["arguments"].as_str().unwrap())
                    });
                    let content = message["content"].as_str().unwrap_or_default().to_owned();
                    (message["id"].as_str().unwrap().to_owned(), calls.fold(content, |all, call| all + &call))
                });
                self.messages = messages.filter(|(id, _)| id != "u1").collect();
            }
            "RUN_FINISHED" | "RUN_ERROR" => self.ends += 1,
            _ => {}
        }
    }

    fn said(&self) -> Vec<(&str, &str)> {
        let mut said: Vec<_> = self.messages.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        said.sort_unstable();
        said
    }
}

fn whole() -> Vec<(&'static str, &'static str)> {
    vec![("m_t_2", r#"Grüße[work]{"n":1}"#), ("m_t_3", "done"), ("m_t_5", "日本")]
}

/// The live feed for a client that connects after `upto` of its frames.
fn found(upto: usize) -> Vec<Frame> {
    let all = live();
    let (before, rest) = all.split_at(upto.max(1));
    let begun = before.iter().filter(|(kind, _)| matches!(*kind, "run" | "message_data"));
    let mut text: Option<Frame> = None;
    for frame in before {
        match (frame.0, &mut text) {
            ("message_chunk", Some((_, made)))
                if made["attempt"] == frame.1["attempt"] && made["message_id"] == frame.1["message_id"] =>
            {
                let more =
                    format!("{}{}", made["chunk"].as_str().unwrap(), frame.1["chunk"].as_str().unwrap());
                made["chunk"] = more.into();
            }
            ("message_chunk", text) => *text = Some(frame.clone()),
            ("message_reset" | "message_data", text) => *text = None,
            _ => {}
        }
    }
    begun.cloned().chain(text).chain(rest.iter().cloned()).collect()
}

#[test]
fn all_of_a_run_comes_once_wherever_the_connection_breaks() {
    let first = told(&live(), settings(None));
    assert!(first.iter().filter(|(id, _)| id.is_some()).count() > 15);
    for read in 1..=first.len() {
        let mut page = Page::default();
        first[..read].iter().for_each(|event| page.take(event));
        let ended = page.ends;
        for (state, frames) in (0..live().len()).map(|upto| (upto, found(upto))).chain([(99, settled())]) {
            let mut page = page.clone();
            let again = told(&frames, settings(page.last.as_deref()));
            again.iter().for_each(|event| page.take(event));
            assert_eq!(page.said(), whole(), "behind {read}, found at {state}: {again:#?}");
            assert_eq!(page.ends, ended + 1, "each answer has an end");
        }
    }
}

#[test]
fn a_text_goes_on_behind_each_of_its_characters_however_it_is_cut() {
    let text = "Grüße 日本 🧵";
    let pieces = |cut: usize| {
        let (one, two) = text.split_at(cut);
        let rest = chunk("m_t_2", 1, cut, two);
        vec![run(), chunk("m_t_2", 1, 0, one), rest, reply("m_t_2", text, &[]), ended("completed", "why")]
    };
    for (cut, _) in text.char_indices().skip(1) {
        let first = told(&pieces(cut), settings(None));
        let at = first.iter().position(|(_, event)| event["type"] == "TEXT_MESSAGE_CONTENT").unwrap();
        let after = first[at].0.as_deref();
        for (other, _) in text.char_indices().skip(1) {
            let again = told(&pieces(other), settings(after));
            let rest: String = again.iter().filter_map(|(_, event)| event["delta"].as_str()).collect();
            assert_eq!(rest, text[cut..], "behind {cut}, cut at {other}");
            assert!(!again.iter().any(|(_, event)| event["type"] == "MESSAGES_SNAPSHOT"));
        }
    }
}

#[test]
fn who_has_read_of_a_lost_attempt_has_only_what_holds_in_the_end() {
    let lost = [run(), chunk("m_t_2", 1, 0, "What was lost is long")];
    let read = told(&lost, settings(None));
    let ends = [
        vec![run(), reply("m_t_2", "Yes", &[]), ended("completed", "why")],
        vec![run(), reply("m_t_2", "What holds is another text, and longer", &[]), ended("completed", "why")],
        vec![
            run(),
            chunk("m_t_2", 2, 0, "What"),
            chunk("m_t_2", 2, 4, " holds"),
            reply("m_t_2", "What holds", &[]),
            ended("completed", "why"),
        ],
        vec![
            run(),
            reply("m_t_2", "", &[("c1", "work", "{}")]),
            result("m_t_3", "c1", "work", "done"),
            reply("m_t_4", "So", &[]),
            ended("completed", "why"),
        ],
        vec![run(), ended("stopped", "stopped_by_user")],
    ];
    for frames in ends {
        let mut page = Page::default();
        read.iter().for_each(|event| page.take(event));
        let mut fresh = Page::default();
        told(&frames, settings(None)).iter().for_each(|event| fresh.take(event));
        let again = told(&frames, settings(page.last.as_deref()));
        again.iter().for_each(|event| page.take(event));
        assert_eq!((page.said(), page.ends), (fresh.said(), 1), "{again:#?}");
    }
}

#[test]
fn an_attempt_that_is_lost_twice_is_taken_back_twice() {
    let mut page = Page::default();
    let tell = |page: &mut Page, frames: &[Frame]| {
        told(frames, settings(page.last.as_deref())).iter().for_each(|event| page.take(event));
    };
    tell(&mut page, &[run(), chunk("m_t_2", 1, 0, "one, and more")]);
    tell(
        &mut page,
        &[
            run(),
            chunk("m_t_2", 2, 0, "on"),
            ("message_reset", json!({ "message_id": "m_t_2", "attempt": 3 })),
            chunk("m_t_2", 3, 0, "one, and other"),
        ],
    );
    assert_eq!(page.said(), [("m_t_2", "one, and other")]);
    tell(&mut page, &[run(), chunk("m_t_2", 4, 0, "two")]);
    assert_eq!(page.said(), [("m_t_2", "one, and other")], "nobody knows yet what becomes of it");
    tell(&mut page, &[run(), reply("m_t_2", "two", &[]), ended("completed", "why")]);
    assert_eq!((page.said(), page.ends), (vec![("m_t_2", "two")], 1));
}

#[test]
fn reasoning_is_not_told_twice_under_one_id() {
    let reasons =
        |text: &str| ("reasoning_chunk", json!({ "message_id": "m_t_2", "depth": 0, "chunk": text }));
    let first = told(&[run(), reasons("Let me "), reasons("see.")], settings(None));
    let mut page = Page::default();
    first.iter().for_each(|event| page.take(event));
    let rest = [
        run(),
        reasons("So."),
        chunk("m_t_2", 1, 0, "Yes"),
        reply("m_t_2", "Yes", &[]),
        ended("completed", "why"),
    ];
    let mut other = page.clone();
    told(&rest, settings(page.last.as_deref())).iter().for_each(|event| page.take(event));
    let wanted = [("m_t_2", "Yes"), ("m_t_2:reasoning", "Let me see."), ("m_t_2:reasoning:2", "So.")];
    assert_eq!(page.said(), wanted);
    // A client that has read some of the text has everything before it.
    told(&rest[..3], settings(None)).iter().for_each(|event| other.take(event));
    let last = other.last.clone();
    let again =
        told(&[run(), reply("m_t_2", "Yes", &[]), ended("completed", "why")], settings(last.as_deref()));
    assert!(!again.iter().any(|(_, event)| event["type"] == "MESSAGES_SNAPSHOT"), "{again:#?}");
}

#[test]
fn an_interrupt_that_was_read_is_told_again_and_gone_on_from() {
    let asked = [run(), reply("m_t_2", "", &[("c1", "pay", "{}")]), parked("approval", "c1")];
    let mut page = Page::default();
    told(&asked, settings(None)).iter().for_each(|event| page.take(event));
    let again = told(&asked, settings(page.last.as_deref()));
    let last = again.iter().filter(|(id, _)| id.is_some()).collect::<Vec<_>>();
    assert_eq!((last.len(), &last[0].1["outcome"]["type"]), (1, &json!("interrupt")));
    let decided = [
        &asked[..2],
        &[result("m_t_3", "c1", "pay", "paid"), reply("m_t_4", "Done", &[]), ended("completed", "why")],
    ]
    .concat();
    told(&decided, settings(page.last.as_deref())).iter().for_each(|event| page.take(event));
    assert_eq!(page.said(), [("m_t_2", "[pay]{}"), ("m_t_3", "paid"), ("m_t_4", "Done")]);
}

#[test]
fn who_has_read_of_another_run_is_told_all_of_this_one_and_forgets() {
    let again = told(&settled(), settings(Some("m7.9.12.0.0")));
    let kinds: Vec<_> = again.iter().map(|(_, event)| &event["type"]).collect();
    assert_eq!(kinds[..2], ["RUN_STARTED", "MESSAGES_SNAPSHOT"]);
    assert_eq!(again.iter().filter(|(_, event)| event["type"] == "STATE_SNAPSHOT").count(), 1);
}

#[test]
fn where_nothing_can_be_taken_back_the_text_that_holds_is_a_message_of_its_own() {
    let long = json!({ "id": "u1", "role": "user", "content": "x".repeat(1 << 20) }).to_string();
    let of = |after: Option<&str>| Settings { held: long.clone(), ..settings(after) };
    let mut page = Page::default();
    told(&[run(), chunk("m_t_2", 1, 0, "lost")], of(None)).iter().for_each(|event| page.take(event));
    let frames = [
        run(),
        chunk("m_t_2", 2, 0, "what"),
        chunk("m_t_2", 2, 4, " holds"),
        reply("m_t_2", "what holds", &[]),
        ended("completed", "why"),
    ];
    told(&frames, of(page.last.as_deref())).iter().for_each(|event| page.take(event));
    let last = page.messages.last().unwrap();
    assert_eq!((page.messages.len(), last.1.as_str()), (2, "what holds"), "{:?}", page.messages);
}
