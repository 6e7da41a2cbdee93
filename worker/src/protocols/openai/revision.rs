//! Lists of chat programs that differ from the thread in more than new messages (docs/clients.md). The thread
//! is changed to match the list, and the last message of a person is answered.
//!
//! Messages are deleted only in the transaction that stores or answers the new message, so a refusal or a
//! crash loses nothing. Earlier messages with another text are changed before that, one request each. A
//! repeated request changes the remaining ones.

use bobbin::json;
use bobbin::protocols::openai::completion_request::CompletionRequest;
use bobbin::protocols::openai::completion_revision::{
    Lists, Replacement, Revision, patch, revision, stored_by,
};
use bobbin::request::ThreadRoute;
use serde_json::Value;

use crate::bindings::random;
use crate::protocols::openai::conversations::Conversation;
use crate::protocols::openai::{OpenAi, UserMessage, hex, now_us};
use crate::protocols::thread_client::{Step, good, text_of};

/// Number of messages of a thread that are compared with a list.
const ROWS: &str = "200";

/// The position of a request's message in the thread.
pub(crate) enum Placement {
    /// It is this stored message, created at this time in microseconds.
    Stored(String, i64),
    /// It is not stored yet. It replaces a message and all later ones, or it is the next one.
    New { replaces: Option<String> },
}

impl OpenAi<'_> {
    /// Apply a list of messages to the thread, up to the new message.
    pub(crate) async fn revise(
        &self,
        conversation: &Conversation,
        lists: Lists,
        request: &CompletionRequest<'_>,
        said: &UserMessage<'_>,
    ) -> Step<Placement> {
        let Conversation { thread, key, .. } = conversation;
        let (rows, more) = self.talk().page(thread, &[("limit", ROWS)]).await?;
        if let Some(row) = key.as_deref().and_then(|key| stored_by(&rows, key)) {
            let created = row.get("created_at").and_then(Value::as_i64);
            return Ok(Placement::Stored(text_of(row, "id").to_owned(), created.unwrap_or_else(now_us)));
        }
        let Revision { changed, replaced } =
            revision(&rows, more, lists, &request.turns()?, said.files.len());
        for (message, text) in &changed {
            self.change(thread, message, text).await?;
        }
        match replaced {
            None => Ok(Placement::New { replaces: None }),
            Some(replaced) => self.replace(thread, key.as_deref(), &replaced, said).await,
        }
    }

    async fn change(&self, thread: &str, message: &str, text: &str) -> Step<()> {
        let route = ThreadRoute::PatchMessage(message.to_owned());
        let body = json!({ "content": text }).to_string();
        good(self.talk().ask(thread, route, &[], None, &body).await?).map(drop)
    }

    async fn replace(
        &self,
        thread: &str,
        key: Option<&str>,
        replaced: &Replacement,
        said: &UserMessage<'_>,
    ) -> Step<Placement> {
        let Some(first) = replaced.messages.first() else { return Ok(Placement::New { replaces: None }) };
        let newest = self.talk().newest_run(thread).await?;
        let is_running = newest.as_ref().is_some_and(|run| text_of(run, "status") == "running");
        if is_running && replaced.is_same(said.text) {
            // Another answer is requested, and one is in progress.
            return Ok(Placement::Stored(first.clone(), now_us()));
        }
        self.talk().end_paused(thread, newest.as_ref()).await?;
        if !replaced.is_answered {
            return Ok(Placement::New { replaces: Some(first.clone()) });
        }
        let mut metadata = said.metadata.clone();
        if let (None, Some(kept)) = (key, metadata.pointer_mut("/openai").and_then(Value::as_object_mut)) {
            // A request that is repeated without a key finds the message by this field.
            kept.insert("at".into(), now_us().into());
        }
        let key = key.map_or_else(|| format!("openai:{}", hex(&random())), str::to_owned);
        let query = [("truncate", "true"), ("run", "true")];
        let body = patch(replaced, said.text, &metadata).to_string();
        let route = ThreadRoute::PatchMessage(first.clone());
        good(self.talk().ask(thread, route, &query, Some(key), &body).await?)?;
        Ok(Placement::Stored(first.clone(), now_us()))
    }
}
