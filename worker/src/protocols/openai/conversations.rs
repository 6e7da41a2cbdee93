//! Conversations of clients of OpenAI: finds the thread, sends messages to it, and answers its questions. A
//! repeated request finds what it has already done.

use bobbin::definitions::Agent;
use bobbin::json;
use bobbin::limits::RESENT_US;
use bobbin::protocols::open_waits::WaitIndex;
use bobbin::protocols::openai::call_id;
use bobbin::request::{ThreadRoute, thread_id};
use bobbin::{Error, Result};
use serde_json::Value;

use crate::bindings::random;
use crate::create;
use crate::protocols::openai::{OpenAi, UserMessage, hex, now_us};
use crate::protocols::thread_client::{Step, Stopped, found, good, text_of};

/// The thread of a request.
pub(crate) struct Conversation {
    pub(crate) thread: String,
    /// The stored message, if the request was made before.
    pub(crate) stored: Option<String>,
    /// The key under which the message is stored once.
    pub(crate) key: Option<String>,
    /// Whether the thread was created for this request.
    pub(crate) is_new: bool,
}

/// A person's decision: the wait, whether it is approved, and the reason.
pub(crate) type Approval = (String, bool, Option<String>);

impl OpenAi<'_> {
    /// The existing thread with this id or key.
    pub(crate) async fn thread(&self, name: &str, agent: &Agent) -> Step<Option<String>> {
        if thread_id::is_valid(name) && self.is_of(name, agent).await? {
            return Ok(Some(name.to_owned()));
        }
        let keyed = thread_id::of_key(self.caller.owner(), name);
        Ok(self.is_of(&keyed, agent).await?.then_some(keyed))
    }

    /// Whether the caller has this thread. A thread of another agent is refused.
    pub(crate) async fn is_of(&self, thread: &str, agent: &Agent) -> Step<bool> {
        Ok(self.talk().of_agent(thread, agent, "model").await?.is_some())
    }

    /// The thread of a name. Creates it with the earlier messages if it does not exist.
    pub(crate) async fn conversation(
        &self,
        name: &str,
        agent: &Agent,
        hash: &str,
        history: impl Fn() -> Result<Vec<Value>>,
    ) -> Step<Conversation> {
        let (thread, is_new) = match self.thread(name, agent).await? {
            Some(thread) => (thread, false),
            None => {
                thread_id::check_key(name).map_err(|error| error.at("conversation"))?;
                let body = json!({ "agent_id": agent.name, "key": name, "history": history()? });
                let made = create::create(self.env, self.caller.clone(), None, body.to_string()).await?;
                (text_of(&good(made)?, "threadId").to_owned(), true)
            }
        };
        Ok(Conversation { is_new, ..self.in_thread(thread, hash).await? })
    }

    /// The conversation in an existing thread. A repeated request without a key refers to the message that it
    /// has stored.
    pub(crate) async fn in_thread(&self, thread: String, hash: &str) -> Step<Conversation> {
        let key = self.idempotency_key.as_ref().map(|key| format!("openai:{key}"));
        let again = key.is_none() && self.sent_before().is_some_and(|times| times > 0);
        let stored = if again { self.stored(&thread, hash).await? } else { None };
        Ok(Conversation { thread, stored, key, is_new: false })
    }

    /// The message that the same request stored a short time ago.
    async fn stored(&self, thread: &str, hash: &str) -> Step<Option<String>> {
        let query = [("limit", "50"), ("order", "desc")];
        let told = self.talk().ask(thread, ThreadRoute::ListMessages, &query, None, "").await?;
        let page = good(told)?;
        let rows = page.get("messages").and_then(Value::as_array).into_iter().flatten();
        let since = now_us() - RESENT_US;
        let same = |row: &&Value| {
            row.pointer("/metadata/openai/request").and_then(Value::as_str) == Some(hash)
                && stored_at(row).is_some_and(|at| at > since)
        };
        Ok(rows.rev().find(same).map(|row| text_of(row, "id").to_owned()))
    }

    /// The thread of a request that names none. It has a time after which it is deleted.
    pub(crate) async fn unnamed(
        &self,
        agent: &Agent,
        hash: &str,
        expires_in: Option<i64>,
        history: impl Fn() -> Result<Vec<Value>>,
    ) -> Step<Conversation> {
        let id = self.id_of_request(hash).await?;
        let mut body = json!({ "agent_id": agent.name, "history": history()? });
        if let (Some(seconds), Some(fields)) = (expires_in, body.as_object_mut()) {
            fields.insert("expires_in".into(), seconds.into());
            fields.insert("tags".into(), json!(["ephemeral"]));
        }
        let made = create::create_as(self.env, self.caller.clone(), id.clone(), body.to_string()).await?;
        good(made)?;
        Ok(Conversation { thread: id, stored: None, key: Some(format!("openai:{hash}")), is_new: true })
    }

    /// The id of the thread for this request. A repeated request gets the same id.
    pub(crate) async fn id_of_request(&self, hash: &str) -> Step<String> {
        let explicit = self.idempotency_key.as_deref();
        let of = |time: i64| {
            let owner = self.caller.owner().unwrap_or_default();
            thread_id::of_parts(&["request", owner, hash, &time.to_string(), explicit.unwrap_or_default()])
        };
        let time = now_us() / RESENT_US;
        let id = of(time);
        Ok(match (explicit, self.sent_before()) {
            (Some(_), _) => of(0),
            (None, None) => thread_id::from_random(random()),
            // The same question, sent again on purpose, gets another thread.
            (None, Some(0)) if self.exists(&id).await? => thread_id::from_random(random()),
            (None, Some(times))
                if times > 0 && !self.exists(&id).await? && self.exists(&of(time - 1)).await? =>
            {
                of(time - 1)
            }
            (None, Some(_)) => id,
        })
    }

    async fn exists(&self, thread: &str) -> Step<bool> {
        let told = self.talk().ask(thread, ThreadRoute::Get, &[], None, "").await?;
        Ok(found(told)?.is_some())
    }

    /// Stores a person's message once. Returns it with the time at which it was stored. `headers` may name
    /// the message that it follows or replaces.
    pub(crate) async fn say(
        &self,
        conversation: &Conversation,
        headers: Vec<(String, String)>,
        said: &UserMessage<'_>,
    ) -> Step<(String, i64)> {
        let Conversation { thread, stored, key, .. } = conversation;
        if let Some(message) = stored {
            let route = ThreadRoute::GetMessage(message.clone());
            let told = self.talk().ask(thread, route, &[], None, "").await?;
            let body = good(told)?;
            let created = body.get("message").unwrap_or(&body).get("created_at").and_then(Value::as_i64);
            return Ok((message.clone(), created.unwrap_or_else(now_us)));
        }
        let &UserMessage { text, files, ref metadata } = said;
        let body = json!({ "role": "user", "content": text, "attachments": files, "metadata": metadata })
            .to_string();
        // A generated key, so that the request can be repeated if it is lost on the way.
        let key = key.clone().unwrap_or_else(|| format!("openai:{}", hex(&random())));
        let told =
            self.talk().ask_with(thread, ThreadRoute::PostMessage, &[], Some(key), headers, &body).await?;
        let posted = good(told)?;
        let message = text_of(&posted, "messageId");
        if message.is_empty() {
            return Err(Stopped::Error(Error::internal("a message was stored and has no id")));
        }
        let created = posted.pointer("/message/created_at").and_then(Value::as_i64);
        Ok((message.to_owned(), created.unwrap_or_else(now_us)))
    }

    /// Sends results of calls that the client has run, and decisions of people. Returns the reply that made
    /// the calls. Known answers are skipped.
    pub(crate) async fn decide(
        &self,
        thread: &str,
        results: &[(String, String)],
        approvals: &[Approval],
    ) -> Step<String> {
        let waits = self.talk().waits(thread).await?;
        let answers = answers(&waits, results, approvals);
        let of_reply = |(wait, _): &(&Value, Value)| {
            wait.pointer("/call/messageId").and_then(Value::as_str).map(str::to_owned)
        };
        let reply = answers.iter().find_map(of_reply).ok_or_else(|| {
            Error::field("messages", "The conversation waits for none of this.")
                .hint("Send the id of a call that was asked for, in the conversation that it belongs to.")
        })?;
        let open = answers.into_iter().filter(|(wait, _)| text_of(wait, "state") == "open");
        let decisions: Vec<Value> = open.map(|(_, decision)| decision).collect();
        if !decisions.is_empty() {
            let body = json!({ "decisions": decisions }).to_string();
            let told = self.talk().ask(thread, ThreadRoute::DecideWaits, &[], None, &body).await?;
            good(told)?;
        }
        Ok(reply)
    }
}

