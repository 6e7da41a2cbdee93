//! A client of the stream that checks what it is told: chunks are gapless, a lost attempt is reset, and what it holds
//! at the end is what is stored.

use std::collections::BTreeMap;
use std::rc::Rc;

use bobbin::engine::feed::{Continuation, FeedTarget};
use bobbin::host::{Filter, Frame};
use serde_json::Value;

use crate::sim::Sim;

/// What the client holds.
#[derive(Debug, Default)]
pub struct Watcher {
    /// Messages by id.
    pub messages: BTreeMap<String, Value>,
    /// The reply that is being streamed: message, attempt, text.
    pub partial: Option<(String, i64, String)>,
    /// Where it resumes.
    pub last_id: Option<String>,
    /// Frames it got.
    pub seen: usize,
    /// Everything that was wrong.
    pub wrong: Vec<String>,
    /// Frames behind the last one of a run, which there may not be.
    pub rest: usize,
    /// Pieces of a feed that were followed by another one.
    pub pieces: usize,
    /// Last frames of a run that it follows.
    pub ended: Vec<Value>,
    /// Kinds of frames, in order.
    pub kinds: Vec<String>,
}

impl Watcher {
    /// Takes one frame in.
    pub fn apply(&mut self, frame: &Frame) {
        self.seen += 1;
        let data = &frame.data;
        let what = data["message_id"].as_str().unwrap_or_default();
        self.kinds.push(format!("{} {what} [{}]", frame.kind, frame.id.as_deref().unwrap_or_default()));
        let id = data["message_id"].as_str().unwrap_or_default().to_owned();
        let attempt = data["attempt"].as_i64().unwrap_or(0);
        match frame.kind {
            "snapshot" => {
                self.messages.clear();
                for message in data["messages"].as_array().into_iter().flatten() {
                    self.store(message);
                }
                let partial = &data["partial"];
                self.partial = partial["message_id"].as_str().map(|id| {
                    let text = partial["text"].as_str().or(partial["chunk"].as_str()).unwrap_or_default();
                    (id.to_owned(), partial["attempt"].as_i64().unwrap_or(0), text.to_owned())
                });
            }
            "run" => {
                self.messages.clear();
                self.partial = None;
            }
            "run_ended" => self.ended.push(data.clone()),
            "message_chunk" => self.chunk(id, attempt, data),
            "message_reset" => {
                if let Some((old, known, _)) = &self.partial
                    && (*old == id && *known > attempt)
                {
                    self.wrong.push(format!("a reset to attempt {attempt} after attempt {known}"));
                }
                self.partial = Some((id, attempt, String::new()));
            }
            "message_data" => {
                let message = &data["data"];
                if let Some((streamed, _, text)) = &self.partial
                    && *streamed == id
                {
                    let whole = message["content"].as_str().unwrap_or_default();
                    // What took the place of a lost attempt may come as a row, without its text before.
                    if whole != text && !text.is_empty() {
                        self.wrong.push(format!("streamed “{text}”, stored “{whole}”"));
                    }
                    self.partial = None;
                }
                self.store(message);
            }
            _ => {
                if frame.id.is_some() {
                    self.wrong.push(format!("{} has an id", frame.kind));
                }
            }
        }
        if let Some(id) = &frame.id {
            self.last_id = Some(id.clone());
        }
    }

    fn chunk(&mut self, id: String, attempt: i64, data: &Value) {
        let offset = data["offset"].as_u64().unwrap_or(u64::MAX) as usize;
        let chunk = data["chunk"].as_str().unwrap_or_default();
        match &mut self.partial {
            Some((known, number, text)) if *known == id && *number == attempt => {
                if offset != text.len() {
                    self.wrong.push(format!("a chunk at {offset} of {id}, {} are known", text.len()));
                }
                text.push_str(chunk);
            }
            other => {
                if offset != 0 {
                    self.wrong
                        .push(format!("the first chunk of {id}/{attempt} is at {offset} after {other:?}"));
                }
                *other = Some((id, attempt, chunk.to_owned()));
            }
        }
    }

    fn store(&mut self, message: &Value) {
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        self.messages.insert(id, message.clone());
    }

    /// Compares what it holds with what is stored.
    pub fn compare(&self, history: &[Value]) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        let visible = history.iter().filter(|m| m["silent"] != true && m["depth"] == 0);
        let mut known = self.messages.clone();
        for message in visible {
            match known.remove(message["id"].as_str().unwrap_or_default()) {
                None => wrong.push(format!("the stream never told {message}")),
                Some(told) if told["content"] != message["content"] => {
                    wrong.push(format!("the stream told {told}, stored is {message}"));
                }
                Some(_) => {}
            }
        }
        wrong.extend(known.values().map(|message| format!("the stream told {message}, which is not there")));
        if let Some(partial) = &self.partial {
            wrong.push(format!("a partial text stays: {partial:?}"));
        }
        wrong
    }
}

/// Follows one run to its end. `cut` says after how many frames the connection breaks.
pub async fn follow_run(sim: Sim, of: FeedTarget, mut cut: impl FnMut(usize) -> bool) -> Watcher {
    let mut watcher = Watcher::default();
    'connect: loop {
        let Ok((listener, then)) = sim.follow(of.clone(), watcher.last_id.as_deref()).await else {
            sim.world.pause(20_000).await;
            continue;
        };
        let mut taken = 0;
        loop {
            let next = listener.frames.borrow().get(taken).cloned();
            if let Some(frame) = next {
                taken += 1;
                watcher.apply(&frame);
                if !watcher.ended.is_empty() {
                    watcher.rest = listener.frames.borrow().len() - taken;
                    return watcher;
                }
                if cut(watcher.seen) {
                    watcher.kinds.push("(broke off)".into());
                    listener.open.set(false);
                    continue 'connect;
                }
                continue;
            }
            if let Continuation::More(id) = &then {
                watcher.last_id = Some(id.clone());
                watcher.pieces += 1;
                continue 'connect;
            }
            if !listener.open.get() {
                continue 'connect;
            }
            sim.world.pause(2_000).await;
        }
    }
}

/// Follows the stream until `done` holds and a second more. `cut` says after how many frames the connection breaks.
pub async fn follow(sim: Sim, mut cut: impl FnMut(usize) -> bool, done: impl Fn() -> bool) -> Watcher {
    let mut watcher = Watcher::default();
    let filter = Filter { events: true, ..Filter::default() };
    let mut idle = 0;
    'connect: loop {
        let Ok(listener) = sim.listen(filter, watcher.last_id.as_deref()).await else {
            sim.world.pause(20_000).await;
            continue;
        };
        let listener = Rc::clone(&listener);
        let mut taken = 0;
        loop {
            let next = listener.frames.borrow().get(taken).cloned();
            if let Some(frame) = next {
                taken += 1;
                idle = 0;
                watcher.apply(&frame);
                if cut(watcher.seen) {
                    watcher.kinds.push("(broke off)".into());
                    listener.open.set(false);
                    continue 'connect;
                }
                continue;
            }
            if !listener.open.get() {
                continue 'connect;
            }
            idle += 1;
            if done() && idle > 500 {
                listener.open.set(false);
                return watcher;
            }
            sim.world.pause(2_000).await;
        }
    }
}
