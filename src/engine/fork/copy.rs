//! The job `fork`: a copy fetches its content, one page at a time. The messages form one snapshot: if one
//! changes meanwhile, all are fetched again. Values and files are read when their page is made.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::engine::features::History;
use crate::engine::files::conditions::Conditions;
use crate::engine::files::write::Draft;
use crate::engine::fork::page::{CopiedFile, CopyPage, CopyRequest, Cursor};
use crate::engine::jobs::JobEnd;
use crate::engine::subagents::delete::ParentNotice;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::request::between::to_thread;
use crate::request::{StreamRoute, ThreadRequest, ThreadRoute};
use crate::store::changes::ContentChanges;
use crate::store::file_path::FilePath;
use crate::store::file_record::FileOptions;
use crate::store::fork::{Fork, ForkState};
use crate::store::jobs::Job;
use crate::store::messages::change;
use crate::store::state::State;
use crate::store::summaries::{Summary, SummaryState};
use crate::store::{meta, summaries, values};

/// The progress of a copy: the data of its job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CopyProgress {
    stage: Stage,
    /// The source's number of edits when the first page was made.
    edits: Option<i64>,
    /// Number of times that the messages were fetched again.
    restarts: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// Fetch the page from this place on.
    Fetch(Cursor),
    /// Nothing can be copied any more, so the thread is deleted.
    Delete,
}

impl Default for CopyProgress {
    fn default() -> CopyProgress {
        CopyProgress { stage: Stage::Fetch(Cursor::Messages(0)), edits: None, restarts: 0 }
    }
}

impl CopyProgress {
    pub(super) fn column(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }
}

