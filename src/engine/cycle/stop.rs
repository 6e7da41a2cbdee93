//! The end of a turn, a session or a run (spec §21): the rules in their order, in one table.

use serde_json::Value;

use crate::definitions::message::{Role, ToolCall, ToolStatus};
use crate::definitions::{AgentKind, SessionTool, SideConfig};
use crate::limits;
use crate::store::messages::{Row, SharedRow};
use crate::store::runs::Run;
use crate::store::runs::end::Reason;
use crate::store::side::{CodeRequest, Side};

/// The facts when a step's calls are done.
#[derive(Clone, Copy)]
pub(in crate::engine) struct StepFacts<'a> {
    pub(in crate::engine) kind: AgentKind,
    /// The side that acted, and its configuration.
    pub(in crate::engine) active: Side,
    pub(in crate::engine) side: &'a SideConfig,
    pub(in crate::engine) asked: Option<CodeRequest>,
    pub(in crate::engine) reply: &'a Row,
    /// The turn's rows, oldest first, with the results of the reply's calls.
    pub(in crate::engine) history: &'a [SharedRow],
}

/// The next action after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum NextAction {
    /// Another step of the same turn.
    Step,
    /// The turn is over, and the other side acts.
    SwitchSide,
    /// The turn is over, and the run with it.
    EndTurn(Reason),
    /// The session is over, by the reply's call with this index.
    EndSession(Reason, usize),
    /// The run is over in the middle of a turn; with the text for people.
    EndRun(Reason, Option<String>),
}

