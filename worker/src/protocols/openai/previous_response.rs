//! The response that another one follows. If its thread has no newer messages, the new response continues in
//! that thread, otherwise in a copy. The copy's id is derived from the request, so a repeated request finds
//! what it has already done.

use bobbin::definitions::Agent;
use bobbin::json;
use bobbin::limits::EPHEMERAL_S;
use bobbin::protocols::openai::item_id;
use bobbin::protocols::openai::response_request::{ResponseRequest, parse_id};
use bobbin::request::{COPY, FOLLOWS, ThreadRoute};
use bobbin::signing::digest;
use bobbin::{Code, Error};
use serde_json::Value;

use crate::protocols::openai::conversations::Conversation;
use crate::protocols::openai::{OpenAi, UserMessage};
use crate::protocols::thread_client::{Step, Stopped, good};
use crate::remote::ObjectResponse;

/// The field that names the previous response.
pub(crate) const PREVIOUS: &str = "previous_response_id";

/// A response that a request follows.
pub(crate) struct FollowedResponse {
    thread: String,
    /// The message that it answers, or its last reply; `None` to follow everything in the thread.
    message: Option<String>,
    /// The error if it does not exist.
    missing: Error,
}

/// The response that a request follows: the one that it names, or the one that the last item before its new
/// items refers to.
pub(crate) fn followed(request: &ResponseRequest) -> Step<Option<FollowedResponse>> {
    if let Some(previous) = &request.previous {
        let (thread, message) = known_id(previous, PREVIOUS)?;
        let missing = no_response(previous).at(PREVIOUS);
        return Ok(Some(FollowedResponse { thread, message: Some(message), missing }));
    }
    let Some(reference) = request.referred.as_ref().filter(|_| request.conversation.is_none()) else {
        return Ok(None);
    };
    let item_id::ItemLocation { thread, message } = reference.place()?;
    Ok(Some(FollowedResponse { thread, message, missing: reference.missing() }))
}

impl OpenAi<'_> {
    /// Stores a message after a response. Returns the thread that has it, the message, and the time at which
    /// it was stored.
    pub(crate) async fn say_behind(
        &self,
        followed: FollowedResponse,
        request: &ResponseRequest,
        agent: &Agent,
        hash: &str,
        said: &UserMessage<'_>,
    ) -> Step<(String, String, i64)> {
        let FollowedResponse { thread, message, missing } = followed;
        if !self.is_of(&thread, agent).await? {
            return Err(Stopped::Error(missing));
        }
        let here = self.in_thread(thread, hash).await?;
        let Some(message) = message else {
            let (said, created) = self.instruct_and_say(&here, None, request, said).await?;
            return Ok((here.thread, said, created));
        };
        match self.instruct_and_say(&here, Some(&message), request, said).await {
            Ok((said, created)) => return Ok((here.thread, said, created)),
            Err(Stopped::Told(told)) if told.status == Code::NotFound.status() => {
                return Err(Stopped::Error(missing));
            }
            Err(Stopped::Told(told)) if is_about(&told, FOLLOWS) => {}
            Err(stops) => return Err(stops),
        }
        let copy = self.id_of_request(hash).await?;
        self.copy(&here.thread, &message, &copy, request.store).await?;
        let there =
            Conversation { thread: copy, stored: None, key: Some(format!("openai:{hash}")), is_new: true };
        let (said, created) = self.instruct_and_say(&there, None, request, said).await?;
        Ok((there.thread, said, created))
    }

    async fn instruct_and_say(
        &self,
        conversation: &Conversation,
        behind: Option<&str>,
        request: &ResponseRequest,
        said: &UserMessage<'_>,
    ) -> Step<(String, i64)> {
        if conversation.stored.is_none() {
            self.instruct(&conversation.thread, behind, request.instructions.as_deref()).await?;
        }
        self.say(conversation, follows(behind), said).await
    }

    /// Stores instructions as a message that people are not shown, once a day for the same text.
    pub(crate) async fn instruct(
        &self,
        thread: &str,
        behind: Option<&str>,
        instructions: Option<&str>,
    ) -> Step<()> {
        let Some(text) = instructions else { return Ok(()) };
        let body = json!({ "role": "system", "content": text, "silent": true }).to_string();
        let key = Some(format!("openai:instructions:{}", digest(&[text])));
        let told =
            self.talk().ask_with(thread, ThreadRoute::PostMessage, &[], key, follows(behind), &body).await?;
        good(told).map(drop)
    }

    /// Copies a thread up to the end of the answer to a message.
    async fn copy(&self, thread: &str, message: &str, id: &str, stays: bool) -> Step<()> {
        let body = match stays {
            true => json!({ "answer_to": message }),
            false => json!({ "answer_to": message, "expires_in": EPHEMERAL_S, "tags": ["ephemeral"] }),
        };
        let headers = vec![(COPY.to_owned(), id.to_owned())];
        let told =
            self.talk().ask_with(thread, ThreadRoute::Fork, &[], None, headers, &body.to_string()).await?;
        if is_about(&told, "answer_to") {
            let text = "The conversation has gone on since that response, which is still being made.";
            let hint = "Follow it when it is done, cancel it, or follow the newest response.";
            return Err(Stopped::Error(Error::new(Code::Conflict, text).at(PREVIOUS).hint(hint)));
        }
        good(told).map(drop)
    }
}

/// Headers of a message that follows the answer to another message.
fn follows(message: Option<&str>) -> Vec<(String, String)> {
    message.map(|message| (FOLLOWS.to_owned(), message.to_owned())).into_iter().collect()
}

/// Whether the thread's response is an error about this field.
fn is_about(told: &ObjectResponse, field: &str) -> bool {
    let text = told.body.as_string().unwrap_or_default();
    let body: Value = bobbin::json::from_str(&text).unwrap_or_default();
    told.status == Code::Conflict.status()
        && body.pointer("/error/field").and_then(Value::as_str) == Some(field)
}

/// The thread and the message of a response.
pub(crate) fn known_id(id: &str, field: &str) -> Step<(String, String)> {
    parse_id(id).ok_or_else(|| Stopped::Error(no_response(id).at(field)))
}

pub(crate) fn no_response(id: &str) -> Error {
    let shown: String = id.chars().take(80).collect();
    Error::new(Code::NotFound, format!("There is no response “{shown}”."))
}
