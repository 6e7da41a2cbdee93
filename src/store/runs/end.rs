//! How and why a run ended.

/// The outcome of a run, for the client that sent its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Completed,
    Failed,
    Stopped,
}

impl Outcome {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Stopped => "stopped",
        }
    }
}

/// The reason of a run's end (spec §21); each belongs to one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    StopOnResponse,
    StopTool,
    SessionStop,
    SessionFail,
    MaxSteps,
    MaxTotalSteps,
    MaxSessionTurns,
    RepeatedToolError,
    EmptyReply,
    ModelError,
    RecoveryExhausted,
    HookBlocked,
    DefinitionMissing,
    StrictDiagnostics,
    DefinitionChanged,
    StoppedByUser,
    StoppedByCode,
    StoppedByParent,
    Terminated,
    /// No person decided in time, and the definition makes the run fail then.
    WaitExpired,
    /// A limit was reached.
    BudgetExceeded,
    /// A limit was reached, and the model has given its last answer.
    BudgetFinished,
}

impl Reason {
    const ALL: [Reason; 22] = [
        Reason::StopOnResponse,
        Reason::StopTool,
        Reason::SessionStop,
        Reason::SessionFail,
        Reason::MaxSteps,
        Reason::MaxTotalSteps,
        Reason::MaxSessionTurns,
        Reason::RepeatedToolError,
        Reason::EmptyReply,
        Reason::ModelError,
        Reason::RecoveryExhausted,
        Reason::HookBlocked,
        Reason::DefinitionMissing,
        Reason::StrictDiagnostics,
        Reason::DefinitionChanged,
        Reason::StoppedByUser,
        Reason::StoppedByCode,
        Reason::StoppedByParent,
        Reason::Terminated,
        Reason::WaitExpired,
        Reason::BudgetExceeded,
        Reason::BudgetFinished,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Reason::StopOnResponse => "stop_on_response",
            Reason::StopTool => "stop_tool",
            Reason::SessionStop => "session_stop",
            Reason::SessionFail => "session_fail",
            Reason::MaxSteps => "max_steps",
            Reason::MaxTotalSteps => "max_total_steps",
            Reason::MaxSessionTurns => "max_session_turns",
            Reason::RepeatedToolError => "repeated_tool_error",
            Reason::EmptyReply => "empty_reply",
            Reason::ModelError => "model_error",
            Reason::RecoveryExhausted => "recovery_exhausted",
            Reason::HookBlocked => "hook_blocked",
            Reason::DefinitionMissing => "definition_missing",
            Reason::StrictDiagnostics => "strict_diagnostics",
            Reason::DefinitionChanged => "definition_changed",
            Reason::StoppedByUser => "stopped_by_user",
            Reason::StoppedByCode => "stopped_by_code",
            Reason::StoppedByParent => "stopped_by_parent",
            Reason::Terminated => "terminated",
            Reason::WaitExpired => "wait_expired",
            Reason::BudgetExceeded => "budget_exceeded",
            Reason::BudgetFinished => "budget_finished",
        }
    }

    /// Whether the session ends with the run (spec §21); only then do its turns start again at zero.
    pub(super) const fn ends_session(self) -> bool {
        matches!(self, Reason::SessionStop | Reason::SessionFail | Reason::MaxSessionTurns)
    }

    pub(super) fn parse(text: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.as_str() == text)
    }

    pub(crate) const fn outcome(self) -> Outcome {
        match self {
            Reason::StopOnResponse | Reason::StopTool | Reason::SessionStop | Reason::BudgetFinished => {
                Outcome::Completed
            }
            Reason::StoppedByUser | Reason::StoppedByCode | Reason::StoppedByParent | Reason::Terminated => {
                Outcome::Stopped
            }
            Reason::SessionFail
            | Reason::MaxSteps
            | Reason::MaxTotalSteps
            | Reason::MaxSessionTurns
            | Reason::RepeatedToolError
            | Reason::EmptyReply
            | Reason::ModelError
            | Reason::RecoveryExhausted
            | Reason::HookBlocked
            | Reason::DefinitionMissing
            | Reason::DefinitionChanged
            | Reason::WaitExpired
            | Reason::BudgetExceeded
            | Reason::StrictDiagnostics => Outcome::Failed,
        }
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) reason: Reason,
    /// Text for people; only for failures.
    pub(crate) message: Option<String>,
    pub(crate) at_us: i64,
}
