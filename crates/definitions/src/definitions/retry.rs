//! Retry policies, one for each kind of work (docs/models.md). For each field the first source that sets it applies.

use serde::{Deserialize, Serialize};

use crate::definitions::variable::is_default;
use crate::limits;

/// The retry policies of a run, a prompt or a folder, by kind of work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retry {
    /// The policy for requests to models.
    #[serde(skip_serializing_if = "is_default")]
    pub model: Policy,
    /// The policy for requests to embedding models.
    #[serde(skip_serializing_if = "is_default")]
    pub embedding: Policy,
    /// The policy for calls of `idempotent` tools. Bobbin never repeats calls of other tools.
    #[serde(skip_serializing_if = "is_default")]
    pub tool: Policy,
    /// The policy for requests to memories. It has no effect, because the runtime makes no such requests.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: Policy,
    /// The policy for calls of MCP servers.
    #[serde(skip_serializing_if = "is_default")]
    pub mcp: Policy,
}

impl Retry {
    /// What it says of a kind of work.
    pub const fn of(&self, kind: RetryKind) -> &Policy {
        match kind {
            RetryKind::Model => &self.model,
            RetryKind::Embedding => &self.embedding,
            RetryKind::Tool => &self.tool,
            RetryKind::Memory => &self.memory,
            RetryKind::Mcp => &self.mcp,
        }
    }

    /// What is wrong with it: field, such as `model.maxAttempts`, and why.
    pub fn problems(&self) -> Vec<(String, String)> {
        let kinds = RetryKind::ALL.into_iter();
        kinds
            .flat_map(|kind| {
                let problems = self.of(kind).problems().into_iter();
                problems.map(move |(field, message)| (format!("{}.{field}", kind.as_str()), message))
            })
            .collect()
    }
}

/// What is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryKind {
    /// A request to a model.
    Model,
    /// A request to a model that embeds.
    Embedding,
    /// A call of a function tool.
    Tool,
    /// A request to memory.
    Memory,
    /// A call of an MCP server.
    Mcp,
}

impl RetryKind {
    /// All of them.
    pub const ALL: [RetryKind; 5] =
        [RetryKind::Model, RetryKind::Embedding, RetryKind::Tool, RetryKind::Memory, RetryKind::Mcp];

    /// As definitions have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            RetryKind::Model => "model",
            RetryKind::Embedding => "embedding",
            RetryKind::Tool => "tool",
            RetryKind::Memory => "memory",
            RetryKind::Mcp => "mcp",
        }
    }

    /// Attempts where nobody says.
    const fn attempts(self) -> u32 {
        match self {
            RetryKind::Tool => 1,
            _ => limits::MODEL_ATTEMPTS,
        }
    }
}

/// The retry policy for one kind of work. A missing field comes from the next policy, in this order: run,
/// prompt, `bobbin.json`. The policy in the file of a model, a tool or a server applies only if none of these
/// has a policy for the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Policy {
    /// The maximum number of attempts, 1 to 10, including the first one. Default: 2, or 1 for tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The pause before the second attempt, in milliseconds, at most 24 hours. It doubles before each later
    /// attempt. Default: 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    /// The longest pause, in milliseconds, at most 24 hours. Default: 60,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_backoff_ms: Option<u64>,
    /// The randomness of pauses. It prevents many threads from retrying at the same time. Default: `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// The failures that are retried. Default: all four, but `timeout` only for HTTP 408. After silence,
    /// Bobbin uses the next fallback at once, unless a policy names `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<Vec<RetryOn>>,
    /// The way to wait during a pause. Default: `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<RetryMode>,
    /// The time limit of one attempt, in milliseconds, at most 3,600,000. It applies even if a part of the
    /// response has arrived. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Policy {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Policy::default()
    }

    /// What is wrong with it: field and why.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if self.max_attempts.is_some_and(|n| n == 0 || n > limits::ATTEMPTS_MAX) {
            let text =
                format!("must be from 1 (no retry) to {}, the first attempt included", limits::ATTEMPTS_MAX);
            problems.push(("maxAttempts", text));
        }
        for (field, ms) in [("backoffMs", self.backoff_ms), ("maxBackoffMs", self.max_backoff_ms)] {
            if ms.is_some_and(|ms| ms > limits::BACKOFF_MAX_MS) {
                problems.push((field, format!("must be at most {} (24 hours)", limits::BACKOFF_MAX_MS)));
            }
        }
        if let (Some(backoff), Some(most)) = (self.backoff_ms, self.max_backoff_ms)
            && backoff > most
        {
            problems.push(("backoffMs", format!("is more than maxBackoffMs ({most})")));
        }
        if self.timeout_ms.is_some_and(|ms| ms == 0 || ms > limits::ATTEMPT_MAX_MS) {
            problems.push(("timeoutMs", format!("must be from 1 to {} (one hour)", limits::ATTEMPT_MAX_MS)));
        }
        problems
    }
}

/// The randomness of pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Jitter {
    /// A random time between zero and the full pause.
    #[default]
    Full,
    /// The full pause.
    None,
}

