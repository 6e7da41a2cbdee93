//! Requests to other threads through the API, with admin scope.

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;

use crate::engine::features::Subagents;
use crate::error::{Code, Error, Result};
use crate::host::Sibling;
use crate::host::http::{FetchError, Response};
use crate::limits;
use crate::request::between::error_of;
use crate::request::{Reply, StreamRoute, ThreadRequest, thread_id};

impl Subagents<'_> {
    /// Adds the family's generation to a request, so that it reaches the intended thread and not a later
    /// thread with the same key.
    pub(super) fn aimed<R>(&self, request: ThreadRequest<R>) -> Result<ThreadRequest<R>> {
        if request.life.is_some() || !thread_id::is_of_key(&request.thread_id) {
            return Ok(request);
        }
        let life = self.read(|state, _| Ok(state.meta.family_generation()))?;
        Ok(ThreadRequest { life: Some(life), ..request })
    }

    /// Sends a request to another thread.
    ///
    /// # Errors
    /// The other thread's error when it refuses. `overloaded` when it does not answer: the request may have
    /// taken effect.
    pub(crate) async fn ask(&self, request: ThreadRequest) -> Result<Reply> {
        let mut request = self.aimed(request)?;
        let to = Sibling::Thread(request.thread_id.clone());
        let body = std::mem::take(&mut request.body);
        let mut text = request.to_json()?;
        text.push('\n');
        text.push_str(&body);
        let text = self.host.sibling(to, text).await?;
        let reply: Reply = crate::json::from_str(&text).map_err(|error| {
            Error::new(Code::Overloaded, format!("The thread gave no readable answer: {error}."))
        })?;
        if reply.status < 300 {
            return Ok(reply);
        }
        let body = reply.body.as_ref().map_or("", |body| body.get());
        Err(error_of(reply.status, reply.retry_after, body.as_bytes()))
    }
}

impl Subagents<'_> {
    /// Sends a request without a body to a streamed route of another thread.
    ///
    /// # Errors
    /// The other thread failed before it responded.
    pub(crate) async fn ask_streamed(
        &self,
        request: &ThreadRequest<StreamRoute>,
    ) -> Result<Response, FetchError> {
        let failed = |error: Error| FetchError(error.into_message());
        let request = self.aimed(request.clone()).map_err(failed)?;
        let call = request.to_json().map_err(failed)?;
        self.host.sibling_stream(request.thread_id.clone(), call).await
    }

    /// Sends requests to several threads, a bounded number at a time. The replies are in the order of the
    /// requests.
    pub(crate) async fn ask_all(&self, requests: Vec<ThreadRequest>) -> Vec<Result<Reply>> {
        let mut waiting = requests.into_iter().enumerate();
        let mut asked: FuturesUnordered<LocalBoxFuture<'_, (usize, Result<Reply>)>> = FuturesUnordered::new();
        let mut answers = Vec::new();
        loop {
            while asked.len() < limits::CHILDREN_ASKED
                && let Some((place, request)) = waiting.next()
            {
                asked.push(Box::pin(async move { (place, self.ask(request).await) }));
            }
            let Some(answer) = asked.next().await else { break };
            answers.push(answer);
        }
        answers.sort_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}
