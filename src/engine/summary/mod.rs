//! A summary that replaces the older messages of the thread in requests (docs/context.md). A job writes it
//! with a model, in parallel with the run. It is stored only if none of the messages that it covers has
//! changed meanwhile. Messages and turns do not depend on its success.
//!
//! * This file: when a summary is due, and how it changes with messages. `plan`: its range. `write`: the job;
//!   `render`: messages as its input. `charges`: the costs of its requests. `requests`: the routes.

mod charges;
pub(super) mod plan;
mod render;
mod requests;
mod write;

use std::cell::{Cell, RefCell};

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::select;
use serde::{Deserialize, Serialize};

use crate::definitions::context::{SummaryMode, SummarySettings};
use crate::definitions::{Agent, Prompt};
use crate::engine::definitions::Definitions;
use crate::engine::features::Summarizer;
use crate::engine::summary::plan::{Cause, Criteria, first_kept};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::models::{CachedJson, ChatMessage};
use crate::store::jobs::Kind;
use crate::store::messages::message_id;
use crate::store::runs::Run;
use crate::store::runs::diagnostics::Diagnostic;
use crate::store::state::State;
use crate::store::summaries::{Summary, SummaryState, TurnCounts};
use crate::store::window::{Span, Window};
use crate::store::{jobs, messages, meta, summaries};

/// The text before a summary.
const HEAD: &str = "Summary of the conversation so far (the messages themselves are kept):";

/// State in the memory of the object.
#[derive(Default)]
pub(super) struct Summaries {
    /// A summary that the last request has shown to be due, until its job is written.
    plan: RefCell<Option<Plan>>,
    /// The summary that a job has just stored: its epoch, and the last message that it covers.
    stored: Cell<Option<(i64, i64)>>,
    /// Steps that wait for a summary.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    /// The epoch whose next summary a step has waited for.
    waited: Cell<Option<i64>>,
}

impl Summaries {
    /// Wakes the waiting steps after an attempt.
    pub(super) fn notify(&self) {
        for waiting in self.waiting.borrow_mut().drain(..) {
            let _nobody_waits = waiting.send(());
        }
    }
}

/// A summary that is due.
struct Plan {
    epoch: i64,
    /// Seq of the first message that stays.
    first: i64,
    prompt: String,
}

/// A job's data: its range and its progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SummaryProgress {
    /// The epoch with which it began.
    epoch: i64,
    /// Seq of the last message in its range.
    upto: i64,
    /// The run that caused it.
    run: i64,
    /// The prompt with its settings.
    prompt: String,
    /// The text so far covers messages up to this seq.
    #[serde(default)]
    done: i64,
    #[serde(default)]
    text: String,
    /// The summary with which it began covers messages up to this seq.
    #[serde(default)]
    since: i64,
    #[serde(default)]
    stage: Stage,
    /// Number of discarded results.
    #[serde(default)]
    discarded: u32,
    /// Whether a message in its range was changed.
    #[serde(default)]
    touched: bool,
    /// Attempts that were lost in a crash and are not yet charged.
    #[serde(default, skip_serializing_if = "is_zero")]
    lost: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The purpose of a job's next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    /// The first messages.
    #[default]
    First,
    /// Those that follow the text so far.
    More,
    /// The same messages again, because the result was too long.
    Shorter,
}

impl SummaryProgress {
    fn of(epoch: i64, upto: i64, run: i64, prompt: &str) -> SummaryProgress {
        SummaryProgress { epoch, upto, run, prompt: prompt.to_owned(), ..SummaryProgress::default() }
    }

    fn read(data: &str) -> Option<SummaryProgress> {
        crate::json::from_str(data).ok()
    }

    fn column(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }
}

/// The summary settings of a prompt; `None` if it has none.
fn settings_of(prompt: &Prompt) -> Option<&SummarySettings> {
    prompt.summary.as_ref().filter(|settings| prompt.include_chat && settings.mode != SummaryMode::Off)
}

/// Seq of the last message that is replaced by the summary in the requests of a prompt.
pub(super) fn covered(state: &State, prompt: &Prompt) -> i64 {
    let current = state.meta.summary.as_ref().filter(|_| settings_of(prompt).is_some());
    current.map_or(0, SummaryState::covers)
}

/// The turns that are complete now.
fn turns_of(run: Option<&Run>) -> TurnCounts {
    run.map_or(TurnCounts::default(), |run| TurnCounts {
        runs: if run.end.is_some() { run.id } else { run.id - 1 },
        of_session: run.turns,
    })
}

/// Stores the current summary's state.
fn hold(state: &mut State, sql: &dyn Sql, current: SummaryState) -> Result<()> {
    meta::set_summary(sql, &current.column()?)?;
    state.meta.summary = Some(current);
    Ok(())
}

/// The message with a summary.
pub(crate) fn message_of(summary: &Summary) -> CachedJson<ChatMessage> {
    CachedJson::from(ChatMessage::System(format!("{HEAD}\n\n{}", summary.text)))
}

