//! The consequence of a reached limit: the run asks, fails, or makes one last step.

use crate::definitions::budget::{OnExceeded, Unit};
use crate::definitions::message::ToolResult;
use crate::definitions::prompt::ToolChoice;
use crate::engine::budget::LimitStatus;
use crate::engine::features::Budgets;
use crate::error::Result;
use crate::models::{CachedJson, ChatMessage, ChatRequest, fit};
use crate::store::log_record::Event;
use crate::store::runs::ledger::{BudgetScope, FinalStep};
use crate::store::state::State;
use crate::store::waits::BudgetQuestion;

/// The system message of the last step.
const FINISH: &str = "The budget of this run is used up. Answer now, with what you have.";

/// The result of a call beyond the limit of tool calls.
const NO_CALLS: &str = "Not run: the budget of tool calls is used up.";
/// The result of a call in the last step.
const LAST_STEP: &str = "Not run: the budget of this run is used up.";

/// A limit that forbids the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExceededLimit {
    pub(crate) scope: BudgetScope,
    pub(super) unit: Unit,
    pub(super) limit: i64,
    pub(super) spent: i64,
    /// The minimum that the attempt needs.
    pub(super) needed: i64,
}

/// The consequence for the run.
pub(crate) enum Consequence {
    /// The run makes its last step.
    Finish,
    /// The run fails, with this text for people.
    Fail(String),
}

impl ExceededLimit {
    /// The text for people.
    pub(crate) fn text(&self) -> String {
        let ExceededLimit { scope, unit, limit, spent, needed } = *self;
        let needs = match unit {
            Unit::Cost | Unit::Tokens => {
                format!(", and the next request needs {} at least", unit.shown(needed))
            }
            _ => String::new(),
        };
        let of = match scope {
            BudgetScope::Parent => "The part of the budget that the parent has lent",
            BudgetScope::Run => "The budget of the run",
            BudgetScope::Thread => "The budget of the thread",
        };
        format!(
            "{of} is used up: its {} is {}; {} were used{needs}.",
            unit.field(),
            unit.shown(limit),
            unit.shown(spent),
        )
    }

    /// The form that a wait stores.
    pub(crate) fn question(&self) -> BudgetQuestion {
        let ExceededLimit { scope, unit, limit, spent, needed } = *self;
        BudgetQuestion { scope, unit, limit, spent, needed, for_child: None, of_run: None }
    }

    /// Restores the form that a wait stores.
    pub(crate) fn of(asked: &BudgetQuestion) -> ExceededLimit {
        let BudgetQuestion { scope, unit, limit, spent, needed, .. } = *asked;
        ExceededLimit { scope, unit, limit, spent, needed }
    }

    pub(crate) fn reached(&self) -> LimitStatus {
        LimitStatus { scope: self.scope, unit: self.unit, spent: self.spent, limit: self.limit }
    }

    /// The result of a call that this limit forbids. The run's next step meets the same limit.
    pub(crate) fn result(&self) -> ToolResult {
        let text = format!("Not run: {}", self.text());
        ToolResult { error_code: Some("budget_exceeded".into()), ..ToolResult::error(text) }
    }
}

