//! Answers to waits whose call has the answer as its result.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::definitions::schema;
use crate::engine::waits::lookup::{no_wait, takes};
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::page::json_bytes;
use crate::request::fields::Body;
use crate::store::waits::{Decision, Wait, WaitKind};

#[derive(Debug)]
pub(super) enum Answer {
    Text(String),
    Choice(u64),
    Result {
        result: Value,
        is_error: bool,
    },
    Content(Value),
    /// The requested action is done.
    Done,
}

impl Answer {
    pub(super) fn parse(body: &mut Body) -> Result<Answer> {
        let text = bounded_text(body, "text")?;
        let choice = body.take("choice");
        let result = body.take("result");
        let is_error = body.flag("isError")?;
        if let Some(content) = body.take("content") {
            if text.is_some() || choice.is_some() || result.is_some() {
                return Err(Error::field(
                    "decision",
                    "An answer has one of `text`, `choice`, `result` and `content`.",
                ));
            }
            if json_bytes(&content) > limits::WAIT_DATA_BYTES {
                let text = format!("`content` is over {} bytes.", limits::WAIT_DATA_BYTES);
                return Err(Error::new(Code::TooLarge, text).at("content"));
            }
            return Ok(Answer::Content(content));
        }
        match (text, choice, result) {
            (Some(text), None, None) => Ok(Answer::Text(text)),
            (None, Some(choice), None) => choice.as_u64().map(Answer::Choice).ok_or_else(|| {
                Error::field("choice", "`choice` is the place of the answer in `choices`, from 0.")
            }),
            (None, None, Some(result)) => {
                let bytes = json_bytes(&result);
                if bytes > limits::CONTENT_BYTES {
                    let text = format!("`result` has {bytes} bytes; the limit is {}.", limits::CONTENT_BYTES);
                    return Err(Error::new(Code::TooLarge, text).at("result"));
                }
                Ok(Answer::Result { result, is_error })
            }
            (None, None, None) => Ok(Answer::Done),
            _ => Err(Error::field(
                "decision",
                "An answer has one of `text`, `choice`, `result` and `content`.",
            )),
        }
    }
}

/// The error code of a call that was denied.
const DENIED: &str = "denied";

/// The result of a call that was denied.
pub(super) fn denied(wait: &Wait, reason: Option<&str>) -> ToolResult {
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let text = match (wait.kind, reason) {
        (WaitKind::SignIn, _) => {
            let server = wait.asked.input.as_ref().map_or("", |input| input.server.as_str());
            format!(
                "Nobody signs in to the MCP server \"{server}\": {}",
                reason.unwrap_or("it was declined.")
            )
        }
        (WaitKind::Approval, Some(reason)) => format!("Denied: {reason}"),
        (WaitKind::Approval, None) => "Denied.".to_owned(),
        (_, Some(reason)) => format!("There is no answer: {reason}"),
        (_, None) => "There is no answer: it was declined.".to_owned(),
    };
    ToolResult { error_code: Some(DENIED.into()), ..ToolResult::error(text) }
}

/// The result of an answer.
pub(super) fn answered(wait: &Wait, answer: &Answer, decision: &mut Decision) -> Result<ToolResult> {
    let text = match (wait.kind, answer) {
        (WaitKind::Question, Answer::Text(text))
            if wait.asked.free_text || wait.asked.choices.contains(text) =>
        {
            text.clone()
        }
        (WaitKind::Question, Answer::Text(_)) => {
            return Err(Error::field("text", "This question takes one of its choices.")
                .hint("Send `choice`, from 0."));
        }
        (WaitKind::Question, Answer::Choice(place)) => {
            let chosen = usize::try_from(*place).ok().and_then(|place| wait.asked.choices.get(place));
            chosen.cloned().ok_or_else(|| {
                Error::field("choice", format!("This question has {} choices.", wait.asked.choices.len()))
            })?
        }
        (WaitKind::ClientTool, Answer::Result { result, is_error }) => {
            decision.text = Some(if *is_error { "error" } else { "result" }.to_owned());
            let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
            return Ok(if *is_error {
                ToolResult::error(text)
            } else {
                ToolResult { result: Some(result.clone()), ..ToolResult::success("") }
            });
        }
        (WaitKind::ClientTool, _) => return Err(Error::missing("result")),
        (WaitKind::Question, Answer::Result { .. } | Answer::Content(_)) => {
            return Err(Error::missing("text"));
        }
        _ => return Err(takes(wait, "answer").err().unwrap_or_else(no_wait)),
    };
    decision.text = Some(text.clone());
    Ok(ToolResult::success(text))
}

/// The content that a person filled in for an MCP server, validated by its form; `None` for a wait without a
/// form.
pub(super) fn filled_in(wait: &Wait, answer: &Answer) -> Result<Option<Value>> {
    let form = wait.asked.input.as_ref().and_then(|input| input.form.as_ref());
    match (form, answer) {
        (None, Answer::Done) => Ok(None),
        (None, _) => Err(Error::field(
            "content",
            "There is nothing to fill in: an answer says that the page was visited.",
        )),
        (Some(form), Answer::Content(content)) => {
            let problems = schema::validate(form, content);
            if problems.is_empty() {
                return Ok(Some(content.clone()));
            }
            Err(Error::new(Code::InvalidArgs, schema::lines(&problems)).at("content"))
        }
        (Some(_), _) => {
            Err(Error::missing("content").hint("An answer has what the `form` asks for as `content`."))
        }
    }
}

pub(super) fn bounded_text(body: &mut Body, field: &str) -> Result<Option<String>> {
    let text = body.string(field)?;
    match &text {
        Some(text) if text.len() > limits::ANSWER_BYTES => Err(Error::new(
            Code::TooLarge,
            format!("`{field}` has {} bytes; the limit is {}.", text.len(), limits::ANSWER_BYTES),
        )
        .at(field)),
        _ => Ok(text),
    }
}