/// The time at which a request stored a message, or changed it.
fn stored_at(row: &Value) -> Option<i64> {
    row.pointer("/metadata/openai/at").or_else(|| row.get("created_at"))?.as_i64()
}

/// The waits that are answered, with their decisions.
fn answers<'a>(
    waits: &'a [Value],
    results: &[(String, String)],
    approvals: &[Approval],
) -> Vec<(&'a Value, Value)> {
    let asked = WaitIndex::of(waits);
    let of_calls = results.iter().filter_map(|(told, output)| {
        let (call, _) = call_id::of(told);
        let wait = asked.of_call(call)?;
        let id = wait.get("id");
        match text_of(wait, "kind") {
            "question" => Some((wait, json!({ "id": id, "decision": "answer", "text": output }))),
            "client_tool" => Some((wait, json!({ "id": id, "decision": "answer", "result": output }))),
            _ => None,
        }
    });
    let of_people = approvals.iter().filter_map(|(shown, approved, reason)| {
        let (id, _) = call_id::of(shown);
        let wait = asked.wait(id)?;
        Some((
            wait,
            match (approved, reason) {
                (true, _) => json!({ "id": id, "decision": "approve" }),
                (false, Some(reason)) => json!({ "id": id, "decision": "deny", "reason": reason }),
                (false, None) => json!({ "id": id, "decision": "deny" }),
            },
        ))
    });
    of_calls.chain(of_people).collect()
}
