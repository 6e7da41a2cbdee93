//! Deletion of a thread with its tree, children first. A thread is deleted only after all its descendants. A
//! failed deletion keeps its progress, so it can be repeated.

use serde::Deserialize;

use crate::engine::features::Descendants;
use crate::engine::outbox::Targets;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::request::ThreadRoute;
use crate::request::between::to_thread;
use crate::store::children::{Child, ChildState};
use crate::store::outbox::TO_THREAD;
use crate::store::{children as registry, outbox};

/// The interval of the checks whether an envelope was delivered.
const LOOK_US: i64 = limits::SECOND_US / 100;

/// The header of a parent's request to delete its child.
pub(crate) const BY_PARENT: &str = "x-bobbin-parent";

/// Whether the parent must still receive the notice that its child is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentNotice {
    /// Send the notice, if there is a parent.
    Owed,
    /// The parent requested the deletion, or is deleted itself.
    NotOwed,
}

/// A child's response.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeleteResponse {
    deleted_thread_ids: Vec<String>,
}

impl Descendants<'_> {
    /// Deletes all descendants of this thread, which is terminated, and returns their ids.
    ///
    /// # Errors
    /// `overloaded` when a descendant could not be deleted, or did not confirm it.
    pub(crate) async fn delete_children(&self) -> Result<Vec<String>> {
        let (id, children) =
            self.read(|state, sql| Ok((state.meta.thread_id.clone(), registry::all(sql)?)))?;
        self.cancel_creations(&children).await?;
        let made: Vec<String> = children
            .into_iter()
            .filter(|child| child.state != ChildState::Pending)
            .map(|child| child.reference)
            .collect();
        if made.is_empty() {
            return Ok(Vec::new());
        }
        let request = |reference: &String| {
            let mut request = to_thread(reference, ThreadRoute::Delete);
            request.headers.push((BY_PARENT.to_owned(), id.clone()));
            request
        };
        let answers = self.subagents().ask_all(made.iter().map(request).collect()).await;
        let (mut deleted, mut gone, mut left) = (Vec::new(), Vec::new(), None);
        for (reference, answer) in made.iter().zip(answers) {
            match answer {
                Ok(reply) => {
                    let body = reply.body.as_ref().map_or("", |body| body.get());
                    let below: DeleteResponse = crate::json::from_str(body).map_err(Error::internal)?;
                    deleted.extend(below.deleted_thread_ids);
                    gone.push(reference);
                }
                // It may also not exist yet. When it is created, it looks for its parent and deletes itself.
                Err(error) if error.code == Code::ThreadNotFound => {}
                Err(error) => left = Some((reference, error)),
            }
        }
        let Some((reference, error)) = left else {
            // The children are deleted: drop all envelopes but those to the parent.
            self.read(|state, sql| {
                let parent = state.meta.parent.as_ref().map(|parent| format!("{TO_THREAD}{}", parent.thread));
                outbox::forget_threads_but(sql, parent.as_deref())
            })?;
            return Ok(deleted);
        };
        // Another attempt need not repeat these requests. There may be more children than one event can
        // reach.
        self.transition(|state, sql| {
            state.children = None;
            gone.iter().try_for_each(|reference| registry::delete(sql, reference))
        })?;
        let message = format!("The subagent {reference} could not be deleted: {error}");
        Err(Error::new(Code::Overloaded, message)
            .retry_after(1)
            .hint("The thread is terminated; delete it again."))
    }

    /// Withdraws the envelopes to children that are not created yet, and waits for deliveries in progress. A
    /// child that does not exist afterwards is never created, or finds its parent deleted and deletes itself.
    async fn cancel_creations(&self, children: &[Child]) -> Result<()> {
        let creating: Vec<String> = children
            .iter()
            .filter(|child| child.state == ChildState::Creating || !child.is_open())
            .map(|child| format!("{TO_THREAD}{}", child.reference))
            .collect();
        self.transition(|_, sql| creating.iter().try_for_each(|target| outbox::forget_target(sql, target)))?;
        let until = self.host.now_us() + limits::ENVELOPE_US;
        while creating.iter().any(|target| self.ephemeral.deliveries.running.borrow().contains_key(target)) {
            let now = self.host.now_us();
            if now >= until {
                let message = "A subagent that is being made does not answer.";
                return Err(Error::new(Code::Overloaded, message)
                    .retry_after(1)
                    .hint("The thread is terminated; delete it again."));
            }
            self.host.sleep_until(now + LOOK_US).await;
        }
        Ok(())
    }

    /// Delivers the outstanding envelopes to the parent, which report the termination.
    ///
    /// # Errors
    /// `overloaded` when the delivery fails.
    pub(crate) async fn flush_parent_notice(&self) -> Result<()> {
        let left = || {
            self.read(|state, sql| {
                let Some(parent) = &state.meta.parent else { return Ok(false) };
                outbox::has_for(sql, &format!("{TO_THREAD}{}", parent.thread))
            })
        };
        let mut pauses = limits::TELL_PAUSES_US.into_iter();
        while left()? {
            self.outbox().deliver_now(Targets::All).await;
            if !left()? {
                break;
            }
            let Some(pause) = pauses.next() else {
                return Err(Error::new(Code::Overloaded, "The parent could not be told of the deletion.")
                    .hint("The thread is terminated; delete it again."));
            };
            self.host.sleep_until(self.host.now_us() + pause).await;
        }
        Ok(())
    }
}
