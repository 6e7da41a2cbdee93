//! How a protocol of another system talks to a thread: in the requests of the API, one after the other.

use bobbin::access::Caller;
use bobbin::request::{Query, ThreadRequest, ThreadRoute};
use bobbin::{Code, Error, Result};
use serde_json::Value;

use crate::bindings::Env;
use crate::remote::Answer as Told;
use crate::router;

/// What stops a request: an error found here, or one of the thread's.
pub(crate) enum Stops {
    Error(Error),
    Told(Told),
}

impl From<Error> for Stops {
    fn from(error: Error) -> Stops {
        Stops::Error(error)
    }
}

pub(crate) type Step<T> = std::result::Result<T, Stops>;

/// Who talks, and to what.
#[derive(Clone)]
pub(crate) struct Talk<'a> {
    pub(crate) env: &'a Env,
    pub(crate) caller: &'a Caller,
    /// Which of several keys it was, for the log of decisions.
    pub(crate) fingerprint: &'a [(String, String)],
}

impl Talk<'_> {
    pub(crate) async fn ask(
        &self,
        thread: &str,
        route: ThreadRoute,
        query: &[(&str, &str)],
        idempotency_key: Option<String>,
        body: &str,
    ) -> Result<Told> {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        // What was done already is not done again.
        let again = route.reads() || idempotency_key.is_some();
        let headers = match route {
            ThreadRoute::DecideWaits => self.fingerprint.to_vec(),
            _ => Vec::new(),
        };
        let request = ThreadRequest {
            thread_id: thread.to_owned(),
            life: None,
            caller: self.caller.clone(),
            route,
            query: Query(query),
            idempotency_key,
            headers,
            body: String::new(),
        };
        match router::call_thread(self.env, thread, &request, body).await {
            // An object that was just restarted answers at once.
            Err(error) if again && error.code == Code::Overloaded => {
                router::call_thread(self.env, thread, &request, body).await
            }
            other => other,
        }
    }
}

/// What a thread answers, unless it refuses.
pub(crate) fn good(told: Told) -> Step<Value> {
    if told.status >= 400 {
        return Err(Stops::Told(told));
    }
    let text = told.body.as_string().unwrap_or_default();
    Ok(serde_json::from_str(&text).map_err(Error::internal)?)
}

/// The same; none where there is no such thread, or not for the caller.
pub(crate) fn found(told: Told) -> Step<Option<Value>> {
    if told.status == 404 { Ok(None) } else { good(told).map(Some) }
}

pub(crate) fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
