//! Files that go from one thread to another (spec §24): whoever is sent an envelope pulls them, piece by piece, and gives them
//! their places in the transition that stores what the envelope says. So an envelope's messages and its files are there
//! together, and of an envelope that was received before nothing stays.

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use serde::Deserialize;

use crate::engine::features::Subagents;
use crate::engine::files::received::{Foreign, Received};
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::host::http::{Body, FetchError, Response};
use crate::limits;
use crate::request::ThreadRoute;
use crate::request::between::{error_of, to_thread};
use crate::store::attachment::AttachmentRef;
use crate::store::state::State;

/// Bytes of an answer about a file, or of an error.
const TOLD_BYTES: usize = 1 << 20;

/// Files of another thread whose content is here and which have no place yet.
pub(crate) struct Copies {
    files: Vec<Received>,
    /// What could not be copied, and would not be another time.
    pub(crate) missing: Vec<Missing>,
}

/// A file that is not there to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Where it was said to be, in the other thread.
    pub(crate) path: String,
    /// Why there is no copy, in a sentence.
    pub(crate) why: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (not copied: {})", self.path, self.why)
    }
}

/// What came of a file.
enum Pulled {
    Here(Received),
    Missing(String),
}

/// The answer to `GET …/fs/{path}?stat=1`.
#[derive(Deserialize)]
struct StatAnswer {
    file: Foreign,
}

impl Copies {
    /// Nothing to copy.
    pub(crate) const fn none() -> Copies {
        Copies { files: Vec::new(), missing: Vec::new() }
    }

    /// Gives every file its place below `/attachments/`, as the message shows it that is stored in the same transition.
    pub(crate) fn place(
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
    /// Takes in the content of files of another thread, one after the other; at most [`limits::ATTACHMENTS`]. Call
    /// [`Thread::copied`] when they have their places, or shall have none.
    ///
    /// # Errors
    /// What another try may get over: `overloaded` when the other thread does not answer, a file breaks off, or is replaced
    /// or removed while it is read. Files that came before are then deleted.
    pub(crate) fn copy_from<'a>(
        &'a self,
        from: &'a str,
        paths: &'a [String],
    ) -> LocalBoxFuture<'a, Result<Copies>> {
        Box::pin(async move {
            let mut copies = Copies::none();
            if paths.is_empty() {
                return Ok(copies);
            }
            // What an earlier try has left.
            self.files().prune_files();
            for (place, path) in paths.iter().enumerate() {
                if place >= limits::ATTACHMENTS {
                    let why = format!("a message has at most {} files.", limits::ATTACHMENTS);
                    copies.missing.push(Missing { path: path.clone(), why });
                    continue;
                }
                match self.pull(from, path).await {
                    Ok(Pulled::Here(file)) => copies.files.push(file),
                    Ok(Pulled::Missing(why)) => copies.missing.push(Missing { path: path.clone(), why }),
                    Err(mut error) => {
                        drop(copies);
                        self.files().prune_files();
                        // An envelope that is refused for another reason is not sent again.
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

    /// Deletes what of the copies has no place.
    pub(crate) fn copied(&self, copies: Copies) {
        let any = !copies.files.is_empty();
        drop(copies);
        if any {
            self.files().prune_files();
        }
    }

    async fn pull(&self, from: &str, path: &str) -> Result<Pulled> {
        let file = match self.look_at(from, path).await? {
            Ok(file) => file,
            Err(why) => return Ok(Pulled::Missing(why)),
        };
        let (Some(etag), false) = (&file.etag, file.is_directory) else {
            return Ok(Pulled::Missing(format!("{path} is a directory.")));
        };
        // The version that was looked at, or nothing.
        let mut request = to_thread(from, ThreadRoute::GetFile(path.to_owned()));
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
            // It would be too large another time, too.
            Err(error) if error.code == Code::TooLarge => Ok(Pulled::Missing(error.into_message())),
            received => received.map(Pulled::Here),
        }
    }

    /// What there is at a path of another thread, or why there is nothing.
    async fn look_at(&self, from: &str, path: &str) -> Result<Result<Foreign, String>> {
        let mut request = to_thread(from, ThreadRoute::GetFile(path.to_owned()));
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

/// The error that another thread answered with.
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
