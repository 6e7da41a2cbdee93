//! Questions about a call: by its tool, by the policies of folder, agent and prompt, or because the call is a
//! question itself.

use serde_json::Value;

use crate::definitions::approval::{
    Approval, Approver, Expiry, Mode, Policy, Remember, TextPiece, text_pieces,
};
use crate::definitions::tier::tier;
use crate::definitions::{Implementation, Tier, Tool, ask_user, schema};
use crate::engine::definitions::Definitions;
use crate::engine::features::Waits;
use crate::engine::waits::digest;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::store::state::State;
use crate::store::waits;
use crate::store::waits::{ApprovalScope, DecisionScope, OnExpiry, WaitData, WaitKind, WaitingCall};

/// The question that must be answered before a call continues.
pub(crate) enum Question {
    /// A question to ask. The caller opens the wait and parks the run.
    Asked { kind: WaitKind, asked: Box<WaitData>, lasts_us: i64 },
    /// Asking is forbidden; the model receives an error.
    Forbidden,
    /// The question is larger than a wait may be.
    TooLarge,
}

impl Question {
    /// A question, if its size is within the limit.
    fn of(kind: WaitKind, asked: WaitData, lasts_us: i64) -> Question {
        match asked.fits() {
            true => Question::Asked { kind, asked: Box::new(asked), lasts_us },
            false => Question::TooLarge,
        }
    }
}

/// Whether the call was approved already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriorApproval {
    No,
    Yes,
}

