//! Permissions (docs/http.md): API keys with scopes, browser tokens minted from them, and the actions that
//! each scope allows. Pure functions: the Worker reads the variables and the request, and an object compares
//! the caller's scope with its own owner.
//!
//! * `config`: the deployment's credentials, and authentication. `keys`, `token`: the two kinds of
//!   credentials. `scope`: their scopes. `guard`: restrictions of a development server. `links`: links to
//!   files. `oauth`: access tokens of another system.

pub mod config;
pub mod guard;
pub mod keys;
pub mod links;
pub mod oauth;
pub mod scope;
pub mod token;

pub use crate::access::config::{Access, Credential, MINIMUM_SECRET_BYTES};
pub use crate::access::guard::is_local;
pub use crate::access::guard::{Body, DevRequest, dev_guard};
pub use crate::access::scope::Scope;
pub use crate::access::token::NewToken;

use serde::{Deserialize, Serialize};

use bobbin_definitions::error::{Code, Error, Result};

/// The sender of a request. It crosses to an object as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The scope of its credentials.
    pub scope: Scope,
    /// The kind of its credentials.
    pub via: Via,
}

/// The kind of a caller's credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// An entry of `BOBBIN_API_KEYS`.
    Key,
    /// A browser token.
    Token {
        /// End of its validity, microseconds since 1970; a stream that it opened ends with it.
        expires_us: i64,
        /// Generation of the thread, for a token of a thread whose id is made of a key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        life: Option<i64>,
    },
    /// None: a development server without keys.
    Development,
}

/// An action. The first seven concern one thread and are decided with its [`ThreadRef`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Read the thread, its messages and logs.
    ReadThread,
    /// Follow its stream.
    Stream,
    /// Send it a message.
    Send,
    /// Stop its run, or continue it.
    StopContinue,
    /// Read or decide one of its waits.
    Wait {
        /// The wait's id.
        id: &'a str,
    },
    /// Change, terminate or delete it; edit or delete its messages.
    Manage,
    /// Read the requests to models, including the texts of prompts.
    ReadPrompts,
    /// Create a thread with this owner.
    CreateThread {
        /// The owner; `None` for a thread without one.
        user_id: Option<&'a str>,
    },
    /// List the threads of this owner.
    ListThreads {
        /// The owner; `None` for the threads without one.
        user_id: Option<&'a str>,
    },
    /// List the owners of all threads.
    ListOwners,
    /// Read the MCP servers and their health.
    ListServers,
    /// Read and set values of variables of this owner, or of the instance.
    Values {
        /// The owner; `None` for the instance.
        user_id: Option<&'a str>,
    },
    /// Read and change the memories of this owner, or of the instance.
    Memories {
        /// The owner; `None` for the instance.
        user_id: Option<&'a str>,
    },
    /// Mint a browser token.
    MintToken,
    /// List the agents.
    Catalog,
}

/// A thread, as needed to check permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadRef<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its owner (`user_id`), if it has one.
    pub owner: Option<&'a str>,
    /// Its generation, from 1.
    pub life: i64,
}

impl Caller {
    /// A caller who may do everything.
    pub fn admin() -> Caller {
        Caller { scope: Scope::Admin, via: Via::Key }
    }

    /// The owner of the caller, which is the default when it creates or lists threads. `None` for an admin,
    /// who is no particular owner, and for a thread's credentials.
    pub fn owner(&self) -> Option<&str> {
        match &self.scope {
            Scope::Owner(id) => Some(id),
            Scope::Admin | Scope::Thread(_) | Scope::Wait(..) => None,
        }
    }

    /// End of the credentials, microseconds since 1970; `None` if they do not expire.
    pub fn expires_us(&self) -> Option<i64> {
        match self.via {
            Via::Token { expires_us, .. } => Some(expires_us),
            Via::Key | Via::Development => None,
        }
    }

