//! Scopes of credentials.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `admin`, `owner:<id>`, `thread:<id>` or `wait:<thread>/<wait>`, in this form in keys, tokens and JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// Everything.
    Admin,
    /// One owner's threads, including those that its credentials create.
    Owner(String),
    /// One thread: read, stream, send, stop and continue.
    Thread(String),
    /// One wait of one thread: read and decide.
    Wait(String, String),
}

/// The error for an invalid scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope is `admin`, `owner:<id>`, `thread:<id>` or `wait:<thread>/<wait>`")]
pub struct NoScope;

impl FromStr for Scope {
    type Err = NoScope;

    fn from_str(text: &str) -> Result<Scope, NoScope> {
        // An id is any text without control characters and outer spaces.
        let valid = |id: &str| !id.is_empty() && id.trim() == id && !id.contains(char::is_control);
        match text.split_once(':') {
            None if text == "admin" => Ok(Scope::Admin),
            Some(("owner", id)) if valid(id) => Ok(Scope::Owner(id.to_owned())),
            Some(("thread", id)) if valid(id) => Ok(Scope::Thread(id.to_owned())),
            Some(("wait", ids)) => match ids.split_once('/') {
                Some((thread, wait)) if valid(thread) && valid(wait) => {
                    Ok(Scope::Wait(thread.to_owned(), wait.to_owned()))
                }
                _ => Err(NoScope),
            },
            _ => Err(NoScope),
        }
    }
}

impl TryFrom<String> for Scope {
    type Error = NoScope;

    fn try_from(text: String) -> Result<Scope, NoScope> {
        text.parse()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Admin => f.write_str("admin"),
            Scope::Owner(id) => write!(f, "owner:{id}"),
            Scope::Thread(id) => write!(f, "thread:{id}"),
            Scope::Wait(thread, wait) => write!(f, "wait:{thread}/{wait}"),
        }
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> String {
        scope.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for (text, scope) in [
            ("admin", Scope::Admin),
            ("owner:alice", Scope::Owner("alice".into())),
            ("owner:o:1=2", Scope::Owner("o:1=2".into())),
            ("thread:6f0c", Scope::Thread("6f0c".into())),
            ("wait:6f0c/w_6f0c_1", Scope::Wait("6f0c".into(), "w_6f0c_1".into())),
        ] {
            assert_eq!(text.parse(), Ok(scope.clone()));
            assert_eq!(scope.to_string(), text);
        }
        for text in [
            "",
            "Admin",
            "admin:",
            "admin:x",
            "owner",
            "owner:",
            "owner: a",
            "owner:a\n",
            "thread:",
            "wait:6f0c",
            "wait:/w_1",
            "wait:6f0c/",
            "user:a",
            " admin",
        ] {
            assert_eq!(text.parse::<Scope>(), Err(NoScope), "{text:?}");
        }
    }
}
