//! File copies between threads (spec §24). The receiver of an envelope pulls its files one by one, and
//! attaches them in the transition that stores the envelope's message. Message and files therefore appear
//! together, and a repeated envelope leaves no files behind.

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use serde::Deserialize;

use crate::engine::features::Subagents;
use crate::engine::files::staged::{Foreign, StagedFile};
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::host::http::{Body, FetchError, Response};
use crate::limits;
use crate::request::StreamRoute;
use crate::request::between::{error_of, to_thread};
use crate::store::attachment::AttachmentRef;
use crate::store::state::State;

/// The maximum size of a reply about a file, or of an error, in bytes.
const TOLD_BYTES: usize = 1 << 20;

/// Files of another thread that are stored here but not attached yet.
pub(super) struct Copies {
    files: Vec<StagedFile>,
    /// Files that cannot be copied. Another attempt would not help.
    pub(super) missing: Vec<MissingFile>,
}

/// A file that cannot be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingFile {
    /// The path in the other thread.
    path: String,
    /// The reason, as a sentence.
    why: String,
}

impl std::fmt::Display for MissingFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (not copied: {})", self.path, self.why)
    }
}

/// The result of pulling one file.
enum PullResult {
    Here(StagedFile),
    Missing(String),
}

/// The answer to `GET …/fs/{path}?stat=1`.
#[derive(Deserialize)]
struct StatAnswer {
    file: Foreign,
}

impl Copies {
    /// No copies.
    const fn none() -> Copies {
        Copies { files: Vec::new(), missing: Vec::new() }
    }

    /// Attaches every file below `/attachments/`. The message with these paths is stored in the same
    /// transition.
    pub(super) fn place(
        &self,
        thread: &Thread,
        state: &mut State,
        sql: &dyn Sql,
        now: i64,
    ) -> Result<Vec<AttachmentRef>> {
        crate::engine::attachments::store::adopt(state, sql, &self.files, || thread.host.random(), now)
    }
}

impl Subagents<'_> {
    /// Copies files of another thread, one after the other, at most [`limits::ATTACHMENTS`]. Call
    /// [`Subagents::copied`] once they are attached or rejected.
    ///
    /// # Errors
    /// Errors that another attempt may overcome: `overloaded` when the other thread does not reply, a file
    /// breaks off, or a file is replaced or removed during the copy. Files copied before the error are
    /// deleted.
    pub(super) fn copy_from<'a>(
        &'a self,
        from: &'a str,
        paths: &'a [String],
    ) -> LocalBoxFuture<'a, Result<Copies>> {
        Box::pin(async move {
            let mut copies = Copies::none();
            if paths.is_empty() {
                return Ok(copies);
            }
            // Delete the rest of an earlier attempt.
            self.files().prune_files();
            for (place, path) in paths.iter().enumerate() {
                if place >= limits::ATTACHMENTS {
                    let why = format!("a message has at most {} files.", limits::ATTACHMENTS);
                    copies.missing.push(MissingFile { path: path.clone(), why });
                    continue;
                }
                match self.pull(from, path).await {
                    Ok(PullResult::Here(file)) => copies.files.push(file),
                    Ok(PullResult::Missing(why)) => {
                        copies.missing.push(MissingFile { path: path.clone(), why })
                    }
                    Err(mut error) => {
                        drop(copies);
                        self.files().prune_files();
                        // `overloaded`, because an envelope that is refused with another code is not sent
                        // again.
                        if error.code == Code::Conflict {
                            error.code = Code::Overloaded;
                        }
                        return Err(error);
                    }
                }
            }
            Ok(copies)
        })
    }

    /// Deletes the copies that were not attached.
    pub(super) fn copied(&self, copies: Copies) {
        let any = !copies.files.is_empty();
        drop(copies);
        if any {
            self.files().prune_files();
        }
    }

    async fn pull(&self, from: &str, path: &str) -> Result<PullResult> {
        let file = match self.file_at(from, path).await? {
            Ok(file) => file,
            Err(why) => return Ok(PullResult::Missing(why)),
        };
        let (Some(etag), false) = (&file.etag, file.is_directory) else {
            return Ok(PullResult::Missing(format!("{path} is a directory.")));
        };
        // Request the version from the look-up. A newer version gives 412.
        let mut request = to_thread(from, StreamRoute::GetFile(path.to_owned()));
        request.headers.push(("if-match".to_owned(), etag.clone()));
        let answer = self.ask_streamed(&request).await.map_err(|error| lost(path, &error))?;
        match answer.status {
            200 => {}
            404 | 412 => {
                let message = format!("{path} was replaced or removed while it was copied.");
                return Err(Error::new(Code::Conflict, message));
            }
            _ => return Err(refused(path, answer).await?),
        }
        match self.files().receive(file, answer.body).await {
            // Another attempt would find the same size.
            Err(error) if error.code == Code::TooLarge => Ok(PullResult::Missing(error.into_message())),
            received => received.map(PullResult::Here),
        }
    }

    /// Returns the file at a path of another thread, or the reason why there is none.
    async fn file_at(&self, from: &str, path: &str) -> Result<Result<Foreign, String>> {
        let mut request = to_thread(from, StreamRoute::GetFile(path.to_owned()));
        request.query.0.push(("stat".to_owned(), "1".to_owned()));
        let answer = self.ask_streamed(&request).await.map_err(|error| lost(path, &error))?;
        if answer.status != 200 {
            let gone = matches!(answer.status, 400 | 404);
            let error = refused(path, answer).await?;
            return if gone { Ok(Err(error.into_message())) } else { Err(error) };
        }
        let text = text_of(path, answer.body).await?;
        let told: StatAnswer = crate::json::from_slice(&text).map_err(Error::internal)?;
        Ok(Ok(told.file))
    }
}

/// The error in another thread's response.
async fn refused(path: &str, answer: Response) -> Result<Error> {
    let text = text_of(path, answer.body).await?;
    Ok(error_of(answer.status, None, &text))
}

async fn text_of(path: &str, mut body: Body) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    while let Some(piece) = body.next().await {
        text.extend_from_slice(&piece.map_err(|error| lost(path, &error))?);
        if text.len() > TOLD_BYTES {
            return Err(Error::internal(format!("the answer about {path} is too long")));
        }
    }
    Ok(text)
}

fn lost(path: &str, error: &FetchError) -> Error {
    Error::new(Code::Overloaded, format!("{path} could not be copied: {error}."))
}