    /// Checks whether the caller may do this. An action on a thread requires the thread.
    ///
    /// # Errors
    /// `thread_not_found` for a thread of someone else, so that its existence stays secret. `forbidden` for
    /// everything else that the scope does not allow.
    pub fn may(&self, action: &Action<'_>, thread: Option<ThreadRef<'_>>) -> Result<()> {
        let allowed = match action {
            Action::ReadThread
            | Action::Stream
            | Action::Send
            | Action::StopContinue
            | Action::Wait { .. }
            | Action::Manage
            | Action::ReadPrompts => {
                if !thread.is_some_and(|thread| self.reaches(thread, action)) {
                    return Err(no_thread());
                }
                match action {
                    Action::Manage => !matches!(self.scope, Scope::Thread(_)),
                    Action::ReadPrompts => self.scope == Scope::Admin,
                    _ => true,
                }
            }
            Action::CreateThread { user_id }
            | Action::ListThreads { user_id }
            | Action::Values { user_id }
            | Action::Memories { user_id } => match &self.scope {
                Scope::Admin => true,
                Scope::Owner(own) => *user_id == Some(own.as_str()),
                Scope::Thread(_) | Scope::Wait(..) => false,
            },
            Action::ListOwners | Action::ListServers => self.scope == Scope::Admin,
            Action::MintToken => {
                !matches!(self.scope, Scope::Thread(_) | Scope::Wait(..))
                    && !matches!(self.via, Via::Token { .. })
            }
            Action::Catalog => !matches!(self.scope, Scope::Thread(_) | Scope::Wait(..)),
        };
        if allowed { Ok(()) } else { Err(self.forbidden(action)) }
    }

    fn reaches(&self, thread: ThreadRef<'_>, action: &Action<'_>) -> bool {
        match &self.scope {
            Scope::Wait(own, wait) => thread.id == own && *action == Action::Wait { id: wait },
            Scope::Admin => true,
            Scope::Owner(own) => thread.owner == Some(own),
            Scope::Thread(own) => thread.id == own && self.life().is_none_or(|life| life == thread.life),
        }
    }

    /// Generation of the thread that the credentials are for; `None` if any.
    const fn life(&self) -> Option<i64> {
        match self.via {
            Via::Token { life, .. } => life,
            Via::Key | Via::Development => None,
        }
    }

    fn forbidden(&self, action: &Action<'_>) -> Error {
        let (scope, via) = (&self.scope, self.via);
        let error = match action {
            Action::MintToken if matches!(via, Via::Token { .. }) => {
                return Error::new(Code::Forbidden, "A token mints no token.").hint("Use an API key.");
            }
            Action::CreateThread { .. } if self.owner().is_some() => {
                "These credentials create threads only for their own owner."
            }
            Action::ListThreads { .. } if self.owner().is_some() => {
                "These credentials list only the threads of their own owner."
            }
            Action::Values { .. } if self.owner().is_some() => {
                "These credentials set and show only the values of their own owner."
            }
            Action::Memories { user_id: None } if self.owner().is_some() => {
                "The memories of the instance are the administrators'."
            }
            Action::Memories { .. } if self.owner().is_some() => {
                "These credentials reach only the memories of their own owner."
            }
            _ => "These credentials do not allow this.",
        };
        let error = Error::new(Code::Forbidden, error).hint(format!("Their scope is `{scope}`."));
        match action {
            Action::CreateThread { user_id: Some(_) }
            | Action::ListThreads { user_id: Some(_) }
            | Action::Values { user_id: Some(_) }
            | Action::Memories { user_id: Some(_) } => error.at("user_id"),
            _ => error,
        }
    }
}

