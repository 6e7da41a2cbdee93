//! The public form of a wait.

use crate::protocols::responses::budgets::BudgetScope;
use crate::protocols::responses::waits as responses;
use crate::protocols::responses::waits::{BudgetExtender, DecidedBy, WaitingBudget, WorkersNeeded};
use crate::store::meta::Meta;
use crate::store::waits::{BudgetQuestion, Decision, Wait, WaitKind, WaitingCall};

impl Wait {
    /// The public form. `message`: maps a seq to the id of its message.
    pub(crate) fn response<'a>(
        &'a self,
        meta: &'a Meta,
        message: &dyn Fn(i64) -> String,
    ) -> responses::Wait<'a> {
        let asked = &self.asked;
        let question = self.kind == WaitKind::Question;
        let input = asked.input.as_ref();
        let server = input.map(|input| input.server.as_str());
        responses::Wait {
            id: self.public_id(&meta.stem),
            kind: self.kind,
            state: self.state,
            thread_id: &meta.thread_id,
            run: self.run.map(|run| format!("r_{run}")),
            batch: self.batch.map(message),
            call: asked.call.as_ref().map(|call| self.call_response(call, message)),
            title: &asked.title,
            reason: asked.reason.as_deref(),
            allows: self.allows(),
            by: asked.by,
            created_at: self.created_us,
            expires_at: self.deadline_us(),
            on_expiry: asked.on_expiry,
            decision: self.decision.as_ref().map(|decision| decision.decision.as_str()),
            decided_at: self.closed_us,
            decided_by: self.decision.as_ref().map(Decision::who),
            edit: Some(asked.edit.as_slice()).filter(|edit| !edit.is_empty()),
            choices: question.then_some(asked.choices.as_slice()),
            free_text: question.then_some(asked.free_text),
            budget: asked.budget.as_ref().map(BudgetQuestion::response),
            // A tool's question has a name that the application knows.
            name: input.filter(|input| input.server.is_empty()).map(|input| input.name.as_str()),
            server: server.filter(|server| !server.is_empty()),
            form: input.and_then(|input| input.form.as_ref()),
            url: input.and_then(|input| input.url.as_deref()),
            agent_ids: asked
                .workers
                .as_ref()
                .map(|workers| workers.named.iter().map(|(_, id)| id.as_str()).collect()),
            wanted: asked.workers.as_ref().map(|workers| match workers.any {
                true => WorkersNeeded::Any,
                false => WorkersNeeded::All,
            }),
        }
    }

    fn call_response<'a>(
        &self,
        call: &'a WaitingCall,
        message: &dyn Fn(i64) -> String,
    ) -> responses::WaitingCall<'a> {
        responses::WaitingCall {
            id: &call.id,
            tool: &call.tool,
            tier: call.tier,
            args: &call.args,
            digest: self.digest.as_ref().map(|digest| format!("sha256:{digest}")),
            message_id: self.batch.map(message),
        }
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
    fn response(&self) -> WaitingBudget<'_> {
        let BudgetQuestion { scope, unit, limit, spent, needed, for_child, .. } = self;
        WaitingBudget {
            scope: *scope,
            unit: *unit,
            limit: unit.shown(*limit),
            spent: unit.shown(*spent),
            needed: unit.shown(*needed),
            for_child: for_child.as_deref(),
            asks: match scope {
                BudgetScope::Parent => BudgetExtender::Parent,
                BudgetScope::Run | BudgetScope::Thread => BudgetExtender::People,
            },
        }
    }
}

impl Decision {
    /// The decider, in the public form.
    fn who(&self) -> DecidedBy<'_> {
        DecidedBy {
            scope: &self.scope,
            fingerprint: self.fingerprint.as_deref(),
            actor: self.actor.as_deref(),
        }
    }
}
