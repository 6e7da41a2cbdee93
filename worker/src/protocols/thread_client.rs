//! The client with which other protocols call a thread: requests of the API, one after the other.

use std::pin::Pin;

use bobbin::access::Caller;
use bobbin::definitions::Agent;
use bobbin::protocols::run_events::seq_of;
use bobbin::request::{COPY, Query, ThreadRequest, ThreadRoute, thread_id};
use bobbin::{Code, Error, Result};
use serde_json::Value;

use crate::answer::{self, Response};
use crate::bindings::{Env, thrown};
use crate::remote::ObjectResponse as Told;
use crate::router;

/// An error that ends a request: one found here, or the thread's response.
pub(crate) enum Stopped {
    Error(Error),
    Told(Told),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Error(error)
    }
}

pub(crate) type Step<T> = std::result::Result<T, Stopped>;

/// The response to the client.
pub(crate) fn told(done: Step<Response>, origin: Option<&str>) -> Result<Response> {
    match done {
        Ok(response) => Ok(response),
        Err(Stopped::Error(error)) => Err(error),
        Err(Stopped::Told(told)) => {
            answer::of_answer(&told, origin).map_err(|error| Error::internal(thrown(&error)))
        }
    }
}

/// The thread of a conversation.
pub(crate) struct ThreadTarget {
    pub(crate) id: String,
    /// Which of the threads with this id it is, or `None` if there is only one.
    pub(crate) life: Option<i64>,
}

/// The caller and the deployment that it calls.
#[derive(Clone)]
pub(crate) struct ThreadClient<'a> {
    pub(crate) env: &'a Env,
    pub(crate) caller: &'a Caller,
    /// Which of several keys was used, for the log of decisions.
    pub(crate) fingerprint: &'a [(String, String)],
}

