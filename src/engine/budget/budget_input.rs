//! Budgets in requests: of a new thread, of a message, and limits that people change later.

use serde_json::Value;

use crate::access::Caller;
use crate::definitions::budget::{Budget, Limits, Unit, Unpriced};
use crate::engine::budget::LimitStatus;
use crate::engine::budget::allocate::GrantDecision;
use crate::engine::features::Budgets;
use crate::engine::subagents::follow_up::FollowUp;
use crate::engine::waits::budget::within_ceiling;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::request::fields::Body;
use crate::sdk::scope::EntryMode;
use crate::store::log_record::Event;
use crate::store::runs::ledger::BudgetScope;
use crate::store::state::State;
use crate::store::waits;
use crate::store::waits::{Decision, Wait, WaitKind, WaitState};

/// The field `budget` of a request.
pub(crate) fn given_budget(body: &mut Body) -> Result<Option<Budget>> {
    let Some(fields) = body.object("budget")? else { return Ok(None) };
    let budget = crate::json::from_value::<Budget>(Value::Object(fields));
    let budget = budget.map_err(|error| Error::field("budget", format!("`budget`: {error}.")))?;
    for (field, there) in [("ceiling", budget.ceiling.is_some()), ("unpriced", budget.unpriced.is_some())] {
        if there {
            let field = format!("budget.{field}");
            return Err(Error::field(&field, format!("`{field}` belongs to the definitions.")));
        }
    }
    if let Some((field, message)) = budget.problems().into_iter().next() {
        let field = format!("budget.{field}");
        return Err(Error::field(&field, format!("`{field}` {message}.")));
    }
    Ok(Some(budget))
}

/// The body of `PATCH …/budget`.
pub(crate) fn given_limits(text: &str) -> Result<Budget> {
    let mut body = Body::parse(text)?.known(&["run", "thread"])?;
    let mut limits = |name: &str| -> Result<Limits> {
        let fields = body.object(name)?.unwrap_or_default();
        crate::json::from_value(Value::Object(fields))
            .map_err(|error| Error::field(name, format!("`{name}`: {error}.")))
    };
    let budget = Budget { run: limits("run")?, thread: limits("thread")?, ..Budget::default() };
    if let Some((field, message)) = budget.problems().into_iter().next() {
        return Err(Error::field(&field, format!("`{field}` {message}.")));
    }
    if budget.run.is_empty() && budget.thread.is_empty() {
        return Err(Error::missing("run").hint("`run` and `thread` have the limits that are to be set."));
    }
    Ok(budget)
}

/// Sets one limit.
fn set_limit(state: &mut State, scope: BudgetScope, unit: Unit, cap: i64) -> Result<LimitStatus> {
    if scope == BudgetScope::Thread {
        state.meta.budget.get_or_insert_default().raise(unit, cap);
    }
    let mut spent = 0;
    match state.active_mut().ok().and_then(|run| Some((run.steps_done(), run.ledger.as_mut()?))) {
        Some((steps, ledger)) => {
            ledger.set_cap(scope, unit, cap);
            spent = ledger.used_of(scope, steps).get(unit);
        }
        None if scope == BudgetScope::Run => {
            let text = "No run is active that keeps books: nothing limits one that began without a budget.";
            return Err(Error::new(Code::Conflict, text)
                .at("run")
                .hint("`thread` holds from the next run on; a message may bring a `budget` for the run that it starts."));
        }
        None => {}
    }
    Ok(LimitStatus { scope, unit, spent, limit: cap })
}

