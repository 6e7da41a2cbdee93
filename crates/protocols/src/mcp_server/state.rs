//! The state that an MCP client returns with its answers: the thread and the questions. It is signed and not
//! stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use bobbin_definitions::json;
use bobbin_definitions::signing::{digest, hmac_sha256, same};

/// Validity of a state, seconds.
pub const STATE_S: i64 = 24 * 3_600;

/// The state behind a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionState {
    /// The thread.
    pub thread: String,
    /// The message whose run has the question.
    pub message: String,
    /// The run, if the call began it.
    pub began: Option<String>,
    /// The waits: the client's keys, and their ids.
    pub waits: Vec<(String, String)>,
}

/// The reason for which a state is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// It was not issued here, or was changed.
    #[error("The `requestState` is not valid.")]
    Forged,
    /// It has expired.
    #[error(
        "The `requestState` has expired: read the thread with thread_get, and answer with thread_respond."
    )]
    Expired,
    /// It belongs to another caller, or to another call.
    #[error("The `requestState` does not belong to this call.")]
    Others,
}

/// Signs states of one call.
#[derive(Clone)]
pub struct Seal {
    secret: Vec<u8>,
    principal: String,
    call: String,
    now_s: i64,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Seal").field("call", &self.call).finish_non_exhaustive()
    }
}

impl Seal {
    /// For a caller (a scope), and the call with its arguments.
    pub fn new(secret: &[u8], principal: &str, called: &[&str], now_s: i64) -> Seal {
        Seal { secret: secret.to_vec(), principal: digest(&[principal]), call: digest(called), now_s }
    }

    /// The state as text.
    pub fn close(&self, state: QuestionState) -> String {
        let QuestionState { thread, message, began, waits } = state;
        let signed = json!({
            "thread": thread, "message": message, "began": began, "waits": waits,
            "principal": self.principal, "call": self.call, "until": self.now_s + STATE_S,
        });
        let payload = URL_SAFE_NO_PAD.encode(signed.to_string());
        let signature = URL_SAFE_NO_PAD.encode(self.signature(&payload));
        format!("{payload}.{signature}")
    }

    /// Verifies and parses a text that a client returns.
    ///
    /// # Errors
    /// It was not issued here, has expired, or belongs to another call.
    pub fn open(&self, text: &str) -> Result<QuestionState, StateError> {
        let (payload, signature) = text.split_once('.').ok_or(StateError::Forged)?;
        let given = URL_SAFE_NO_PAD.decode(signature).ok().and_then(|given| given.try_into().ok());
        if !given.is_some_and(|given| same(&self.signature(payload), &given)) {
            return Err(StateError::Forged);
        }
        let signed = URL_SAFE_NO_PAD.decode(payload).map_err(|_| StateError::Forged)?;
        let signed: Value = bobbin_definitions::json::from_slice(&signed).map_err(|_| StateError::Forged)?;
        let text = |name: &str| signed.get(name).and_then(Value::as_str);
        if text("principal") != Some(&self.principal) || text("call") != Some(&self.call) {
            return Err(StateError::Others);
        }
        if signed.get("until").and_then(Value::as_i64).is_none_or(|until| until <= self.now_s) {
            return Err(StateError::Expired);
        }
        let waits =
            signed.get("waits").cloned().and_then(|waits| bobbin_definitions::json::from_value(waits).ok());
        Ok(QuestionState {
            thread: text("thread").unwrap_or_default().to_owned(),
            message: text("message").unwrap_or_default().to_owned(),
            began: text("began").map(str::to_owned),
            waits: waits.unwrap_or_default(),
        })
    }

    fn signature(&self, payload: &str) -> [u8; 32] {
        // The prefix separates these signatures from all others, because tokens have no NUL.
        hmac_sha256(&self.secret, &[b"mcp\0", payload.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_300_000;

    fn seal(secret: &str, principal: &str, args: &str, now_s: i64) -> Seal {
        Seal::new(secret.as_bytes(), principal, &["ask_a", args], now_s)
    }

    #[test]
    fn a_state_is_good_for_its_owner_its_call_and_a_day() {
        let state = QuestionState {
            thread: "t".into(),
            message: "m_t_1".into(),
            began: Some("r_1".into()),
            waits: vec![("who".into(), "w_t_1".into())],
        };
        let text = seal("secret", "owner:alice", "{}", NOW).close(state.clone());
        let open = |secret, principal, args, now_s| seal(secret, principal, args, now_s).open(&text);
        assert_eq!(open("secret", "owner:alice", "{}", NOW + STATE_S - 1), Ok(state));
        assert_eq!(open("secret", "owner:alice", "{}", NOW + STATE_S), Err(StateError::Expired));
        assert_eq!(open("secret", "owner:bob", "{}", NOW), Err(StateError::Others));
        assert_eq!(open("secret", "owner:alice", "{\"a\":1}", NOW), Err(StateError::Others));
        assert_eq!(open("another", "owner:alice", "{}", NOW), Err(StateError::Forged));
        for at in 0..text.len() {
            let changed = format!(
                "{}{}{}",
                &text[..at],
                if text[at..].starts_with('A') { "B" } else { "A" },
                &text[at + 1..]
            );
            let opened = seal("secret", "owner:alice", "{}", NOW).open(&changed);
            assert_eq!(opened, Err(StateError::Forged), "{changed}");
            assert!(seal("secret", "owner:alice", "{}", NOW).open(&text[..at]).is_err());
        }
    }
}