impl ThreadClient<'_> {
    /// Sends a request to a thread and returns its response. Boxed, because it has many callers and each
    /// would otherwise hold its whole state.
    pub(crate) fn ask<'b>(
        &'b self,
        thread: &'b str,
        route: ThreadRoute,
        query: &'b [(&'b str, &'b str)],
        idempotency_key: Option<String>,
        body: &'b str,
    ) -> Pin<Box<dyn Future<Output = Result<Told>> + 'b>> {
        let headers = match route {
            ThreadRoute::DecideWaits | ThreadRoute::DecideWait(_) => self.fingerprint.to_vec(),
            _ => Vec::new(),
        };
        self.ask_with(thread, route, query, idempotency_key, headers, body)
    }

    /// The same with the Worker's own headers.
    pub(crate) fn ask_with<'b>(
        &'b self,
        thread: &'b str,
        route: ThreadRoute,
        query: &'b [(&'b str, &'b str)],
        idempotency_key: Option<String>,
        headers: Vec<(String, String)>,
        body: &'b str,
    ) -> Pin<Box<dyn Future<Output = Result<Told>> + 'b>> {
        Box::pin(self.asked(thread, route, query, idempotency_key, headers, body))
    }

    async fn asked(
        &self,
        thread: &str,
        route: ThreadRoute,
        query: &[(&str, &str)],
        idempotency_key: Option<String>,
        headers: Vec<(String, String)>,
        body: &str,
    ) -> Result<Told> {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        // A repeated request must not repeat its effect.
        let names_copy = headers.iter().any(|(name, _)| name == COPY);
        let again = route.reads() || idempotency_key.is_some() || names_copy;
        let request =
            ThreadRequest { query: Query(query), idempotency_key, headers, ..self.request(thread, route) };
        match router::call_thread(self.env, thread, &request, body).await {
            // The object was restarted and responds at once to a second call.
            Err(error) if again && error.code == Code::Overloaded => {
                router::call_thread(self.env, thread, &request, body).await
            }
            other => other,
        }
    }

    /// Ends a run that waits for somebody, because its question is no longer of interest. A run that has
    /// continued meanwhile is left.
    pub(crate) async fn end_paused(&self, thread: &str, run: Option<&Value>) -> Step<()> {
        let Some(run) = run.filter(|run| text_of(run, "status") == "paused") else { return Ok(()) };
        let only = bobbin::json!({ "run": text_of(run, "run") }).to_string();
        good(self.ask(thread, ThreadRoute::Stop, &[], None, &only).await?).map(drop)
    }

    /// A request to a thread without a body.
    pub(crate) fn request(&self, thread: &str, route: ThreadRoute) -> ThreadRequest {
        ThreadRequest {
            thread_id: thread.to_owned(),
            life: None,
            caller: self.caller.clone(),
            route,
            query: Query::default(),
            idempotency_key: None,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// The thread of a conversation with an agent, if it exists, by its id or by the key that equals the
    /// client's id. `field` names the field with that id.
    pub(crate) async fn thread(&self, name: &str, agent: &Agent, field: &str) -> Step<Option<ThreadTarget>> {
        if thread_id::is_valid(name)
            && let Some(found) = self.of_agent(name, agent, field).await?
        {
            return Ok(Some(found));
        }
        thread_id::check_key(name).map_err(|error| error.at(field))?;
        self.of_agent(&thread_id::of_key(self.caller.owner(), name), agent, field).await
    }

    /// This thread, if the caller has it. A thread of another agent is refused.
    pub(crate) async fn of_agent(
        &self,
        thread: &str,
        agent: &Agent,
        field: &str,
    ) -> Step<Option<ThreadTarget>> {
        let told = self.ask(thread, ThreadRoute::Get, &[], None, "").await?;
        let Some(body) = found(told)? else { return Ok(None) };
        let of = |name: &str| body.pointer(&format!("/thread/{name}")).and_then(Value::as_str);
        if of("agent_id") == Some(&agent.name) || of("origin_agent_id") == Some(&agent.name) {
            let life = body.pointer("/thread/life").and_then(Value::as_i64);
            let life = life.filter(|_| thread_id::is_of_key(thread));
            return Ok(Some(ThreadTarget { id: thread.to_owned(), life }));
        }
        let text = format!("This conversation is one with “{}”.", of("origin_agent_id").unwrap_or_default());
        Err(Stopped::Error(
            Error::new(Code::Conflict, text)
                .at(field)
                .hint("Ask that agent, or begin a conversation with another id."),
        ))
    }

    /// The waits of a thread, open and closed, newest first.
    pub(crate) async fn waits(&self, thread: &str) -> Step<Vec<Value>> {
        let query = [("state", "all"), ("limit", "100")];
        let told = self.ask(thread, ThreadRoute::ListWaits, &query, None, "").await?;
        let mut body = good(told)?;
        Ok(match body.get_mut("waits").map(Value::take) {
            Some(Value::Array(waits)) => waits,
            _ => Vec::new(),
        })
    }

    /// The run that a thread began last.
    pub(crate) async fn newest_run(&self, thread: &str) -> Step<Option<Value>> {
        let told = self.ask(thread, ThreadRoute::ListRuns, &[("limit", "1")], None, "").await?;
        Ok(found(told)?.and_then(|mut runs| runs.pointer_mut("/runs/0").map(Value::take)))
    }

    /// Messages of a page, oldest first, and whether there are older ones.
    pub(crate) async fn page(&self, thread: &str, query: &[(&str, &str)]) -> Step<(Vec<Value>, bool)> {
        let query: Vec<(&str, &str)> = query.iter().copied().chain([("order", "desc")]).collect();
        let told = self.ask(thread, ThreadRoute::ListMessages, &query, None, "").await?;
        let page = good(told)?;
        let mut rows = page.get("messages").and_then(Value::as_array).cloned().unwrap_or_default();
        rows.sort_by_key(|row| seq_of(text_of(row, "id")));
        Ok((rows, page.get("hasMore").and_then(Value::as_bool) == Some(true)))
    }
}

/// The body of a successful response.
pub(crate) fn good(told: Told) -> Step<Value> {
    if told.status >= 400 {
        return Err(Stopped::Told(told));
    }
    let text = told.body.as_string().unwrap_or_default();
    Ok(bobbin::json::from_str(&text).map_err(Error::internal)?)
}

/// The same; `None` if the thread does not exist for the caller.
pub(crate) fn found(told: Told) -> Step<Option<Value>> {
    if told.status == 404 { Ok(None) } else { good(told).map(Some) }
}

pub(crate) fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
