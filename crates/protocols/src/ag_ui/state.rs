//! The state of AG-UI: the values of a thread that were sent to a client. Frames name the key that has
//! changed; its value is then requested from the thread.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::run_events::text_of;
use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::json;
use bobbin_definitions::limits;

/// Maximum number of changed keys that are read one by one. Otherwise all are read.
const KEYS: usize = 100;

/// The request to the thread in progress.
#[derive(Debug, PartialEq, Eq)]
enum StateRequest {
    All,
    Key(String),
}

/// The values that a client knows.
#[derive(Debug, Default)]
pub(super) struct ClientState {
    known: Option<Map<String, Value>>,
    changed: BTreeSet<String>,
    asked: Option<StateRequest>,
}

impl ClientState {
    /// Whether the values were sent to the client.
    pub(super) fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Whether all changes were sent to the client.
    pub(super) fn is_settled(&self) -> bool {
        self.is_known() && self.changed.is_empty() && self.asked.is_none()
    }

    /// Records that a value was set or deleted.
    pub(super) fn changes(&mut self, key: &str) {
        self.changed.insert(key.to_owned());
        if self.changed.len() > KEYS {
            self.known = None;
        }
    }

    /// The query of the next `GET …/kv` for the thread.
    pub(super) fn asks(&mut self) -> Option<Vec<(String, String)>> {
        if self.asked.is_some() {
            return None;
        }
        if self.known.is_none() {
            // It includes all changes so far.
            self.changed = BTreeSet::default();
            self.asked = Some(StateRequest::All);
            return Some(vec![("limit".to_owned(), limits::PAGE_MAX.to_string())]);
        }
        let key = self.changed.iter().next()?.clone();
        self.changed.remove(&key);
        self.asked = Some(StateRequest::Key(key.clone()));
        Some(vec![("key".to_owned(), key)])
    }

    /// Converts the thread's response into an event; `None` if the client knows the values already.
    ///
    /// # Errors
    /// The values cannot be parsed.
    pub(super) fn answered(&mut self, status: u16, body: &str) -> Result<Option<Value>> {
        let read = || -> Result<Value> { bobbin_definitions::json::from_str(body).map_err(Error::internal) };
        match (self.asked.take(), status) {
            (Some(StateRequest::All), 200) => {
                let mut listed = read()?;
                let mut known = Map::new();
                for value in listed.get_mut("values").and_then(Value::as_array_mut).into_iter().flatten() {
                    let key = text_of(value, "key").to_owned();
                    if let Some(value) = value.get_mut("value") {
                        known.insert(key, value.take());
                    }
                }
                let event = json!({ "type": "STATE_SNAPSHOT", "snapshot": known });
                self.known = Some(known);
                Ok(Some(event))
            }
            (Some(StateRequest::Key(key)), 200) => {
                Ok(self.set(key, read()?.get_mut("value").map(Value::take)))
            }
            (Some(StateRequest::Key(key)), 404) => Ok(self.set(key, None)),
            (_, status) => Err(Error::internal(format!("the thread's values: {status} {body}"))),
        }
    }

    fn set(&mut self, key: String, value: Option<Value>) -> Option<Value> {
        let known = self.known.as_mut()?;
        let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        let change = match (known.get(&key), value) {
            (Some(was), Some(is)) if *was == is => return None,
            (None, None) => return None,
            (_, None) => {
                known.remove(&key);
                json!({ "op": "remove", "path": path })
            }
            (was, Some(is)) => {
                let op = if was.is_some() { "replace" } else { "add" };
                known.insert(key, is.clone());
                json!({ "op": op, "path": path, "value": is })
            }
        };
        Some(json!({ "type": "STATE_DELTA", "delta": [change] }))
    }
}