/// The error for a thread that does not exist or belongs to someone else. Both cases share it, so that its
/// existence stays secret. It does not contain the id, which not every caller knows.
pub fn no_thread() -> Error {
    Error::new(Code::ThreadNotFound, "There is no such thread, or it is not yours.")
        .hint("GET /api/threads lists yours; POST /api/threads creates one.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(scope: &str) -> Caller {
        Caller { scope: scope.parse().unwrap(), via: Via::Key }
    }

    const MINE: ThreadRef<'_> = ThreadRef { id: "t1", owner: Some("alice"), life: 1 };
    const OTHERS: ThreadRef<'_> = ThreadRef { id: "t2", owner: Some("bob"), life: 1 };
    const NOBODYS: ThreadRef<'_> = ThreadRef { id: "t3", owner: None, life: 1 };

    #[test]
    fn what_each_scope_may_do_with_a_thread() {
        let ok = None;
        let (hidden, forbidden) = (Some(Code::ThreadNotFound), Some(Code::Forbidden));
        let everyday = [Action::ReadThread, Action::Stream, Action::Send, Action::StopContinue];
        // (scope, thread, everyday actions, managing)
        for (scope, thread, using, managing) in [
            ("admin", MINE, ok, ok),
            ("admin", NOBODYS, ok, ok),
            ("owner:alice", MINE, ok, ok),
            ("owner:alice", OTHERS, hidden, hidden),
            ("owner:alice", NOBODYS, hidden, hidden),
            ("thread:t1", MINE, ok, forbidden),
            ("thread:t1", OTHERS, hidden, hidden),
            ("thread:t3", NOBODYS, ok, forbidden),
        ] {
            let outcome = |action| caller(scope).may(action, Some(thread)).err().map(|error| error.code);
            for action in &everyday {
                assert_eq!(outcome(action), using, "{scope} {thread:?} {action:?}");
            }
            assert_eq!(outcome(&Action::Manage), managing, "{scope} {thread:?}");
            let prompts = if scope == "admin" || using == hidden { using } else { forbidden };
            assert_eq!(outcome(&Action::ReadPrompts), prompts, "{scope} {thread:?}");
        }
        for scope in ["admin", "owner:alice", "thread:t1"] {
            let error = caller(scope).may(&Action::ReadThread, None).unwrap_err();
            assert_eq!(error.code, Code::ThreadNotFound, "an action on a thread needs the thread");
        }
    }

    #[test]
    fn what_each_scope_may_do_without_a_thread() {
        let own = Some("alice");
        for (action, allowed) in [
            (Action::CreateThread { user_id: own }, ["admin", "owner:alice"].as_slice()),
            (Action::CreateThread { user_id: Some("bob") }, &["admin", "owner:bob"]),
            (Action::CreateThread { user_id: None }, &["admin"]),
            (Action::ListThreads { user_id: own }, &["admin", "owner:alice"]),
            (Action::ListThreads { user_id: None }, &["admin"]),
            (Action::ListOwners, &["admin"]),
            (Action::ListServers, &["admin"]),
            (Action::Values { user_id: own }, &["admin", "owner:alice"]),
            (Action::Values { user_id: Some("bob") }, &["admin", "owner:bob"]),
            (Action::Values { user_id: None }, &["admin"]),
            (Action::Memories { user_id: own }, &["admin", "owner:alice"]),
            (Action::Memories { user_id: Some("bob") }, &["admin", "owner:bob"]),
            (Action::Memories { user_id: None }, &["admin"]),
            (Action::MintToken, &["admin", "owner:alice", "owner:bob"]),
            (Action::Catalog, &["admin", "owner:alice", "owner:bob"]),
        ] {
            for scope in ["admin", "owner:alice", "owner:bob", "thread:t1"] {
                let outcome = caller(scope).may(&action, None);
                assert_eq!(outcome.is_ok(), allowed.contains(&scope), "{scope} {action:?}");
                if let Err(error) = outcome {
                    assert_eq!(error.code, Code::Forbidden, "{scope} {action:?}");
                }
            }
        }
    }

    #[test]
    fn a_token_for_a_thread_is_none_for_the_next_one_of_its_id() {
        let later = ThreadRef { life: 2, ..MINE };
        for (life, thread, allowed) in
            [(Some(1), MINE, true), (Some(1), later, false), (Some(2), later, true), (None, later, true)]
        {
            let caller = Caller { via: Via::Token { expires_us: 1, life }, ..caller("thread:t1") };
            let outcome = caller.may(&Action::Send, Some(thread));
            assert_eq!(outcome.is_ok(), allowed, "{life:?} {thread:?}");
            assert!(outcome.is_ok() || outcome == Err(no_thread()));
        }
    }

    #[test]
    fn a_token_mints_no_token() {
        for scope in ["admin", "owner:alice"] {
            let caller = Caller { via: Via::Token { expires_us: 1, life: None }, ..caller(scope) };
            assert_eq!(caller.may(&Action::MintToken, None).unwrap_err().message, "A token mints no token.");
            assert!(caller.may(&Action::Catalog, None).is_ok());
        }
        assert!(Caller { via: Via::Development, ..Caller::admin() }.may(&Action::MintToken, None).is_ok());
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_no_more() {
        let error =
            caller("owner:alice").may(&Action::CreateThread { user_id: Some("bob") }, None).unwrap_err();
        assert_eq!(error.message, "These credentials create threads only for their own owner.");
        assert_eq!(
            (error.field.as_deref(), error.hint.as_deref()),
            (Some("user_id"), Some("Their scope is `owner:alice`."))
        );
        let error = caller("owner:alice").may(&Action::Manage, Some(OTHERS)).unwrap_err();
        assert_eq!(error, no_thread());
    }

    #[test]
    fn a_caller_survives_the_way_to_an_object() {
        let token = |life| Via::Token { expires_us: 1_795_300_000_000_000, life };
        for via in [Via::Key, token(None), token(Some(2)), Via::Development] {
            for scope in ["admin", "owner:a:b c", "thread:t1"] {
                let caller = Caller { via, ..caller(scope) };
                let json = serde_json::to_string(&caller).unwrap();
                assert_eq!(bobbin_definitions::json::from_str::<Caller>(&json).unwrap(), caller, "{json}");
            }
        }
        assert_eq!(caller("owner:alice").owner(), Some("alice"));
        assert_eq!((caller("admin").owner(), caller("thread:t1").owner()), (None, None));
    }
}
