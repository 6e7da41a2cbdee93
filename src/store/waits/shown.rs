//! The public form of a wait.

use serde_json::Value;

use crate::json;
use crate::store::amounts::BudgetScope;
use crate::store::meta::Meta;
use crate::store::waits::{AwaitedWorkers, BudgetQuestion, Decision, InputForm, Wait, WaitData, WaitKind};

impl Wait {
    /// The public form. `message`: maps a seq to the id of its message.
    pub(crate) fn to_json(&self, meta: &Meta, message: &dyn Fn(i64) -> String) -> Value {
        let WaitData {
            call,
            title,
            reason,
            by,
            on_expiry,
            edit,
            choices,
            free_text,
            workers,
            budget,
            input,
            ..
        } = &self.asked;
        let call = call.as_ref().map(|call| {
            json!({
                "id": call.id, "tool": call.tool, "tier": call.tier, "args": call.args,
                "digest": self.digest.as_ref().map(|digest| format!("sha256:{digest}")),
                "messageId": self.batch.map(message),
            })
        });
        let mut shown = json!({
            "id": self.public_id(&meta.stem), "kind": self.kind.as_str(), "state": self.state.as_str(),
            "threadId": meta.thread_id, "run": self.run.map(|run| format!("r_{run}")), "batch": self.batch.map(message),
            "call": call, "title": title, "reason": reason, "allows": self.allows(), "by": by,
            "createdAt": self.created_us, "expiresAt": self.deadline_us(), "onExpiry": on_expiry,
            "decision": self.decision.as_ref().map(|decision| &decision.decision), "decidedAt": self.closed_us,
            "decidedBy": self.decision.as_ref().map(Decision::who),
        });
        if let Some(fields) = shown.as_object_mut() {
            if !edit.is_empty() {
                fields.insert("edit".into(), json!(edit));
            }
            if self.kind == WaitKind::Question {
                fields.insert("choices".into(), json!(choices));
                fields.insert("freeText".into(), json!(free_text));
            }
            if let Some(budget) = budget {
                fields.insert("budget".into(), budget.to_json());
            }
            if let Some(InputForm { server, name, form, url }) = input {
                // A tool's question has a name that the application knows.
                match server.as_str() {
                    "" => fields.insert("name".into(), json!(name)),
                    server => fields.insert("server".into(), json!(server)),
                };
                fields.extend(form.clone().map(|form| ("form".to_owned(), form)));
                fields.extend(url.clone().map(|url| ("url".to_owned(), url.into())));
            }
            if let Some(AwaitedWorkers { named, any }) = workers {
                let ids: Vec<&String> = named.iter().map(|(_, id)| id).collect();
                fields.insert("agentIds".into(), json!(ids));
                fields.insert("for".into(), if *any { "any" } else { "all" }.into());
            }
        }
        shown
    }

    /// The decisions that the wait accepts.
    pub(crate) fn allows(&self) -> Vec<&'static str> {
        match self.kind {
            WaitKind::Approval if self.asked.edit.is_empty() => vec!["approve", "deny", "defer"],
            WaitKind::Approval => vec!["approve", "deny", "edit", "defer"],
            WaitKind::Question | WaitKind::ClientTool | WaitKind::Elicitation => {
                vec!["answer", "deny", "defer"]
            }
            // A sign-in is performed, not reported by a decision.
            WaitKind::SignIn => vec!["deny"],
            WaitKind::Retry => vec!["retry"],
            // The parent answers.
            WaitKind::Budget
                if self.asked.budget.as_ref().is_some_and(|asked| asked.scope == BudgetScope::Parent) =>
            {
                Vec::new()
            }
            WaitKind::Budget => vec!["extend", "finish", "deny", "defer"],
            WaitKind::Children | WaitKind::Task => Vec::new(),
        }
    }
}

impl BudgetQuestion {
    fn to_json(&self) -> Value {
        let BudgetQuestion { scope, unit, limit, spent, needed, for_child, .. } = self;
        json!({
            "scope": scope, "unit": unit, "limit": unit.shown(*limit), "spent": unit.shown(*spent),
            "needed": unit.shown(*needed), "forChild": for_child,
            "asks": if *scope == BudgetScope::Parent { "parent" } else { "people" },
        })
    }
}

impl Decision {
    /// The decider, in the public form.
    fn who(&self) -> Value {
        json!({ "scope": self.scope, "fingerprint": self.fingerprint, "actor": self.actor })
    }
}
