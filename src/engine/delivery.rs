//! Delivery of the outbox: in order for each target, in parallel across targets, at least once.

use std::collections::BTreeMap;

use futures::future::join_all;

use crate::engine::features::{Outbox, Subagents};
use crate::engine::memory::shared::{entry_response, note_refusal};
use crate::engine::outbox::{DIRECTORY_US, INLINE_US, Targets, newest_message};
use crate::engine::thread::Thread;
use crate::error::{Code, Result};
use crate::host::{Sibling, Sql};
use crate::limits;
use crate::request::Reply;
use crate::request::directory_call as call;
use crate::request::directory_call::DirectoryCall;
use crate::store::outbox as table;
use crate::store::outbox::{OutboxEntry, TO_MEMORY, TO_THREAD};

/// What the answer to an outbox entry changes in the thread that sent it. `subagents::inbox` implements it.
pub(super) trait EnvelopeAnswers {
    /// Handles the answer of the thread `to` to the entry `n`, and forgets the entry.
    ///
    /// # Errors
    /// Those of the transition. Then the entry is sent again.
    async fn envelope_answered(&self, to: &str, n: i64, body: &str, reply: Reply) -> Result<()>;
}

impl Outbox<'_> {
    /// Reports the start of a run to the directory, unless the run ends at once; then its end suffices.
    /// Nobody waits for the report. It may be lost, because the end is delivered reliably.
    pub(super) fn report_start(&self) -> Result<()> {
        let id = self.read(|state, _| Ok(state.run.as_ref().map(|run| run.id)))?;
        let thread = self.0.clone();
        self.host.spawn(Box::pin(async move {
            thread.host.sleep_until(thread.host.now_us() + DIRECTORY_US).await;
            if thread.read(|state, _| Ok(state.meta.parent.is_some())).unwrap_or(false) {
                // Deliver the row of a child that was just created: its run may be long, and the alarm joins
                // that run.
                thread.outbox().deliver_outbox(Targets::All, thread.host.now_us()).await;
            }
            if let Err(error) = thread.outbox().send_started(id).await
                && error.code != Code::ThreadNotFound
            {
                thread.variables().log(&format!("the directory was not told of a run's start: {error}"));
            }
        }));
        Ok(())
    }

    async fn send_started(&self, id: Option<i64>) -> Result<()> {
        let report = self.read(|state, _| {
            let Some(run) = state.active().filter(|run| Some(run.id) == id) else { return Ok(None) };
            let call = DirectoryCall::Activity {
                id: state.meta.thread_id.clone(),
                life: state.meta.life,
                version: 2 * run.id,
                executing: true,
                last_activity_us: run.started_us,
                last_message: newest_message(state),
                failed: None,
            };
            let body = call.to_json()?;
            Ok(Some((call::name_of(state.meta.owner.as_deref()), body)))
        })?;
        match report {
            None => Ok(()),
            Some((target, body)) => self.host.sibling(Sibling::Directory(target), body).await.map(drop),
        }
    }

    /// Delivers the entries due by `until`: in order for each target, in parallel across targets. A failed
    /// one stays, with a later due time. A target with a delivery in progress gets the rest from that
    /// delivery.
    pub(super) async fn deliver_outbox(&self, to: Targets, until: i64) {
        let due = |sql: &dyn Sql| match to {
            Targets::All => table::due(sql, until),
            Targets::Threads => table::due_to_threads(sql, until),
        };
        let entries = match self.read(|_, sql| due(sql)) {
            Ok(entries) => entries,
            Err(error) if error.code == Code::ThreadNotFound => return,
            Err(error) => return self.variables().log(&format!("the outbox could not be read: {error}")),
        };
        let mut by_target: BTreeMap<String, Vec<OutboxEntry>> = BTreeMap::new();
        for entry in entries {
            by_target.entry(entry.target.clone()).or_default().push(entry);
        }
        let deliveries = by_target.into_iter().map(|(target, entries)| self.deliver_to(target, entries));
        join_all(deliveries).await;
    }

    async fn deliver_to(&self, target: String, mut entries: Vec<OutboxEntry>) {
        let busy = self.ephemeral.deliveries.running.borrow_mut().insert(target.clone(), false);
        if busy.is_some() {
            self.ephemeral.deliveries.running.borrow_mut().insert(target, true);
            return;
        }
        let delivering = DeliveryGuard { thread: self.0.clone(), target };
        // Entries are sent one by one, each with its response; a directory receives all in one call.
        let together =
            if Addressee::of(&delivering.target) == Addressee::Directory { entries.len() } else { 1 };
        loop {
            for entries in entries.chunks(together.max(1)) {
                match self.deliver(&delivering.target, entries).await {
                    Ok(DeliveryOutcome::Taken) => {}
                    // Later entries wait for this one.
                    Ok(DeliveryOutcome::Later) => return,
                    Err(error) if error.code == Code::ThreadNotFound => return,
                    Err(error) => {
                        return self.variables().log(&format!("the outbox could not be delivered: {error}"));
                    }
                }
            }
            // Nothing is awaited from here to the end of the loop, so a later write is delivered by its
            // writer.
            let again =
                self.ephemeral.deliveries.running.borrow_mut().insert(delivering.target.clone(), false);
            if again != Some(true) {
                return;
            }
            let until = self.host.now_us() + INLINE_US;
            entries = match self.read(|_, sql| table::due(sql, until)) {
                Ok(entries) => {
                    entries.into_iter().filter(|entry| entry.target == delivering.target).collect()
                }
                Err(error) => return self.variables().log(&format!("the outbox could not be read: {error}")),
            };
        }
    }

    /// Delivers new entries to these targets, and clears the alarm that was set in case of a failure.
    pub(crate) async fn deliver_now(&self, to: Targets) {
        let now = self.host.now_us();
        self.deliver_outbox(to, now + INLINE_US).await;
        let rearmed = self.read(|state, sql| self.rearm(state, sql, now));
        if let Err(error) = rearmed
            && error.code != Code::ThreadNotFound
        {
            self.variables().log(&format!("the alarm could not be taken back: {error}"));
        }
    }

    /// Delivers the entries for one memory.
    pub(super) async fn deliver_target(self, target: &str) {
        let until = self.host.now_us() + INLINE_US;
        match self.read(|_, sql| table::due_to(sql, target, until)) {
            Ok(entries) if entries.is_empty() => {}
            Ok(entries) => self.deliver_to(target.to_owned(), entries).await,
            Err(error) => self.variables().log(&format!("the outbox could not be read: {error}")),
        }
    }

    /// Sends entries in one call and stores the outcome.
    async fn deliver(&self, target: &str, entries: &[OutboxEntry]) -> Result<DeliveryOutcome> {
        let to = Addressee::of(target);
        let bodies = || entries.iter().map(|entry| entry.body.as_str());
        let (sibling, text) = match to {
            Addressee::Thread(id) => {
                let head = self.subagents().envelope_head(id)?;
                (Sibling::Thread(id.to_owned()), format!("{head}\n{}", bodies().collect::<String>()))
            }
            Addressee::Memory(name) => (Sibling::Memory(name.to_owned()), bodies().collect::<String>()),
            Addressee::Directory => (Sibling::Directory(target.to_owned()), call::together(bodies())),
        };
        let answer = match self.host.sibling(sibling, text).await {
            Ok(text) => call::answer(&text),
            Err(error) => Err(error),
        };
        let later = match (&answer, to) {
            (Ok(reply), _) if reply.status < 300 => None,
            (Ok(reply), Addressee::Directory) => Some(format!("the answer was {}", reply.status)),
            // A retry would be refused as well.
            (Ok(reply), _) if reply.status < 500 && reply.status != 429 => None,
            (Ok(reply), _) => Some(format!("the answer was {}", reply.status)),
            (Err(error), _) => Some(error.to_string()),
        };
        if let Some(why) = later {
            return self.deliver_later(target, to, entries, &why);
        }
        match (to, entries, answer) {
            (Addressee::Thread(id), [entry], Ok(reply)) => {
                self.0.envelope_answered(id, entry.version, &entry.body, reply).await?
            }
            (Addressee::Memory(name), [entry], Ok(reply)) => self.memory_answered(name, entry, reply)?,
            _ => self.read(|_, sql| table::forget_all(sql, entries))?,
        }
        Ok(DeliveryOutcome::Taken)
    }

    /// Schedules another delivery.
    fn deliver_later(
        &self,
        target: &str,
        to: Addressee<'_>,
        entries: &[OutboxEntry],
        why: &str,
    ) -> Result<DeliveryOutcome> {
        let subjects: Vec<&str> = entries.iter().map(|entry| entry.subject.as_str()).collect();
        self.variables().log(&format!("{target} was not told of {}: {why}", subjects.join(" and ")));
        let now = self.host.now_us();
        let tries = entries.iter().map(|entry| entry.tries).max().unwrap_or(0);
        let retry_at = now + (limits::SECOND_US << tries.min(10));
        // In one transition with the alarm, so that a crash in between cannot leave it due earlier.
        self.transition(|state, sql| {
            for entry in entries {
                table::retry(sql, entry, retry_at)?;
            }
            if to != Addressee::Directory {
                table::hold(sql, target, retry_at)?;
            }
            // The alarm set at the time of writing may be later than this.
            self.arm_at(state, sql, retry_at, now)
        })?;
        Ok(DeliveryOutcome::Later)
    }

    /// Handles the response of a memory to an outbox entry. A waiter receives it. Without a waiter, a refusal is
    /// noted for the next run, in the transaction that deletes the entry.
    fn memory_answered(&self, name: &str, entry: &OutboxEntry, reply: Reply) -> Result<()> {
        let answer = entry_response(reply);
        let awaited = self.ephemeral.deliveries.awaited.borrow().contains_key(&entry.subject);
        let refused = answer.as_ref().err().filter(|_| !awaited);
        if let Some(error) = refused {
            self.variables().log(&format!("the memory {name} refused what it was sent: {error}"));
        }
        self.transition(|state, sql| {
            if let Some(error) = refused {
                note_refusal(state, sql, entry, error)?;
            }
            table::forget(sql, &entry.subject, entry.version)
        })?;
        if let Some(awaited) = self.ephemeral.deliveries.awaited.borrow_mut().get_mut(&entry.subject) {
            *awaited = Some(answer);
        }
        Ok(())
    }
}

/// The recipient of an outbox entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addressee<'a> {
    Thread(&'a str),
    Memory(&'a str),
    Directory,
}

impl Addressee<'_> {
    fn of(target: &str) -> Addressee<'_> {
        match (target.strip_prefix(TO_THREAD), target.strip_prefix(TO_MEMORY)) {
            (Some(id), _) => Addressee::Thread(id),
            (None, Some(name)) => Addressee::Memory(name),
            (None, None) => Addressee::Directory,
        }
    }
}

/// The outcome of a delivery.
enum DeliveryOutcome {
    Taken,
    /// It will be sent again.
    Later,
}

/// Releases a target when dropped, also if its delivery panics.
struct DeliveryGuard {
    thread: Thread,
    target: String,
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        self.thread.ephemeral.deliveries.running.borrow_mut().remove(&self.target);
        self.thread.ephemeral.notify_alarm();
    }
}

impl Subagents<'_> {
    /// Delivers new entries while the run continues.
    pub(crate) fn send_envelopes(&self) {
        if !self.ephemeral.deliveries.posted.replace(false) {
            return;
        }
        let thread = self.0.clone();
        self.host.spawn(Box::pin(async move { thread.outbox().deliver_now(Targets::Threads).await }));
    }
}