impl History<'_> {
    /// One attempt at the job.
    pub(crate) async fn copy_fork(&self, job: &Job) -> Result<JobEnd> {
        let progress: CopyProgress = crate::json::from_str(&job.data).map_err(Error::internal)?;
        let failed = |error: Error| {
            Ok(JobEnd::Failed { error: error.into_message(), after_us: 0, data: job.data.clone() })
        };
        let Stage::Fetch(place) = &progress.stage else {
            return match self.control().delete_tree(ParentNotice::NotOwed).await {
                Ok(_) => Ok(JobEnd::Done(Box::new(|_, _| Ok(None)))),
                Err(error) if error.code == Code::ThreadNotFound => Err(error),
                Err(error) => failed(error),
            };
        };
        let fork = self.read(|state, _| {
            let alive = state.meta.terminated_us.is_none();
            Ok(state.meta.fork.clone().filter(|fork| alive && fork.state == ForkState::Copying))
        })?;
        let Some(fork) = fork else { return Ok(JobEnd::Done(Box::new(|_, _| Ok(None)))) };
        let page = match self.page_of(&fork, place).await {
            Ok(page) => page,
            Err(error) if error.code == Code::ThreadNotFound => {
                return Ok(gone("it was deleted before all of it was copied."));
            }
            Err(error) => return failed(error),
        };
        if let Cursor::Messages(after) = place {
            return Ok(self.keep_messages(&fork, *after, &progress, page));
        }
        for file in &page.files {
            match self.copy_file(&fork, file).await {
                Ok(()) => {}
                Err(error) if error.code == Code::ThreadNotFound => return Err(error),
                Err(error) => return failed(error),
            }
        }
        let thread = self.0.clone();
        Ok(JobEnd::Done(Box::new(move |state, sql| {
            state.values = None;
            for value in &page.values {
                values::put(sql, &value.key, &value.text, value.updated_us)?;
            }
            match page.next {
                None | Some(Cursor::End) => thread.history().complete_fork(state, sql).map(|()| None),
                Some(next) => CopyProgress { stage: Stage::Fetch(next), ..progress }.column().map(Some),
            }
        })))
    }

    async fn page_of(&self, fork: &Fork, place: &Cursor) -> Result<CopyPage> {
        let wanted = CopyRequest { from: place.clone(), upto: fork.upto };
        let body = serde_json::to_string(&wanted).map_err(Error::internal)?;
        let request = to_thread(&fork.thread, ThreadRoute::CopyPage);
        let reply = self.subagents().ask(ThreadRequest { life: Some(fork.life), body, ..request }).await?;
        let text = reply.body.as_ref().map_or("", |body| body.get());
        crate::json::from_str(text).map_err(|error| {
            Error::new(Code::Overloaded, format!("The thread gave no readable page: {error}."))
        })
    }

    fn keep_messages(&self, fork: &Fork, after: i64, progress: &CopyProgress, page: CopyPage) -> JobEnd {
        let edits = page.edits;
        if after > 0 && progress.edits != Some(edits) {
            if progress.restarts >= limits::FORK_RESTARTS {
                return gone("its messages were changed again and again while they were copied.");
            }
            let progress = CopyProgress { restarts: progress.restarts + 1, ..CopyProgress::default() };
            return JobEnd::Done(Box::new(move |state, sql| {
                change::delete_from(sql, 1)?;
                (state.max_seq, state.window, state.visible) = (0, None, None);
                progress.column().map(Some)
            }));
        }
        let complete = !matches!(page.next, Some(Cursor::Messages(_)));
        let last = page.messages.last().map_or(after, |row| row.seq);
        if complete && last != fork.upto {
            return gone("the message up to which it was to be copied was deleted.");
        }
        let next = page.next.unwrap_or(Cursor::End);
        let progress = CopyProgress { stage: Stage::Fetch(next), edits: Some(edits), ..progress.clone() };
        let thread = self.0.clone();
        JobEnd::Done(Box::new(move |state, sql| {
            for row in &page.messages {
                row.insert(sql)?;
            }
            state.max_seq = state.max_seq.max(last);
            (state.window, state.visible) = (None, None);
            if complete {
                let newest = page.messages.iter().rev().find(|row| row.is_visible());
                thread.outbox().post_earlier(state, sql, newest, thread.host.now_us())?;
            }
            if let Some(summary) = page.summary {
                keep_summary(state, sql, summary)?;
            }
            progress.column().map(Some)
        }))
    }

    /// Copies the current version of a file. If it was deleted or replaced meanwhile, it is skipped, and
    /// comes with a later page.
    async fn copy_file(&self, fork: &Fork, file: &CopiedFile) -> Result<()> {
        let path = FilePath::parse("path", &file.path)?;
        if file.directory {
            return self.files().mkdir(&path, &Conditions::default()).map(drop);
        }
        let mut request = to_thread(&fork.thread, StreamRoute::GetFile(file.path.clone()));
        request.life = Some(fork.life);
        request.headers.push(("if-match".to_owned(), file.etag.clone()));
        let lost = |error: crate::host::http::FetchError| {
            Error::new(Code::Overloaded, format!("{} could not be copied: {error}.", file.path))
        };
        let answer = self.subagents().ask_streamed(&request).await.map_err(lost)?;
        match answer.status {
            200 => {}
            404 | 412 => return Ok(()),
            status => {
                let text = format!("{} could not be copied: the thread answered {status}.", file.path);
                return Err(Error::new(Code::Overloaded, text));
            }
        }
        let options = FileOptions {
            width: file.width,
            height: file.height,
            metadata: file
                .metadata
                .as_deref()
                .map(crate::json::from_str)
                .transpose()
                .map_err(Error::internal)?,
            thumbnail: match &file.thumbnail {
                Some(text) => Some(STANDARD.decode(text).map_err(Error::internal)?.into()),
                None => None,
            },
        };
        let draft = Draft::new(path, &file.mime, options, Conditions::default())?;
        self.files().write_stream(&draft, Some(file.size), answer.body).await.map(drop)
    }

    /// Completes the copy, which is an ordinary thread from now on.
    fn complete_fork(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        set_state(state, sql, ForkState::Copied)?;
        state.creation_handled = self.hooks().has_no_created_hook(&state.meta.agent);
        if !state.creation_handled {
            meta::mark_created_pending(sql)?;
        }
        self.memories().pass_over_copied(state, sql)?;
        state.changed = ContentChanges { run_ended: true, ..ContentChanges::default() };
        Ok(())
    }

    /// Handles a job that has failed permanently.
    pub(crate) fn fork_failed(&self, state: &mut State, sql: &dyn Sql, error: &str) -> Result<()> {
        let copying = state.meta.is_copying();
        if copying { set_state(state, sql, ForkState::Failed(error.to_owned())) } else { Ok(()) }
    }
}

/// The source thread no longer exists. The copy is deleted, because a partial copy must not be used.
fn gone(why: &'static str) -> JobEnd {
    JobEnd::Done(Box::new(move |state, sql| {
        set_state(state, sql, ForkState::Failed(why.to_owned()))?;
        CopyProgress { stage: Stage::Delete, ..CopyProgress::default() }.column().map(Some)
    }))
}

fn set_state(state: &mut State, sql: &dyn Sql, to: ForkState) -> Result<()> {
    let Some(fork) = &mut state.meta.fork else { return Ok(()) };
    fork.state = to;
    meta::set_fork(sql, fork)
}

/// Keeps the summary, which replaces the older messages here too.
fn keep_summary(state: &mut State, sql: &dyn Sql, summary: Summary) -> Result<()> {
    let current = SummaryState { epoch: 1, upto: summary.upto, ..SummaryState::default() };
    summaries::clear(sql)?;
    summaries::insert(sql, &Summary { epoch: 1, since: 0, ..summary })?;
    meta::set_summary(sql, &current.column()?)?;
    state.meta.summary = Some(current);
    Ok(())
}