impl Budgets<'_> {
    /// Handles a limit that is reached before an attempt of the run's own step.
    pub(crate) async fn over_budget(&self, exceeded: ExceededLimit) -> Result<Consequence> {
        let (policy, finishing, denied) = self.read(|state, _| {
            let ledger = state.active().and_then(|run| run.ledger.as_ref());
            Ok(ledger.map_or((OnExceeded::Fail, FinalStep::No, false), |ledger| {
                (ledger.policy.on_exceeded, ledger.finishing, ledger.denied)
            }))
        })?;
        if exceeded.scope == BudgetScope::Parent && finishing == FinalStep::No {
            return self.ask_parent(exceeded).await;
        }
        match policy {
            OnExceeded::Finish if finishing == FinalStep::No => {
                // After a person's decision: nothing was reserved for this step.
                self.finish_soon(if denied { FinalStep::Decided } else { FinalStep::Reserved })?;
                Ok(Consequence::Finish)
            }
            OnExceeded::Ask if finishing == FinalStep::No => self.waits().ask_for_budget(exceeded).await,
            _ => {
                let now = self.host.now_us();
                self.transition(|state, sql| {
                    Event::budget(state.active(), "exceeded", exceeded.reached().to_json("exceeded"))
                        .insert(sql, now)
                })?;
                self.announce_budget("exceeded", &[exceeded.reached()]);
                Ok(Consequence::Fail(exceeded.text()))
            }
        }
    }

    /// Makes the next attempt the run's last.
    fn finish_soon(&self, finishing: FinalStep) -> Result<()> {
        self.transition(|state, sql| {
            let run = state.active_mut()?;
            if let Some(ledger) = &mut run.ledger {
                ledger.finishing = finishing;
            }
            run.update(sql)
        })
    }

    /// Whether the run is in its last step.
    fn finishes(&self) -> Result<bool> {
        self.read(|state, _| {
            let ledger = state.active().and_then(|run| run.ledger.as_ref());
            Ok(ledger.is_some_and(|ledger| ledger.finishing != FinalStep::No))
        })
    }

    /// The request of the last step: without tools, and with a message that explains why.
    pub(crate) fn last_request(&self, request: ChatRequest) -> Result<ChatRequest> {
        if !self.finishes()? {
            return Ok(request);
        }
        let mut request =
            ChatRequest { tools: CachedJson::default(), tool_choice: ToolChoice::Auto, ..request };
        request.messages.push(ChatMessage::System(FINISH.to_owned()).into());
        fit(&mut request.messages);
        Ok(request)
    }

    /// The number of tool calls that may still begin; `None` without a limit.
    pub(crate) fn calls_left(&self) -> Result<Option<usize>> {
        self.read(|state, _| {
            let Some((run, ledger)) = state.active().and_then(|run| Some((run, run.ledger.as_ref()?))) else {
                return Ok(None);
            };
            if ledger.finishing != FinalStep::No {
                return Ok(Some(0));
            }
            let left = BudgetScope::ALL.into_iter().filter_map(|scope| {
                let cap = ledger.cap(scope, Unit::ToolCalls)?;
                Some(cap.saturating_sub(ledger.used_of(scope, run.steps_done()).get(Unit::ToolCalls)))
            });
            Ok(left.min().map(|left| usize::try_from(left).unwrap_or(0)))
        })
    }

    /// Counts calls that begin together, inside a transition.
    pub(crate) fn count_calls(state: &mut State, calls: usize) {
        if let Some(ledger) = state.run.as_mut().and_then(|run| run.ledger.as_mut()) {
            ledger.calls += i64::try_from(calls).unwrap_or(i64::MAX);
        }
    }

    /// Counts a tool call that begins. Returns an error result if a limit forbids it. `apart`: work outside
    /// the run, which is not counted.
    pub(crate) fn count_call(&self, apart: bool) -> Result<Option<ToolResult>> {
        if apart {
            return Ok(None);
        }
        self.read_mut(|state, _| {
            let Some((steps, ledger)) = state.run.as_mut().filter(|run| run.end.is_none()).and_then(|run| {
                let steps = run.steps_done();
                Some((steps, run.ledger.as_mut()?))
            }) else {
                return Ok(None);
            };
            // A refused call counts too, so that the next step detects the limit.
            ledger.calls += 1;
            let over = |scope: BudgetScope| {
                ledger
                    .cap(scope, Unit::ToolCalls)
                    .is_some_and(|cap| ledger.used_of(scope, steps).get(Unit::ToolCalls) > cap)
            };
            let text = match () {
                () if ledger.finishing != FinalStep::No => LAST_STEP,
                () if BudgetScope::ALL.into_iter().any(over) => NO_CALLS,
                () => return Ok(None),
            };
            Ok(Some(ToolResult { error_code: Some("budget_exceeded".into()), ..ToolResult::error(text) }))
        })
    }
}
