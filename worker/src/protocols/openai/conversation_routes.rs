//! `/v1/conversations` (docs/clients.md): clients of OpenAI create, read and delete threads.

use std::collections::BTreeSet;

use bobbin::json;
use bobbin::protocols::openai::conversation_items::{
    ItemSettings, NewConversation, added, changed, conversation, deleted,
};
use bobbin::protocols::openai::item_id::message_of;
use bobbin::protocols::openai::models;
use bobbin::request::{ThreadRoute, thread_id};
use bobbin::signing::digest;
use bobbin::{Code, Error};
use serde_json::Value;

use crate::answer::Response;
use crate::create;
use crate::protocols::openai::OpenAi;
use crate::protocols::thread_client::{Step, Stopped, found, good, text_of};

/// Default and maximum number of items in a page.
const ITEMS: u32 = 20;
const ITEMS_MAX: u32 = 100;

/// Maximum number of messages for a page of items: more than one reply with its calls has.
const ROWS: &str = "500";

impl OpenAi<'_> {
    /// `POST /v1/conversations`.
    pub(crate) async fn converse(&self, body: &str) -> Step<Response> {
        let NewConversation { agent, properties, history } = NewConversation::parse(body)?;
        let agent = models::agent_of_conversation(self.catalog, agent.as_deref())?;
        let id = self.id_of_request(&digest(&["openai conversation", &agent.name, body])).await?;
        let body = json!({ "agent_id": agent.name, "properties": properties, "history": history });
        let made = create::create_as(self.env, self.caller.clone(), id.clone(), body.to_string()).await?;
        good(made)?;
        self.conversation_shown(&id).await
    }

    /// `GET /v1/conversations/:id`.
    pub(crate) async fn conversation_shown(&self, name: &str) -> Step<Response> {
        self.value(&conversation(&self.facts(name).await?))
    }

    /// `POST /v1/conversations/:id`.
    pub(crate) async fn change_conversation(&self, name: &str, body: &str) -> Step<Response> {
        let facts = self.facts(name).await?;
        let properties = changed(body, facts.get("properties").unwrap_or(&Value::Null))?;
        let body = json!({ "properties": properties }).to_string();
        let id = text_of(&facts, "id");
        good(self.talk().ask(id, ThreadRoute::Patch, &[], None, &body).await?)?;
        self.conversation_shown(id).await
    }

    /// `DELETE /v1/conversations/:id`.
    pub(crate) async fn delete_conversation(&self, name: &str) -> Step<Response> {
        let facts = self.facts(name).await?;
        let id = text_of(&facts, "id");
        good(self.talk().ask(id, ThreadRoute::Delete, &[], None, "").await?)?;
        self.value(&deleted(id))
    }

    /// `GET /v1/conversations/:id/items`.
    pub(crate) async fn items(&self, name: &str) -> Step<Response> {
        let limit = self.query.number("limit", ITEMS, ITEMS_MAX)?;
        let newest_first = match self.query.get("order") {
            None | Some("desc") => true,
            Some("asc") => false,
            Some(_) => return Err(Error::field("order", "`order` is asc or desc.").into()),
        };
        let after = self.query.get("after").filter(|id| !id.is_empty());
        let cursor = after.map(|id| message_of(id).ok_or_else(|| no_cursor(id))).transpose()?;
        let facts = self.facts(name).await?;
        let thread = text_of(&facts, "id");
        let mut query = vec![("limit", ROWS), ("order", if newest_first { "desc" } else { "asc" })];
        query.extend(cursor.as_deref().map(|id| (if newest_first { "before" } else { "after" }, id)));
        let page = good(self.talk().ask(thread, ThreadRoute::ListMessages, &query, None, "").await?)?;
        let rows = page.get("messages").and_then(Value::as_array).cloned().unwrap_or_default();
        let more = page.get("hasMore") == Some(&json!(true));
        let client_tools = self.client_tool_names();
        let made = ItemSettings { thread, client_tools: &client_tools };
        self.value(&made.page(&rows, more, newest_first, limit as usize))
    }

    /// `POST /v1/conversations/:id/items`: adds instructions. A person's message needs an answer, and
    /// therefore a response.
    pub(crate) async fn add_items(&self, name: &str, body: &str) -> Step<Response> {
        let messages = added(body)?;
        let facts = self.facts(name).await?;
        let thread = text_of(&facts, "id");
        let hash = digest(&["openai items", body, self.idempotency_key.as_deref().unwrap_or_default()]);
        let again = self.idempotency_key.is_some() || self.sent_before().is_some();
        let mut rows = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            let key = again.then(|| format!("openai:items:{hash}:{at}"));
            let told =
                self.talk().ask(thread, ThreadRoute::PostMessage, &[], key, &message.to_string()).await?;
            rows.extend(good(told)?.get_mut("message").map(Value::take));
        }
        let client_tools = self.client_tool_names();
        let made = ItemSettings { thread, client_tools: &client_tools };
        self.value(&made.page(&rows, false, false, rows.len()))
    }

    /// `GET /v1/conversations/:id/items/:item`: a message.
    pub(crate) async fn item(&self, name: &str, item: &str) -> Step<Response> {
        let facts = self.facts(name).await?;
        let thread = text_of(&facts, "id");
        let row = self.message_of_item(thread, item).await?;
        let client_tools = self.client_tool_names();
        let made = ItemSettings { thread, client_tools: &client_tools };
        self.value(&made.item(&row).ok_or_else(|| Stopped::Error(no_item(item)))?)
    }

    /// `DELETE /v1/conversations/:id/items/:item`: a message.
    pub(crate) async fn delete_item(&self, name: &str, item: &str) -> Step<Response> {
        let facts = self.facts(name).await?;
        let thread = text_of(&facts, "id");
        let row = self.message_of_item(thread, item).await?;
        let route = ThreadRoute::DeleteMessage(text_of(&row, "id").to_owned());
        good(self.talk().ask(thread, route, &[], None, "").await?)?;
        self.value(&conversation(&facts))
    }

    async fn message_of_item(&self, thread: &str, item: &str) -> Step<Value> {
        let missing = || Stopped::Error(no_item(item));
        let route = ThreadRoute::GetMessage(message_of(item).ok_or_else(missing)?);
        let mut body = found(self.talk().ask(thread, route, &[], None, "").await?)?.ok_or_else(missing)?;
        Ok(body.get_mut("message").map(Value::take).unwrap_or(body))
    }

    fn client_tool_names(&self) -> BTreeSet<String> {
        self.client_tools().map(str::to_owned).collect()
    }

    /// The facts of a conversation, by the thread's id or key.
    async fn facts(&self, name: &str) -> Step<Value> {
        let keyed = thread_id::of_key(self.caller.owner(), name);
        let ids = [thread_id::is_valid(name).then_some(name), Some(keyed.as_str())];
        for id in ids.into_iter().flatten() {
            let told = self.talk().ask(id, ThreadRoute::Get, &[], None, "").await?;
            if let Some(mut body) = found(told)?
                && let Some(facts) = body.get_mut("thread")
            {
                return Ok(facts.take());
            }
        }
        let shown: String = name.chars().take(80).collect();
        Err(Stopped::Error(Error::new(Code::NotFound, format!("There is no conversation “{shown}”."))))
    }
}

fn no_item(item: &str) -> Error {
    let shown: String = item.chars().take(80).collect();
    Error::new(Code::NotFound, format!("There is no item “{shown}” that stands for a message."))
        .hint("Calls are read with the list of items.")
}

fn no_cursor(item: &str) -> Error {
    let shown: String = item.chars().take(80).collect();
    Error::field("after", format!("“{shown}” is no place in the list.")).hint("Send the `last_id` of a page.")
}
