//! Approvals: calls that need a person's decision before they run (docs/approvals.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::form::StringOr;
use crate::definitions::variable::is_default;

/// Whether calls of a tool need a person's approval. In a file, its mode alone will do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StringOr<ApprovalFields>", into = "StringOr<ApprovalFields>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "ModeOrFields"))]
pub struct Approval {
    /// The condition, as a [`Mode`].
    pub mode: Mode,
    /// JSON Schema of the arguments that need it; with the mode `when`.
    pub when: Option<Value>,
    /// The question for people; may contain `{{args.NAME}}`.
    pub title: Option<String>,
    /// The reason for the question; may contain `{{args.NAME}}`.
    pub reason: Option<String>,
    /// Arguments that the approving person may change.
    pub edit: Vec<String>,
    /// Who may decide.
    pub by: Option<Approver>,
    /// Later calls with the same arguments to which an approval applies.
    pub remember: Remember,
    /// The arguments that must be equal for that; all by default.
    pub remember_by: Vec<String>,
    /// Seconds until the question ends by itself.
    pub expires_after_seconds: Option<u64>,
    /// The outcome of the call after expiry.
    pub on_expiry: Expiry,
    /// A text that is not a mode; the catalog reports it.
    pub unknown: Option<String>,
}

/// As the schema of a file has it.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "a schema's shape")]
enum ModeOrFields {
    Mode(Mode),
    Fields(ApprovalFields),
}

/// When a tool asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Mode {
    /// Never.
    #[default]
    Never,
    /// For every call.
    Always,
    /// If the arguments fit `when`.
    When,
    /// After a result with the `error_code` `needs_approval`; the call is then made once more, with `"approved": true`.
    OnFailure,
}

/// Who may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "By"))]
pub enum Approver {
    /// Whoever may send to the thread.
    Thread,
    /// Its owner, and admins.
    Owner,
    /// Admins.
    Admin,
}

/// How long an approval counts for equal calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Remember {
    /// For this call alone.
    #[default]
    None,
    /// Until the run ends.
    Run,
    /// As long as the thread exists.
    Thread,
}

/// What becomes of a call that nobody decides on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Expiry {
    /// It is denied, and the run goes on.
    #[default]
    Deny,
    /// The run fails.
    Fail,
}

/// The long form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ApprovalFields {
    /// When it is asked for.
    mode: Mode,
    /// JSON Schema of the arguments that need it; with the mode `when`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    when: Option<Value>,
    /// What is asked, for people; may hold `{{args.NAME}}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Why it is asked; may hold `{{args.NAME}}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Arguments that who approves may change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edit: Vec<String>,
    /// Who may decide: `thread`, whoever may send to the thread; `owner`, unless given; `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Approver>,
    /// For which later calls with the same arguments an approval counts, too.
    #[serde(skip_serializing_if = "is_default")]
    remember: Remember,
    /// The arguments that must be the same for that; all unless given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remember_by: Vec<String>,
    /// Seconds until the question ends by itself: 7 days unless given, 30 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_after_seconds: Option<u64>,
    /// What becomes of the call then.
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

/// What holds for all tools of a folder, an agent or a prompt; what is nearest to the call counts, field by field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approvals {
    /// Which calls are asked about, besides what tools say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Tools that `unless-trusted` asks nothing about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
    /// What a person's message does while approvals are open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_message: Option<OnMessage>,
    /// Seconds until a question ends by itself: 7 days unless given, 30 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_after_seconds: Option<u64>,
}

/// Which calls are asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Policy {
    /// Those whose tools say so.
    #[default]
    OnRequest,
    /// Besides, every tool may ask after a failure.
    OnFailure,
    /// Besides, every call that is not of a trusted tool.
    UnlessTrusted,
    /// Nobody is asked: what would need an approval is refused.
    Never,
}

impl Policy {
    /// The policy that applies if several are set, such as by a folder, an agent and a prompt: the strictest.
    pub fn of(said: impl IntoIterator<Item = Option<Policy>>) -> Policy {
        said.into_iter().flatten().max().unwrap_or_default()
    }
}

/// What a person's message does while approvals are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnMessage {
    /// It waits.
    #[default]
    Queue,
    /// They are denied, and the run goes on with it.
    Deny,
}
