//! The two sides of a conversation (spec §7.2), and requests by code to a run (spec §13).

use crate::definitions::message::Role;

/// A side of the conversation. Stored roles identify the author: side A's messages are `assistant`, side B's
/// (a person's, or the other model's) are `user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Always a model.
    A,
    /// A person, or the second model of a `dual_ai` agent.
    B,
}

impl Side {
    /// `a` or `b`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Side::A => "a",
            Side::B => "b",
        }
    }

    /// Parses `a` or `b`.
    pub fn parse(text: &str) -> Option<Side> {
        match text {
            "a" => Some(Side::A),
            "b" => Some(Side::B),
            _ => None,
        }
    }

    /// The opposite side.
    pub const fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }

    /// The role that its messages are stored with.
    pub(crate) const fn role(self) -> Role {
        match self {
            Side::A => Role::Assistant,
            Side::B => Role::User,
        }
    }

    /// The side that a queued message activates: the one that did not write it (spec §15).
    pub(super) fn woken_by(role: Role) -> Side {
        if role == Side::A.role() { Side::B } else { Side::A }
    }
}

/// A request by code to the run, carried out after the step's calls. The last request wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeRequest {
    /// Ends the run.
    Stop,
    /// Lets this side act next.
    Turn(Side),
}

impl CodeRequest {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            CodeRequest::Stop => "stop",
            CodeRequest::Turn(side) => side.as_str(),
        }
    }

    pub(super) fn parse(text: &str) -> Option<CodeRequest> {
        match text {
            "stop" => Some(CodeRequest::Stop),
            side => Side::parse(side).map(CodeRequest::Turn),
        }
    }
}