impl Waits<'_> {
    /// The next question about a call of this tool; `None` when it may run.
    pub(crate) fn question(
        &self,
        state: &State,
        sql: &dyn Sql,
        definitions: &Definitions<'_>,
        tool: &Tool,
        call: WaitingCall,
        approved: PriorApproval,
    ) -> Result<Option<Question>> {
        if approved == PriorApproval::No
            && let Some(approval) = self.needs_approval(definitions, tool, &call.args)
        {
            if self.policy(definitions) == Policy::Never {
                return Ok(Some(Question::Forbidden));
            }
            if !self.is_remembered(state, sql, tool, &approval, &call.args)? {
                return self.approval(definitions, tool, &approval, call, false).map(Some);
            }
        }
        Ok(match &tool.run {
            Implementation::Native(native) if native == ask_user::NAME => {
                Some(self.to_person(definitions, call))
            }
            Implementation::Client(client) => {
                let seconds = client.expires_after_seconds;
                let lasts_us = seconds.map_or(limits::CLIENT_WAIT_US, in_us);
                let asked = WaitData {
                    title: self.variables().redact(tool.description.clone()),
                    by: DecisionScope::Thread,
                    call: Some(call),
                    ..WaitData::default()
                };
                Some(Question::of(WaitKind::ClientTool, asked, lasts_us))
            }
            _ => None,
        })
    }

    /// The approval that a call needs before it runs.
    fn needs_approval(&self, definitions: &Definitions<'_>, tool: &Tool, args: &Value) -> Option<Approval> {
        let own = tool.approval.clone().unwrap_or_default();
        let asks = match own.mode {
            Mode::Always => true,
            // Arguments that the schema cannot check need an approval, too.
            Mode::When => own.when.as_ref().is_some_and(|when| schema::fits(when, args) != Some(false)),
            Mode::Never | Mode::OnFailure => false,
        };
        let trusts = || {
            let prompt = &definitions.prompt.approvals.trusted;
            let (agent, folder) =
                (&definitions.agent.approvals.trusted, &self.catalog.settings.approvals.trusted);
            prompt.iter().chain(agent).chain(folder).any(|name| *name == tool.name)
        };
        // Asking the user has no effect that needs approval.
        let acts = !matches!(&tool.run, Implementation::Native(native) if native == ask_user::NAME);
        let acts = acts && tier(tool) != Tier::ReadOnly;
        let by_policy = self.policy(definitions) == Policy::UnlessTrusted && acts && !trusts();
        (asks || by_policy).then_some(own)
    }

    /// The question after a result with the code `needs_approval`; `None` if the tool may not request one.
    pub(super) fn question_after_failure(
        &self,
        definitions: &Definitions<'_>,
        tool: &Tool,
        call: WaitingCall,
    ) -> Result<Option<Question>> {
        let own = tool.approval.clone().unwrap_or_default();
        let policy = self.policy(definitions);
        let may = own.mode == Mode::OnFailure || matches!(policy, Policy::OnFailure | Policy::UnlessTrusted);
        match policy {
            _ if !may => Ok(None),
            Policy::Never => Ok(Some(Question::Forbidden)),
            _ => self.approval(definitions, tool, &own, call, true).map(Some),
        }
    }

    /// The strictest policy of folder, agent and prompt.
    fn policy(&self, definitions: &Definitions<'_>) -> Policy {
        let (prompt, agent) = (&definitions.prompt.approvals, &definitions.agent.approvals);
        Policy::of([prompt.policy, agent.policy, self.catalog.settings.approvals.policy])
    }

    fn approval(
        &self,
        definitions: &Definitions<'_>,
        tool: &Tool,
        approval: &Approval,
        call: WaitingCall,
        again: bool,
    ) -> Result<Question> {
        let within = match approval.remember {
            Remember::None => None,
            Remember::Run => Some("run"),
            Remember::Thread => Some("thread"),
        };
        let remembered = |within: &str| -> Result<ApprovalScope> {
            let key = digest::key(tool, &call.args, &approval.remember_by)?;
            Ok(ApprovalScope { within: within.to_owned(), key })
        };
        let remember = within.map(remembered).transpose()?;
        let title = approval
            .title
            .as_ref()
            .map_or_else(|| format!("Run {}", tool.name), |text| filled(text, &call.args));
        let asked = WaitData {
            title: self.variables().redact(title),
            reason: approval.reason.as_ref().map(|text| self.variables().redact(filled(text, &call.args))),
            by: match approval.by {
                Some(Approver::Thread) => DecisionScope::Thread,
                Some(Approver::Admin) => DecisionScope::Admin,
                Some(Approver::Owner) | None => DecisionScope::Owner,
            },
            on_expiry: if approval.on_expiry == Expiry::Fail { OnExpiry::Fail } else { OnExpiry::Deny },
            edit: approval.edit.clone(),
            remember,
            again,
            call: Some(call),
            ..WaitData::default()
        };
        let lasts_us = approval.expires_after_seconds.map_or_else(|| self.timeout_us(definitions), in_us);
        Ok(Question::of(WaitKind::Approval, asked, lasts_us))
    }

    fn to_person(self, definitions: &Definitions<'_>, call: WaitingCall) -> Question {
        let text = |name: &str| call.args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let choices = call.args.get("choices").and_then(Value::as_array).into_iter().flatten();
        let choices: Vec<String> =
            choices.filter_map(Value::as_str).take(ask_user::CHOICES).map(str::to_owned).collect();
        let free_text =
            call.args.get("free_text").and_then(Value::as_bool).unwrap_or(true) || choices.is_empty();
        let title = self.variables().redact(text("question"));
        let asked = WaitData {
            title,
            by: DecisionScope::Thread,
            choices,
            free_text,
            call: Some(call),
            ..WaitData::default()
        };
        Question::of(WaitKind::Question, asked, self.timeout_us(definitions))
    }

    /// The timeout of a wait unless its tool sets one. The level nearest to the call takes precedence.
    pub(crate) fn timeout_us(&self, definitions: &Definitions<'_>) -> i64 {
        let (prompt, agent) = (&definitions.prompt.approvals, &definitions.agent.approvals);
        let folder = &self.catalog.settings.approvals;
        let said = [prompt, agent, folder].into_iter().find_map(|of| of.expires_after_seconds);
        said.map_or(limits::WAIT_DEFAULT_US, in_us)
    }

    fn is_remembered(
        &self,
        state: &State,
        sql: &dyn Sql,
        tool: &Tool,
        approval: &Approval,
        args: &Value,
    ) -> Result<bool> {
        if approval.remember == Remember::None || state.meta.wait_next == 1 {
            return Ok(false);
        }
        let key = digest::key(tool, args, &approval.remember_by)?;
        waits::is_remembered(sql, &key, state.active().map(|run| run.id))
    }
}

/// Seconds of a definition in microseconds, bounded.
fn in_us(seconds: u64) -> i64 {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| seconds.checked_mul(limits::SECOND_US))
        .unwrap_or(limits::WAIT_MAX_US)
        .min(limits::WAIT_MAX_US)
}

/// A title or a reason with its argument placeholders filled in.
fn filled(text: &str, args: &Value) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in text_pieces(text) {
        match piece {
            TextPiece::Text(text) => out.push_str(text),
            TextPiece::Argument(name) => match args.get(name) {
                Some(Value::String(text)) => out.push_str(text),
                Some(Value::Null) | None => out.push_str("(none)"),
                Some(other) => out.push_str(&other.to_string()),
            },
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::json;

    use super::filled;

    #[test]
    fn a_title_names_arguments() {
        let args = json!({ "amount": 120, "to": "Ann {{args.amount}}", "note": null });
        for (title, expected) in [
            ("Pay {{args.amount}} EUR to {{ args.to }}", "Pay 120 EUR to {{ args.to }}"),
            ("Pay {{args.amount}} EUR to {{args.to}}", "Pay 120 EUR to Ann {{args.amount}}"),
            ("{{args.note}}, {{args.missing}}", "(none), (none)"),
            ("{{args.amount", "{{args.amount"),
            ("plain", "plain"),
        ] {
            assert_eq!(filled(title, &args), expected);
        }
    }
}
