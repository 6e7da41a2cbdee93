//! Approvals: calls that need a person's decision before they run (docs/approvals.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::form::StringOr;
use crate::definitions::variable::is_default;

/// The calls of a tool that need the approval of a person. In a file, the mode alone is enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StringOr<ApprovalFields>", into = "StringOr<ApprovalFields>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "ModeOrFields"))]
pub struct Approval {
    /// The condition for an approval, as a [`Mode`].
    pub mode: Mode,
    /// For the mode `when`: the JSON Schema of the arguments that need an approval.
    pub when: Option<Value>,
    /// The question for people. It may contain `{{args.NAME}}`.
    pub title: Option<String>,
    /// The reason for the question. It may contain `{{args.NAME}}`.
    pub reason: Option<String>,
    /// The arguments that the approver may change.
    pub edit: Vec<String>,
    /// The people who may decide.
    pub by: Option<Approver>,
    /// The later calls with the same arguments to which an approval also applies.
    pub remember: Remember,
    /// The arguments that must be equal for `remember`. Default: all.
    pub remember_by: Vec<String>,
    /// The time until the question expires, in seconds.
    pub expires_after_seconds: Option<u64>,
    /// The outcome of the call after the question expires.
    pub on_expiry: Expiry,
    /// A text that is not a mode. The catalog reports it.
    pub unknown: Option<String>,
}

/// The approval of a tool, as a mode or as an object.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "a schema's shape")]
enum ModeOrFields {
    Mode(Mode),
    Fields(ApprovalFields),
}

/// The condition for an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Mode {
    /// No call needs an approval.
    #[default]
    Never,
    /// Every call needs an approval.
    Always,
    /// A call needs an approval if its arguments match the JSON Schema in `when`.
    When,
    /// The tool runs first. If its result has the `error_code` `needs_approval`, Bobbin asks a person. After
    /// the approval Bobbin makes the call once more, with `"approved": true`.
    OnFailure,
}

/// The people who may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "By"))]
pub enum Approver {
    /// Everybody who may send messages to the thread.
    Thread,
    /// The owner of the thread, and administrators.
    Owner,
    /// Administrators.
    Admin,
}

/// The scope of an approval: the later calls with equal arguments to which it also applies, until the tool's
/// definition changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Remember {
    /// The approval applies to this call only.
    #[default]
    None,
    /// The approval applies until the run ends.
    Run,
    /// The approval applies as long as the thread exists.
    Thread,
}

/// The outcome of a call after its question expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Expiry {
    /// The call is denied, and the run continues.
    #[default]
    Deny,
    /// The run fails.
    Fail,
}

/// The object form of a tool's approval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ApprovalFields {
    /// The condition for an approval. Default: `never`.
    mode: Mode,
    /// For the mode `when`: the JSON Schema of the arguments that need an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    when: Option<Value>,
    /// The question for people. It may contain `{{args.NAME}}`. Default: the tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The reason for the question. It may contain `{{args.NAME}}`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The arguments that the approver may change. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edit: Vec<String>,
    /// The people who may decide: `thread` (everybody who may send messages to the thread), `owner` (the
    /// owner and administrators), or `admin`. Default: `owner`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Approver>,
    /// The later calls with the same arguments to which an approval also applies. Default: `none`.
    #[serde(skip_serializing_if = "is_default")]
    remember: Remember,
    /// The arguments that must be equal for `remember`. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remember_by: Vec<String>,
    /// The time until the question expires, in seconds, at most 30 days. Default: the setting in `approvals`
    /// of the prompt, the agent or `bobbin.json`, otherwise 7 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_after_seconds: Option<u64>,
    /// The outcome of the call after the question expires. Default: `deny`.
    #[serde(skip_serializing_if = "is_default")]
    on_expiry: Expiry,
}

impl From<StringOr<ApprovalFields>> for Approval {
    fn from(form: StringOr<ApprovalFields>) -> Approval {
        match form {
            StringOr::String(mode) => match crate::json::from_value(Value::String(mode.clone())) {
                Ok(mode) => Approval { mode, ..Approval::default() },
                Err(_) => Approval { unknown: Some(mode), ..Approval::default() },
            },
            StringOr::Object(fields) => Approval {
                mode: fields.mode,
                when: fields.when,
                title: fields.title,
                reason: fields.reason,
                edit: fields.edit,
                by: fields.by,
                remember: fields.remember,
                remember_by: fields.remember_by,
                expires_after_seconds: fields.expires_after_seconds,
                on_expiry: fields.on_expiry,
                unknown: None,
            },
        }
    }
}

impl From<Approval> for StringOr<ApprovalFields> {
    fn from(approval: Approval) -> StringOr<ApprovalFields> {
        if let Some(text) = approval.unknown {
            return StringOr::String(text);
        }
        StringOr::Object(ApprovalFields {
            mode: approval.mode,
            when: approval.when,
            title: approval.title,
            reason: approval.reason,
            edit: approval.edit,
            by: approval.by,
            remember: approval.remember,
            remember_by: approval.remember_by,
            expires_after_seconds: approval.expires_after_seconds,
            on_expiry: approval.on_expiry,
        })
    }
}

/// A part of a title or a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPiece<'a> {
    /// Text as it is.
    Text(&'a str),
    /// The value of an argument: `{{args.NAME}}`.
    Argument(&'a str),
}

/// The parts of a title or a reason. An unclosed or otherwise malformed placeholder remains text.
pub fn text_pieces(text: &str) -> Vec<TextPiece<'_>> {
    const OPENS: &str = "{{args.";
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, (name, tail))) =
        rest.split_once(OPENS).and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        pieces.push(TextPiece::Text(before));
        pieces.push(TextPiece::Argument(name.trim()));
        rest = tail;
    }
    pieces.push(TextPiece::Text(rest));
    pieces
}

/// The approval settings for all tools of a folder, an agent or a prompt. The strictest `policy` applies, and
/// the lists in `trusted` are combined. For the other fields, the setting nearest to the call applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approvals {
    /// The calls that need an approval in addition to those of the tools' own settings. Default:
    /// `on-request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// The tools that need no approval under the policy `unless-trusted`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
    /// The effect of a person's message while approvals are open. Only for agents and `bobbin.json`. Default:
    /// `queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_message: Option<OnMessage>,
    /// The time until a question expires, in seconds, at most 30 days. Default: 7 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_after_seconds: Option<u64>,
}

/// The policy for approvals. Later values are stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Policy {
    /// Only the tools' own settings apply.
    #[default]
    OnRequest,
    /// In addition, every tool may request an approval after a failure, as with the mode `on_failure`.
    OnFailure,
    /// In addition, every call needs an approval, unless its tool is in `trusted` or has the tier
    /// `read_only`.
    UnlessTrusted,
    /// Bobbin asks nobody. Calls that need an approval are refused.
    Never,
}

impl Policy {
    /// The policy that applies if several are set, such as by a folder, an agent and a prompt: the strictest.
    pub fn of(said: impl IntoIterator<Item = Option<Policy>>) -> Policy {
        said.into_iter().flatten().max().unwrap_or_default()
    }
}

/// The effect of a person's message while approvals are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnMessage {
    /// The message waits until the approvals are decided.
    #[default]
    Queue,
    /// The open approvals are denied, and the run continues with the message.
    Deny,
}