impl Budgets<'_> {
    /// Refuses a limit on cost if a price of the agent's models is unknown.
    pub(crate) fn check_prices(&self, agent: &str, budget: Option<&Budget>) -> Result<()> {
        let limits_cost = budget.filter(|budget| budget.limits_cost());
        let (Some(budget), Some(agent)) = (limits_cost, self.catalog.agents.get(agent)) else {
            return Ok(());
        };
        if self.catalog.unpriced(agent) == Unpriced::Ignore {
            return Ok(());
        }
        let Some(model) = self.catalog.unpriced_model(agent) else { return Ok(()) };
        let scope = if budget.run.max_cost_usd.is_some() { "run" } else { "thread" };
        let text = format!("The model “{model}” has no price, so that its cost cannot be limited.");
        Err(Error::field(&format!("budget.{scope}.maxCostUsd"), text)
            .hint("Give the model `inputPrice` and `outputPrice`, or the agent's budget `\"unpriced\": \"ignore\"`."))
    }

    /// Sets limits of the active run and of the thread. They apply from the next attempt on. A run that waits
    /// for more continues if the new limit suffices.
    pub(crate) fn set_limits(&self, limits: &Budget, caller: &Caller) -> Result<()> {
        let now = self.host.now_us();
        let (told, closed, entry) = self.transition(|state, sql| {
            state.ensure_not_terminated()?;
            self.check_prices(&state.meta.agent, Some(limits))?;
            let mut told = Vec::new();
            for (scope, of) in [(BudgetScope::Run, &limits.run), (BudgetScope::Thread, &limits.thread)] {
                let ceiling = self.waits().ceiling(scope);
                for (unit, cap) in Unit::ALL.into_iter().zip(of.caps()) {
                    let Some(cap) = cap else { continue };
                    within_ceiling(&ceiling, unit, cap, &format!("{}.{}", scope.as_str(), unit.field()))?;
                    told.push(set_limit(state, scope, unit, cap)?);
                }
            }
            if !limits.thread.is_empty() {
                state.meta.update(sql)?;
            }
            for reached in &told {
                Event::budget(state.active(), "extended", reached.to_json("extended")).insert(sql, now)?;
            }
            let mut resumed = self.lift_wait(state, sql, caller)?;
            if resumed.is_none()
                && let Ok(run) = state.active_mut()
            {
                run.update(sql)?;
            }
            let (mut closed, entry) =
                resumed.take().map_or((Vec::new(), None), |(wait, entry)| (vec![wait], entry));
            let mut applied = FollowUp::default();
            self.serve_children(state, sql, GrantDecision::More(None), &mut applied)?;
            closed.extend(applied.closed);
            Ok((told, closed, entry))
        })?;
        self.announce_budget("extended", &told);
        self.subagents().send_envelopes();
        self.waits().announce_waits(&closed)?;
        if let Some(entry) = entry {
            self.start_flow(entry);
        }
        Ok(())
    }

    /// Closes the budget wait of the active run, if the run has what it needs.
    fn lift_wait(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        caller: &Caller,
    ) -> Result<Option<(Wait, Option<EntryMode>)>> {
        if state.meta.waits == 0 {
            return Ok(None);
        }
        let asks =
            |wait: &Wait| wait.kind == WaitKind::Budget && wait.run.is_some() && !wait.allows().is_empty();
        let Some(mut wait) = waits::open(sql)?.into_iter().find(asks) else { return Ok(None) };
        let lifted = state
            .active()
            .and_then(|run| Some((run.steps_done(), run.ledger.as_ref()?, wait.asked.budget.as_ref()?)));
        let Some((steps, ledger, asked)) = lifted else { return Ok(None) };
        let used = ledger.used_of(asked.scope, steps).and(&ledger.lent).get(asked.unit);
        if ledger
            .cap(asked.scope, asked.unit)
            .is_some_and(|cap| cap.saturating_sub(used) < asked.needed.max(1))
        {
            return Ok(None);
        }
        let decision =
            Decision { decision: "extend".into(), scope: caller.scope.to_string(), ..Decision::default() };
        self.waits().close_wait(state, sql, &mut wait, WaitState::Decided, Some(decision))?;
        let entry = self.waits().resume_after(state, sql, &wait)?;
        Ok(Some((wait, entry)))
    }

    /// Tightens the active run's budget by that of a new message.
    pub(crate) fn tighten_budget(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        budget: Option<&Budget>,
    ) -> Result<()> {
        self.check_prices(&state.meta.agent, budget)?;
        let (Some(budget), Ok(run)) = (budget, state.active_mut()) else { return Ok(()) };
        let Some(ledger) = &mut run.ledger else {
            let text = "A run is active that began without a budget, and cannot be given one.";
            return Err(Error::new(Code::Conflict, text)
                .at("budget")
                .hint("Send the message again when the run has ended, or without `budget`."));
        };
        ledger.tighten(budget);
        run.update(sql)
    }
}
