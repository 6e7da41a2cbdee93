//! A thread that is deleted takes its tree with it: children first, each with all below it. What was deleted stays
//! deleted when something fails, and a thread goes only when all below it are gone: so it can be deleted again.

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

/// How often it is looked whether an envelope was taken.
const LOOK_US: i64 = limits::SECOND_US / 100;

/// The header of a parent's request to delete its child.
pub(crate) const BY_PARENT: &str = "x-bobbin-parent";

/// Whether the parent is still to be told that its child is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentNotice {
    /// It is, if there is one.
    Owed,
    /// It wants it so, or is gone itself.
    NotOwed,
}

/// What a child answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gone {
    deleted_thread_ids: Vec<String>,
}

impl Descendants<'_> {
    /// Deletes all below this thread, which is terminated. Their ids.
    ///
    /// # Errors
    /// `overloaded` when one of them could not be deleted, or did not say so.
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
                    let below: Gone = crate::json::from_str(body).map_err(Error::internal)?;
                    deleted.extend(below.deleted_thread_ids);
                    gone.push(reference);
                }
                // Or it is not made yet: then it asks for its parent, and deletes itself.
                Err(error) if error.code == Code::ThreadNotFound => {}
                Err(error) => left = Some((reference, error)),
            }
        }
        let Some((reference, error)) = left else {
            // What they were still to be told they need not know.
            self.read(|state, sql| {
                let parent = state.meta.parent.as_ref().map(|parent| format!("{TO_THREAD}{}", parent.thread));
                outbox::forget_threads_but(sql, parent.as_deref())
            })?;
            return Ok(deleted);
        };
        // Another try need not ask these again; there may be more than one event can ask.
        self.transition(|state, sql| {
            state.children = None;
            gone.iter().try_for_each(|reference| registry::delete(sql, reference))
        })?;
        let message = format!("The subagent {reference} could not be deleted: {error}");
        Err(Error::new(Code::Overloaded, message)
            .retry_after(1)
            .hint("The thread is terminated; delete it again."))
    }

    /// Takes back the envelopes to children that are still to be made, and waits for those that are on their way: a child
    /// that is not there afterwards will not be, or finds its parent gone and deletes itself.
    async fn cancel_creations(&self, children: &[Child]) -> Result<()> {
        let creating: Vec<String> = children
            .iter()
            .filter(|child| child.state == ChildState::Creating || !child.is_open())
            .map(|child| format!("{TO_THREAD}{}", child.reference))
            .collect();
        self.transition(|_, sql| creating.iter().try_for_each(|target| outbox::forget_target(sql, target)))?;
        let until = self.host.now_us() + limits::LETTER_US;
        while creating.iter().any(|target| self.ephemeral.delivering.borrow().contains_key(target)) {
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

    /// Delivers what the parent is still to be told: that this thread is terminated.
    ///
    /// # Errors
    /// `overloaded` when it could not be told.
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