/// A failure that may be temporary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RetryOn {
    /// HTTP 408, or silence.
    Timeout,
    /// HTTP 429.
    RateLimit,
    /// No connection, or a connection that broke.
    Network,
    /// HTTP 409 or 5xx, or an error that the provider reports as its own.
    ServerError,
}

impl RetryOn {
    /// What an HTTP status means; `None` where the same request would fail again.
    pub const fn of_status(status: u16) -> Option<RetryOn> {
        match status {
            408 => Some(RetryOn::Timeout),
            429 => Some(RetryOn::RateLimit),
            409 | 500.. => Some(RetryOn::ServerError),
            _ => None,
        }
    }
}

/// The way to wait during a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RetryMode {
    /// The thread stays in memory during the pause. The pause is at most one minute.
    #[default]
    Wait,
    /// A pause of more than 30 seconds parks the run, for up to 24 hours. A parked run costs nothing.
    Park,
}

/// Which place a policy comes from; as the log names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetrySource {
    /// The request that started the run.
    Run,
    /// The prompt.
    Prompt,
    /// `bobbin.json`.
    Folder,
    /// The file of the model or tool itself.
    Definition,
    /// None of them.
    BuiltIn,
}

/// The places that may speak of a kind of work.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicySources<'a> {
    /// Of the run.
    pub run: Option<&'a Retry>,
    /// Of the prompt.
    pub prompt: Option<&'a Retry>,
    /// Of the folder.
    pub folder: Option<&'a Retry>,
    /// Of the definition's file.
    pub definition: Option<&'a Policy>,
}

/// The resulting policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectivePolicy {
    /// Attempts, the first one included.
    pub max_attempts: u32,
    /// Microseconds before the second attempt.
    pub backoff_us: i64,
    /// Microseconds that a pause has at most.
    pub max_backoff_us: i64,
    /// Whether pauses are random.
    pub jitter: Jitter,
    /// The failures that are tried again, where a place names them.
    pub retry_on: Option<Vec<RetryOn>>,
    /// Where a pause is spent.
    pub mode: RetryMode,
    /// Microseconds that one attempt may take.
    pub timeout_us: Option<i64>,
    /// The first place with a policy for this kind.
    pub source: RetrySource,
}

impl EffectivePolicy {
    /// Merges the policies field by field: run, prompt, folder. The definition's own policy applies only if
    /// none of these has a policy for the kind. Built-in values fill the rest.
    pub fn of(kind: RetryKind, places: PolicySources<'_>) -> EffectivePolicy {
        let said = [
            (RetrySource::Run, places.run.map(|retry| retry.of(kind))),
            (RetrySource::Prompt, places.prompt.map(|retry| retry.of(kind))),
            (RetrySource::Folder, places.folder.map(|retry| retry.of(kind))),
        ];
        let mut said: Vec<(RetrySource, &Policy)> = said
            .into_iter()
            .filter_map(|(source, policy)| Some((source, policy.filter(|policy| !policy.is_empty())?)))
            .collect();
        if said.is_empty() {
            let own = places.definition.filter(|policy| !policy.is_empty());
            said.extend(own.map(|policy| (RetrySource::Definition, policy)));
        }
        let us = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX / 1000).saturating_mul(1000);
        EffectivePolicy {
            max_attempts: first(&said, |policy| policy.max_attempts).unwrap_or_else(|| kind.attempts()),
            backoff_us: first(&said, |policy| policy.backoff_ms).map_or(limits::BACKOFF_US, us),
            max_backoff_us: first(&said, |policy| policy.max_backoff_ms)
                .map_or(limits::RETRY_AFTER_MAX_US, us),
            jitter: first(&said, |policy| policy.jitter).unwrap_or_default(),
            retry_on: first(&said, |policy| policy.retry_on.clone()),
            mode: first(&said, |policy| policy.mode).unwrap_or_default(),
            timeout_us: first(&said, |policy| policy.timeout_ms).map(us),
            source: said.first().map_or(RetrySource::BuiltIn, |(source, _)| *source),
        }
    }

    /// Whether a failure is tried again. `usual` applies if no place names the failures.
    pub fn retries(&self, failure: Option<RetryOn>, usual: bool) -> bool {
        match (&self.retry_on, failure) {
            (None, _) => usual,
            (Some(named), Some(failure)) => named.contains(&failure),
            (Some(_), None) => false,
        }
    }
}

/// The value of the first place that sets it.
fn first<T>(said: &[(RetrySource, &Policy)], field: impl Fn(&Policy) -> Option<T>) -> Option<T> {
    said.iter().find_map(|(_, policy)| field(policy))
}

/// Attempts for each model of a chain in one step: as its policy allows, at most
/// [`ATTEMPTS_STEP`](limits::ATTEMPTS_STEP) together. At least one remains for each later model.
pub fn shared_attempts(wanted: &[u32]) -> Vec<u32> {
    let mut left = limits::ATTEMPTS_STEP;
    let mut behind = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
    wanted
        .iter()
        .map(|wanted| {
            behind = behind.saturating_sub(1);
            let share = (*wanted).min(left.saturating_sub(behind).max(1)).min(left);
            left -= share;
            share
        })
        .collect()
}
