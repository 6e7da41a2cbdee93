//! What a client of MCP gives back with its answers: which thread asked them what. It is signed, and nothing of it is stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::signing::{digest, hmac_sha256, same};

/// How long a client may take for its answers, seconds.
pub const STATE_S: i64 = 24 * 3_600;

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The thread.
    pub thread: String,
    /// The message whose run asks.
    pub message: String,
    /// The run, if it was begun by the call.
    pub began: Option<String>,
    /// The waits.
    pub waits: Vec<String>,
}

/// The same as it is signed.
#[derive(Debug, Serialize, Deserialize)]
struct Signed {
    #[serde(flatten)]
    state: State,
    /// Of who asks.
    principal: String,
    /// Of what was called with what.
    call: String,
    /// Seconds since 1970.
    until: i64,
}

/// Why a state is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It was not made here, or was changed.
    #[error("The `requestState` is not valid.")]
    Forged,
    /// It has ended.
    #[error(
        "The `requestState` has expired: read the thread with thread_get, and answer with thread_respond."
    )]
    Expired,
    /// It is somebody else's, or another call's.
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
    /// For who asks (a scope), and what they call with which arguments.
    pub fn new(secret: &[u8], principal: &str, called: &[&str], now_s: i64) -> Seal {
        Seal { secret: secret.to_vec(), principal: digest(&[principal]), call: digest(called), now_s }
    }

    /// The state as text.
    pub fn close(&self, state: State) -> String {
        let signed = Signed {
            state,
            principal: self.principal.clone(),
            call: self.call.clone(),
            until: self.now_s + STATE_S,
        };
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_string(&signed).unwrap_or_default());
        let signature = URL_SAFE_NO_PAD.encode(self.signature(&payload));
        format!("{payload}.{signature}")
    }

    /// What a text says that a client gives back.
    ///
    /// # Errors
    /// It is none of ours, or not for this.
    pub fn open(&self, text: &str) -> Result<State, Unfit> {
        let (payload, signature) = text.split_once('.').ok_or(Unfit::Forged)?;
        let given = URL_SAFE_NO_PAD.decode(signature).ok().and_then(|given| given.try_into().ok());
        if !given.is_some_and(|given| same(&self.signature(payload), &given)) {
            return Err(Unfit::Forged);
        }
        let signed = URL_SAFE_NO_PAD.decode(payload).map_err(|_| Unfit::Forged)?;
        let Signed { state, principal, call, until } =
            serde_json::from_slice(&signed).map_err(|_| Unfit::Forged)?;
        if principal != self.principal || call != self.call {
            return Err(Unfit::Others);
        }
        if until <= self.now_s { Err(Unfit::Expired) } else { Ok(state) }
    }

    fn signature(&self, payload: &str) -> [u8; 32] {
        // What is signed here is signed nowhere else: tokens have no NUL.
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
        let state = State {
            thread: "t".into(),
            message: "m_t_1".into(),
            began: Some("r_1".into()),
            waits: vec!["w_t_1".into()],
        };
        let text = seal("secret", "owner:alice", "{}", NOW).close(state.clone());
        let open = |secret, principal, args, now_s| seal(secret, principal, args, now_s).open(&text);
        assert_eq!(open("secret", "owner:alice", "{}", NOW + STATE_S - 1), Ok(state));
        assert_eq!(open("secret", "owner:alice", "{}", NOW + STATE_S), Err(Unfit::Expired));
        assert_eq!(open("secret", "owner:bob", "{}", NOW), Err(Unfit::Others));
        assert_eq!(open("secret", "owner:alice", "{\"a\":1}", NOW), Err(Unfit::Others));
        assert_eq!(open("another", "owner:alice", "{}", NOW), Err(Unfit::Forged));
        for at in 0..text.len() {
            let changed = format!(
                "{}{}{}",
                &text[..at],
                if text[at..].starts_with('A') { "B" } else { "A" },
                &text[at + 1..]
            );
            let opened = seal("secret", "owner:alice", "{}", NOW).open(&changed);
            assert_eq!(opened, Err(Unfit::Forged), "{changed}");
            assert!(seal("secret", "owner:alice", "{}", NOW).open(&text[..at]).is_err());
        }
    }
}