impl Summarizer<'_> {
    /// The message with the summary in the requests of a prompt. Read once while the object lives.
    pub(super) fn summary_part(&self, prompt: &Prompt) -> Result<Option<CachedJson<ChatMessage>>> {
        self.read_mut(|state, sql| {
            if covered(state, prompt) == 0 {
                return Ok(None);
            }
            let epoch = state.meta.summary.as_ref().map_or(0, |current| current.epoch);
            if let Some((_, message)) = state.summary.as_ref().filter(|(of, _)| *of == epoch) {
                return Ok(Some(message.clone()));
            }
            let Some(summary) = summaries::find(sql, epoch)? else {
                return Err(Error::internal("the summary that holds is not there"));
            };
            let message = message_of(&summary);
            state.summary = Some((epoch, message.clone()));
            Ok(Some(message))
        })
    }

    /// Checks whether a request has left too little space. A due summary is written with the next transaction
    /// of the run.
    pub(super) fn plan_summary(
        &self,
        definitions: &Definitions<'_>,
        state: &State,
        sql: &dyn Sql,
        sent: &RequestContents<'_>,
    ) -> Result<()> {
        let prompt = definitions.prompt;
        let Some(settings) = settings_of(prompt) else { return Ok(()) };
        let current = state.meta.summary.clone().unwrap_or_default();
        let turns = turns_of(state.run.as_ref());
        if current.paused.is_some_and(|then| turns.since(then) < limits::SUMMARY_PAUSE_TURNS) {
            return Ok(());
        }
        let wish = Criteria {
            cause: sent.cause,
            settings,
            trigger: prompt.context.trigger(),
            room: sent.room,
            summary: sent.summary,
            turns: turns.since(current.made),
        };
        let first = first_kept(sent.window, sent.from, sent.span, &wish);
        let plan = match first {
            Some(first) if jobs::of_kind(state, sql, Kind::Summary)?.is_none() => {
                Some(Plan { epoch: current.epoch, first, prompt: prompt.name.clone() })
            }
            _ => None,
        };
        *self.ephemeral.summaries.plan.borrow_mut() = plan;
        Ok(())
    }

    /// Writes the job of a due summary, inside a transaction of the run.
    pub(super) fn schedule_summary(&self, state: &mut State, sql: &dyn Sql, now: i64) -> Result<()> {
        let Some(plan) = self.ephemeral.summaries.plan.borrow_mut().take() else { return Ok(()) };
        if state.meta.summary.as_ref().map_or(0, |current| current.epoch) != plan.epoch {
            return Ok(());
        }
        self.add_summary(state, sql, plan.first, &plan.prompt, now).map(drop)
    }

    /// Adds a job for the messages before a given one. Returns the last message in its range, if any message
    /// has no summary yet.
    fn add_summary(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        first: i64,
        prompt: &str,
        now: i64,
    ) -> Result<Option<i64>> {
        let current = state.meta.summary.clone().unwrap_or_default();
        let upto = messages::page::last_before(sql, first)?.filter(|upto| *upto > current.covers());
        let Some(upto) = upto else { return Ok(None) };
        let run = state.run.as_ref().map_or(0, |run| run.id);
        let data = SummaryProgress::of(current.epoch, upto, run, prompt).column()?;
        if jobs::add(state, sql, Kind::Summary, "", now, &data)? {
            self.arm_at(state, sql, now, now)?;
            self.ephemeral.notify_alarm();
        }
        Ok(Some(upto))
    }

    /// Handles a changed or deleted message. A summary that covers it is no longer sent, and a new one is
    /// made. A summary in progress that covers it is discarded.
    pub(super) fn unsettle_summary(&self, state: &mut State, sql: &dyn Sql, seq: i64) -> Result<()> {
        if let Some(mut job) = jobs::of_kind(state, sql, Kind::Summary)?
            && let Some(progress) = SummaryProgress::read(&job.data).filter(|progress| seq <= progress.upto)
        {
            job.data = SummaryProgress { touched: true, ..progress }.column()?;
            jobs::update(sql, &job)?;
        }
        let Some(current) =
            state.meta.summary.clone().filter(|current| current.upto > 0 && seq <= current.upto)
        else {
            return Ok(());
        };
        summaries::spoil(sql, seq)?;
        state.summary = None;
        let upto = current.upto;
        hold(state, sql, SummaryState { stale: true, ..current })?;
        let prompt = self.catalog.agents.get(&state.meta.agent).and_then(|agent| self.summarising(agent));
        match prompt {
            Some(prompt) => {
                let name = prompt.name.clone();
                self.add_summary(state, sql, upto + 1, &name, self.host.now_us()).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Handles the removal of messages from this one on. A summary that covers one of them is replaced by the
    /// newest that covers none, or by the messages. A summary of them in progress is not stored.
    pub(super) fn cut_summary(&self, state: &mut State, sql: &dyn Sql, first: i64) -> Result<()> {
        self.ephemeral.summaries.plan.borrow_mut().take();
        if let Some(job) = jobs::of_kind(state, sql, Kind::Summary)?
            && SummaryProgress::read(&job.data).is_none_or(|progress| progress.upto >= first)
        {
            jobs::remove(state, sql, job.id)?;
        }
        let Some(current) = state.meta.summary.clone().filter(|current| current.upto >= first) else {
            return Ok(());
        };
        summaries::spoil(sql, first)?;
        state.summary = None;
        let epoch = current.epoch + 1;
        let sound = summaries::newest_sound(sql)?;
        let upto = sound.as_ref().map_or(0, |sound| sound.upto);
        if let Some(sound) = sound {
            summaries::insert(sql, &Summary { epoch, ..sound })?;
        }
        hold(state, sql, SummaryState { epoch, upto, stale: false, ..current })
    }

    /// The prompt of an agent that has summary settings: of its side A, otherwise of its side B.
    fn summarising(&self, agent: &Agent) -> Option<&Prompt> {
        let sides = [Some(&agent.side_a), agent.side_b.as_ref()];
        let mut prompts =
            sides.into_iter().flatten().filter_map(|side| self.catalog.prompts.get(&side.prompt));
        prompts.find(|prompt| settings_of(prompt).is_some())
    }

    /// Pauses summaries after too many failures in a row, until more turns have come. The next run reports
    /// it.
    pub(super) fn pause_summaries(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        let current = state.meta.summary.clone().unwrap_or_default();
        let paused = Some(turns_of(state.run.as_ref()));
        hold(state, sql, SummaryState { paused, untold: true, ..current })
    }

    /// The diagnostic of paused summaries, for a run that begins.
    pub(super) fn paused_summaries(&self, state: &mut State, sql: &dyn Sql) -> Result<Option<Diagnostic>> {
        let Some(current) = state.meta.summary.clone().filter(|current| current.untold) else {
            return Ok(None);
        };
        hold(state, sql, SummaryState { untold: false, ..current })?;
        let text = format!(
            "No summary could be made {} times in a row; the next attempt is made after {} more turns.",
            limits::SUMMARY_FAILURES,
            limits::SUMMARY_PAUSE_TURNS
        );
        let kind = crate::store::runs::diagnostics::Kind::Workflow;
        Ok(Some(Diagnostic::warning(kind, "summary_paused", ("job", "summary"), text, self.host.now_us())))
    }

    /// Sends an event about a stored summary to listeners.
    pub(super) fn announce_summary(&self) -> Result<()> {
        let Some((epoch, upto)) = self.ephemeral.summaries.stored.take() else { return Ok(()) };
        let upto = self.read(|state, _| Ok(message_id(&state.meta.stem, upto)))?;
        self.emit("summary_updated", json!({ "epoch": epoch, "upto": upto }));
        Ok(())
    }

    /// Waits a limited time for a due summary, if the prompt enables that. Returns whether the request has to
    /// be built again.
    pub(super) async fn summary_before_step(&self, definitions: &Definitions<'_>) -> Result<bool> {
        let before =
            settings_of(definitions.prompt).is_some_and(|settings| settings.mode == SummaryMode::BeforeStep);
        if !before {
            return Ok(false);
        }
        let now = self.host.now_us();
        let epoch =
            self.read(|state, _| Ok(state.meta.summary.as_ref().map_or(0, |current| current.epoch)))?;
        if self.ephemeral.summaries.plan.borrow().is_some() {
            self.transition(|state, sql| self.schedule_summary(state, sql, now))?;
        }
        let until = now + limits::SUMMARY_WAIT_US;
        loop {
            let (owed, reached) = self.read(|state, sql| {
                let owed = jobs::of_kind(state, sql, Kind::Summary)?.is_some();
                Ok((owed, state.meta.summary.as_ref().map_or(0, |current| current.epoch)))
            })?;
            if reached != epoch {
                return Ok(true);
            }
            if !owed || self.host.now_us() >= until || self.ephemeral.summaries.waited.get() == Some(epoch) {
                self.ephemeral.summaries.waited.set(owed.then_some(epoch));
                return Ok(false);
            }
            let (send, over) = oneshot::channel();
            self.ephemeral.summaries.waiting.borrow_mut().push(send);
            let _either = select(over, self.host.sleep_until(until).boxed_local()).await;
        }
    }
}

/// The contents of a request.
pub(super) struct RequestContents<'a> {
    pub(super) cause: Cause,
    pub(super) window: &'a Window,
    /// Seq of its first message.
    pub(super) from: i64,
    pub(super) span: &'a Span,
    /// Tokens for summary and messages together.
    pub(super) room: usize,
    /// Tokens of the summary in it.
    pub(super) summary: usize,
}