/// A rule: its next action, if it applies.
type Rule = fn(&StepFacts<'_>) -> Option<NextAction>;

/// The rules after a step; the first that applies decides. The caps come before the next step ([`cap`]).
const RULES: [Rule; 9] = [
    // The session's tools, failure first.
    session_fail,
    session_stop,
    // Requests of code.
    stopped_by_code,
    forced_turn,
    // The end of the side's turn.
    stop_tool,
    stop_on_response,
    either_turn,
    // A model without progress.
    empty_reply,
    repeated_tool_error,
];

/// The next action of the first rule that applies.
pub(in crate::engine) fn evaluate(facts: &StepFacts<'_>) -> NextAction {
    RULES.iter().find_map(|rule| rule(facts)).unwrap_or(NextAction::Step)
}

/// A successful call of the tool that ends the session as a failure.
fn session_fail(facts: &StepFacts<'_>) -> Option<NextAction> {
    succeeded(facts, facts.side.session_fail.as_ref()?)
        .map(|index| NextAction::EndSession(Reason::SessionFail, index))
}

/// A successful call of the tool that ends the session as a success.
fn session_stop(facts: &StepFacts<'_>) -> Option<NextAction> {
    succeeded(facts, facts.side.session_stop.as_ref()?)
        .map(|index| NextAction::EndSession(Reason::SessionStop, index))
}

/// The index of the first successful call of a tool.
fn succeeded(facts: &StepFacts<'_>, tool: &SessionTool) -> Option<usize> {
    let result = |call: &ToolCall| {
        facts.history.iter().find(|row| {
            row.role == Role::Tool
                && row.seq > facts.reply.seq
                && row.tool_call_id.as_deref() == Some(&call.id)
        })
    };
    let success = |call: &ToolCall| result(call).is_some_and(|row| row.status == Some(ToolStatus::Success));
    facts.reply.calls.iter().position(|call| call.name == tool.name && success(call))
}

/// `execution.stop()`.
fn stopped_by_code(facts: &StepFacts<'_>) -> Option<NextAction> {
    (facts.asked == Some(CodeRequest::Stop)).then_some(NextAction::EndRun(Reason::StoppedByCode, None))
}

/// `execution.forceTurn()`: the acting side continues whatever its reply was, or the other side takes over.
fn forced_turn(facts: &StepFacts<'_>) -> Option<NextAction> {
    match (facts.kind, facts.asked?) {
        (AgentKind::DualAi, CodeRequest::Turn(side)) if side == facts.active => Some(NextAction::Step),
        (AgentKind::DualAi, CodeRequest::Turn(_)) => Some(NextAction::SwitchSide),
        // A person's turn cannot be forced.
        (AgentKind::AiHuman, CodeRequest::Turn(_)) | (_, CodeRequest::Stop) => None,
    }
}

/// A call of the side's stop tool, successful or not (spec §35.3).
fn stop_tool(facts: &StepFacts<'_>) -> Option<NextAction> {
    let tool = facts.side.stop_tool.as_ref()?;
    let called = facts.reply.calls.iter().any(|call| call.name == *tool);
    called.then(|| turn_over(facts, Reason::StopTool))
}

/// A text without calls, if that ends a turn.
fn stop_on_response(facts: &StepFacts<'_>) -> Option<NextAction> {
    let text = facts.reply.calls.is_empty() && !facts.reply.is_empty_reply();
    (text && facts.side.stop_on_response).then(|| turn_over(facts, Reason::StopOnResponse))
}

/// In a dual agent, a side that cannot end its turn hands over after each step (spec §20.1).
fn either_turn(facts: &StepFacts<'_>) -> Option<NextAction> {
    let endless = !facts.side.stop_on_response && facts.side.stop_tool.is_none();
    (endless && facts.kind == AgentKind::DualAi && !facts.reply.is_empty_reply())
        .then_some(NextAction::SwitchSide)
}

fn turn_over(facts: &StepFacts<'_>, reason: Reason) -> NextAction {
    match facts.kind {
        AgentKind::AiHuman => NextAction::EndTurn(reason),
        AgentKind::DualAi => NextAction::SwitchSide,
    }
}

/// Neither text nor calls, for the second time.
fn empty_reply(facts: &StepFacts<'_>) -> Option<NextAction> {
    let reply = facts.reply;
    let before = facts.history.iter().rev().find(|row| row.seq < reply.seq)?;
    (reply.is_empty_reply() && before.is_empty_reply()).then(|| {
        let text = "The model gave an empty answer twice, so the run was ended.".to_owned();
        NextAction::EndRun(Reason::EmptyReply, Some(text))
    })
}

/// The same error of a tool too often in a row.
fn repeated_tool_error(facts: &StepFacts<'_>) -> Option<NextAction> {
    if facts.reply.calls.is_empty() {
        return None;
    }
    let (error, times) = repeated_error(facts.history)?;
    (times >= limits::REPEATED_ERRORS).then(|| {
        let text =
            format!("The run was stopped: a tool failed {times} times in a row with the same error: {error}");
        NextAction::EndRun(Reason::RepeatedToolError, Some(text))
    })
}

/// The error of the newest tool results, and its number of repetitions in a row.
fn repeated_error(history: &[SharedRow]) -> Option<(&str, u32)> {
    let mut results = history.iter().rev().filter(|row| row.status.is_some());
    let error = |row: &'_ SharedRow| row.status == Some(ToolStatus::Error);
    let newest = results.next().filter(|row| error(row))?;
    let text = newest.content.as_deref().unwrap_or_default();
    let same = results
        .take_while(|row| error(row) && normal(row.content.as_deref().unwrap_or_default()) == normal(text));
    Some((text, 1 + u32::try_from(same.count()).unwrap_or(u32::MAX)))
}

/// An error without the parts that vary between calls: digits and spacing.
fn normal(text: &str) -> String {
    let digits_gone = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    let mut normal = String::with_capacity(text.len());
    for c in digits_gone {
        let repeats = normal.ends_with(c) && (c == '0' || c.is_whitespace());
        if !repeats {
            normal.push(c);
        }
    }
    normal
}

/// The reply's text from the stop tool's response property.
pub(in crate::engine) fn response(side: &SideConfig, calls: &[ToolCall]) -> Option<String> {
    let (tool, property) = (side.stop_tool.as_deref()?, side.stop_tool_response_property.as_deref()?);
    let call = calls.iter().find(|call| call.name == tool)?;
    let arguments: Value = crate::json::from_str(&call.arguments).ok()?;
    match arguments.get(property)? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// A cap that forbids another step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Cap {
    /// The limit of the side.
    Side(u32),
    /// The limit on turns of the session.
    Session(u32),
    /// The limit of the runtime.
    Total,
}

/// The limit that forbids the active side another step: the side's, the session's or the runtime's.
pub(in crate::engine) fn cap(run: &mut Run, side: &SideConfig, session_turns: Option<u32>) -> Option<Cap> {
    let own = *run.own_steps();
    let of_side = side.max_steps.filter(|max| own >= *max).map(Cap::Side);
    let of_session = session_turns.filter(|max| run.turns >= *max).map(Cap::Session);
    let total = (run.steps >= limits::RUN_STEPS).then_some(Cap::Total);
    of_side.or(of_session).or(total)
}

impl Cap {
    pub(in crate::engine) const fn reason(self) -> Reason {
        match self {
            Cap::Side(_) => Reason::MaxSteps,
            Cap::Session(_) => Reason::MaxSessionTurns,
            Cap::Total => Reason::MaxTotalSteps,
        }
    }

    pub(in crate::engine) fn message(self) -> String {
        match self {
            Cap::Side(max) => {
                format!("The run was ended after {max} steps, the most that this agent may take.")
            }
            Cap::Session(max) => {
                format!("The session was ended after {max} turns, the most that it may have.")
            }
            Cap::Total => {
                format!(
                    "The run was ended after {} steps, the most that any run may take.",
                    limits::RUN_STEPS
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::Agent;

    fn call(name: &str) -> ToolCall {
        ToolCall {
            id: format!("call_{name}"),
            name: name.into(),
            arguments: "{}".into(),
            ..ToolCall::default()
        }
    }

    fn result(seq: i64, call: &ToolCall, status: ToolStatus) -> SharedRow {
        let row = Row::new(seq, Role::Tool, "No.", 0);
        SharedRow::new(Row { tool_call_id: Some(call.id.clone()), status: Some(status), ..row })
    }

    /// A step to which every rule applies.
    struct Story {
        agent: Agent,
        asked: Option<CodeRequest>,
        reply: Row,
        history: Vec<SharedRow>,
    }

    impl Story {
        fn new(kind: &str) -> Story {
            let agent = crate::json::from_value(crate::json!({
                "type": kind, "sideA": { "prompt": "p", "stopTool": "done",
                    "sessionStop": "finish", "sessionFail": "give_up" },
                "sideB": { "prompt": "p" },
            }));
            let calls = vec![call("finish"), call("give_up"), call("done")];
            let old = |seq| result(seq, &call("x"), ToolStatus::Error);
            let mut history: Vec<SharedRow> = (1..=8).map(old).collect();
            history.push(result(301, &calls[0], ToolStatus::Success));
            history.push(result(302, &calls[1], ToolStatus::Success));
            history.push(result(303, &calls[2], ToolStatus::Success));
            let reply = Row { calls, ..Row::new(300, Role::Assistant, "Well.", 0) };
            Story { agent: agent.unwrap(), asked: Some(CodeRequest::Stop), reply, history }
        }

        fn next_action(&self) -> NextAction {
            evaluate(&StepFacts {
                kind: self.agent.kind,
                active: Side::A,
                side: &self.agent.side_a,
                asked: self.asked,
                reply: &self.reply,
                history: &self.history,
            })
        }

        fn fails(&mut self, index: usize) {
            let call = self.reply.calls[index].clone();
            self.history[8 + index] = result(301 + index as i64, &call, ToolStatus::Error);
        }
    }

    #[test]
    fn the_rules_apply_in_the_order_of_the_specification() {
        for (kind, switch) in [("ai_human", None), ("dual_ai", Some(NextAction::SwitchSide))] {
            let mut story = Story::new(kind);
            assert_eq!(story.next_action(), NextAction::EndSession(Reason::SessionFail, 1));
            story.fails(1);
            assert_eq!(story.next_action(), NextAction::EndSession(Reason::SessionStop, 0));
            story.fails(0);
            assert_eq!(story.next_action(), NextAction::EndRun(Reason::StoppedByCode, None));
            story.asked = Some(CodeRequest::Turn(Side::A));
            let ended = |reason| switch.clone().unwrap_or(NextAction::EndTurn(reason));
            let forced =
                if kind == "dual_ai" { NextAction::Step } else { NextAction::EndTurn(Reason::StopTool) };
            assert_eq!(story.next_action(), forced);
            story.asked = Some(CodeRequest::Turn(Side::B));
            assert_eq!(story.next_action(), ended(Reason::StopTool));
            story.asked = None;
            // The stop tool need not succeed.
            story.fails(2);
            assert_eq!(story.next_action(), ended(Reason::StopTool));
            story.reply.calls.pop();
            let NextAction::EndRun(Reason::RepeatedToolError, Some(text)) = story.next_action() else {
                panic!("{:?}", story.next_action());
            };
            assert!(text.contains("No."), "{text}");
            story.reply.calls.clear();
            assert_eq!(story.next_action(), ended(Reason::StopOnResponse));
            story.agent.side_a.stop_on_response = false;
            assert_eq!(story.next_action(), NextAction::Step);
            story.agent.side_a.stop_tool = None;
            assert_eq!(story.next_action(), switch.clone().unwrap_or(NextAction::Step));
            story.reply.content = None;
            assert_eq!(story.next_action(), NextAction::Step);
            story.history.push(SharedRow::new(Row::new(299, Role::Assistant, " ", 0)));
            assert!(matches!(story.next_action(), NextAction::EndRun(Reason::EmptyReply, Some(_))));
        }
    }

    #[test]
    fn the_caps_apply_in_their_order() {
        let story = Story::new("dual_ai");
        let side = SideConfig { max_steps: Some(3), ..story.agent.side_a };
        let mut run = Run::start(None, (0, 0), Side::B, 1, crate::store::runs::Counters::Reset, (2, 0));
        run.side_steps = [9, 3];
        run.turns = 4;
        run.steps = limits::RUN_STEPS;
        assert_eq!(cap(&mut run, &side, Some(4)), Some(Cap::Side(3)));
        run.side_steps = [9, 2];
        assert_eq!(cap(&mut run, &side, Some(4)), Some(Cap::Session(4)));
        assert_eq!(cap(&mut run, &side, Some(5)), Some(Cap::Total));
        assert_eq!(cap(&mut run, &side, None), Some(Cap::Total));
        run.steps -= 1;
        assert_eq!(cap(&mut run, &side, None), None);
    }
}
