//! OpenAI's responses (docs/clients.md). Each is the outcome of one message, or of the decisions about the
//! calls of one reply. Its id names the thread and that message.

use bobbin::Error;
use bobbin::definitions::Agent;
use bobbin::engine::feed::FeedTarget;
use bobbin::json;
use bobbin::limits::{EPHEMERAL_S, SECOND_US};
use bobbin::protocols::encode::Encode;
use bobbin::protocols::openai::models;
use bobbin::protocols::openai::response_request::{ResponseRequest, response_id};
use bobbin::protocols::openai::responses::{Responses, Settings};
use bobbin::request::ThreadRoute;
use bobbin::signing::digest;
use serde_json::Value;

use crate::answer::Response;
use crate::events::ResponseForm;
use crate::protocols::encoder::Encoder;
use crate::protocols::openai::conversations::Conversation;
use crate::protocols::openai::previous_response::{PREVIOUS, followed, known_id, no_response};
use crate::protocols::openai::{OpenAi, UserMessage, extra_for, extra_of, now_us};
use crate::protocols::thread_client::{Step, Stopped, found, good, text_of};

/// An existing response.
struct KnownResponse {
    settings: Settings,
    of: FeedTarget,
    /// The message that it answers, or the reply that it continues.
    message: String,
}

impl OpenAi<'_> {
    /// `POST /v1/responses`.
    pub(crate) async fn respond(&self, body: &str) -> Step<Response> {
        let request = ResponseRequest::parse(body)?;
        let agent = models::agent(self.catalog, &request.model)?;
        self.check_tools(&request.tools)?;
        let hash = digest(&["openai", &agent.name, body]);
        let known = if request.new.says() {
            self.to_message(&request, agent, &hash).await?
        } else {
            self.to_answers(&request, agent).await?
        };
        if request.background && !request.stream {
            return self.value(&Responses::new(known.settings).whole());
        }
        let how = if request.stream { ResponseForm::Streamed } else { ResponseForm::Whole };
        let extra = extra_for(&known.settings.thread, &request.ignored);
        self.tell_response(known, how, extra).await
    }

    async fn to_message(&self, request: &ResponseRequest, agent: &Agent, hash: &str) -> Step<KnownResponse> {
        let metadata = json!({ "openai": {
            "request": hash, "model": request.model, "background": request.background, "store": request.store,
            "previous_response_id": request.previous, "metadata": request.asked.get("metadata"),
            "reasoning": request.reasoning, "approves": request.approves,
        } });
        let said = UserMessage { text: &request.new.text, files: &request.new.files, metadata };
        let (thread, message, created) = match followed(request)? {
            Some(followed) => self.say_behind(followed, request, agent, hash, &said).await?,
            None => {
                let conversation = self.conversation_of(request, agent, hash).await?;
                let (message, created) = self.say(&conversation, Vec::new(), &said).await?;
                (conversation.thread, message, created)
            }
        };
        let settings = Settings {
            asked: request.asked.clone(),
            reasoning: request.reasoning,
            approves: request.approves,
            model: request.model.clone(),
            ..self.response_settings(&thread, &message, created)
        };
        Ok(KnownResponse { settings, of: FeedTarget::Message(message.clone()), message })
    }

    /// Handles results of calls and decisions. The reply that made the calls continues.
    async fn to_answers(&self, request: &ResponseRequest, agent: &Agent) -> Step<KnownResponse> {
        let named = match (&request.previous, &request.conversation, &request.referred) {
            (Some(previous), _, _) => Some(known_id(previous, PREVIOUS)?.0),
            (None, Some(name), _) => Some(name.clone()),
            (None, None, Some(reference)) => Some(reference.place()?.thread),
            (None, None, None) => None,
        };
        let calls = request.new.results.iter().map(|(call, _)| call);
        let told = calls.chain(request.new.approvals.iter().map(|(wait, ..)| wait));
        let thread = self.thread_of_results(named, agent, told).await?;
        let reply = self.decide(&thread, &request.new.results, &request.new.approvals).await?;
        let settings = Settings {
            asked: request.asked.clone(),
            reasoning: request.reasoning,
            approves: request.approves,
            model: request.model.clone(),
            continues: Some(reply.clone()),
            ..self.response_settings(&thread, &reply, now_us())
        };
        Ok(KnownResponse { settings, of: FeedTarget::From(reply.clone()), message: reply })
    }

    /// The thread of a request that follows no response. Creates it if it does not exist.
    async fn conversation_of(
        &self,
        request: &ResponseRequest,
        agent: &Agent,
        hash: &str,
    ) -> Step<Conversation> {
        let instructed = request.instructions.as_ref();
        let history = || {
            let instructions =
                instructed.map(|text| json!({ "role": "system", "content": text, "silent": true }));
            Ok(instructions.into_iter().chain(request.history()?).collect())
        };
        let Some(name) = &request.conversation else {
            let expires_in = (!request.store).then_some(EPHEMERAL_S);
            return self.unnamed(agent, hash, expires_in, history).await;
        };
        let conversation = self.conversation(name, agent, hash, history).await?;
        self.instruct(&conversation.thread, None, request.instructions.as_deref()).await?;
        Ok(conversation)
    }

    /// `GET /v1/responses/:id`: the current state, or a stream from its beginning or after an event.
    pub(crate) async fn response(&self, id: &str) -> Step<Response> {
        let mut known = self.known(id).await?;
        if self.query.get("stream") != Some("true") {
            return self.tell_response(known, ResponseForm::Now, extra_of(200)).await;
        }
        if let Some(after) = self.query.get("starting_after") {
            let wrong = || Error::field("starting_after", "`starting_after` is the number of an event.");
            known.settings.after = Some(after.parse().map_err(|_| wrong())?);
        }
        self.tell_response(known, ResponseForm::Streamed, extra_of(200)).await
    }

    /// `POST /v1/responses/:id/cancel`: stops the run if it is working on this response.
    pub(crate) async fn cancel_response(&self, id: &str) -> Step<Response> {
        let known = self.known(id).await?;
        let thread = known.settings.thread.clone();
        let only = json!({ "answer_to": known.message }).to_string();
        good(self.talk().ask(&thread, ThreadRoute::Stop, &[], None, &only).await?)?;
        self.tell_response(known, ResponseForm::Now, extra_of(200)).await
    }

    /// `DELETE /v1/responses/:id`: deletes the thread if it has no other content.
    pub(crate) async fn delete_response(&self, id: &str) -> Step<Response> {
        let thread = self.known(id).await?.settings.thread;
        let told = self.talk().ask(&thread, ThreadRoute::ListRuns, &[("limit", "2")], None, "").await?;
        let runs = good(told)?;
        if runs.get("runs").and_then(Value::as_array).is_some_and(|runs| runs.len() > 1) {
            let text = "The conversation has more than this response.";
            return Err(Stopped::Error(Error::field("id", text).hint("Delete its thread.")));
        }
        let told = self.talk().ask(&thread, ThreadRoute::Delete, &[], None, "").await?;
        good(told)?;
        self.value(&json!({ "id": id, "object": "response.deleted", "deleted": true }))
    }

    /// The response of this id.
    async fn known(&self, id: &str) -> Step<KnownResponse> {
        let (thread, message) = known_id(id, "id")?;
        let route = ThreadRoute::GetMessage(message.clone());
        let told = self.talk().ask(&thread, route, &[], None, "").await?;
        let body = found(told)?.ok_or_else(|| Stopped::Error(no_response(id)))?;
        let row = body.get("message").unwrap_or(&body);
        let created = row.get("created_at").and_then(Value::as_i64).unwrap_or(0);
        let kept = row.pointer("/metadata/openai").cloned().unwrap_or_default();
        let model = match kept.get("model").and_then(Value::as_str) {
            Some(model) => model.to_owned(),
            None => self.agent_of(&thread).await?,
        };
        let goes_on = text_of(row, "role") == "assistant";
        let settings = Settings {
            model,
            reasoning: kept.get("reasoning") == Some(&json!(true)),
            approves: kept.get("approves") == Some(&json!(true)),
            asked: kept,
            continues: goes_on.then(|| message.clone()),
            ..self.response_settings(&thread, &message, created)
        };
        let of =
            if goes_on { FeedTarget::From(message.clone()) } else { FeedTarget::Message(message.clone()) };
        Ok(KnownResponse { settings, of, message })
    }

    async fn agent_of(&self, thread: &str) -> Step<String> {
        let told = self.talk().ask(thread, ThreadRoute::Get, &[], None, "").await?;
        let body = good(told)?;
        Ok(body.pointer("/thread/agent_id").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    fn response_settings(&self, thread: &str, message: &str, created_us: i64) -> Settings {
        Settings {
            id: response_id(thread, message),
            created: created_us / SECOND_US,
            thread: thread.to_owned(),
            client_tools: self.client_tools().map(str::to_owned).collect(),
            ..Settings::default()
        }
    }

    async fn tell_response(
        &self,
        known: KnownResponse,
        how: ResponseForm,
        extra: Vec<(String, String)>,
    ) -> Step<Response> {
        let KnownResponse { settings, of, .. } = known;
        let (thread, reasoning) = (settings.thread.clone(), settings.reasoning);
        self.follow(&thread, of, how, reasoning, extra, Encoder::new(Responses::new(settings))).await
    }
}
