//! The family of a thread, for code in it.

use futures::future::LocalBoxFuture;
use serde_json::{Map, Value};

use crate::engine::handle::ThreadHandle;
use crate::error::{Code, Error, Result};
use crate::host::http::Response;
use crate::json;
use crate::request::{StreamRoute, ThreadRequest, ThreadRoute};
use crate::sdk::NewMessage;
use crate::sdk::relations::{FamilyApi, Subagent, attached};
use crate::store::children as registry;
use crate::store::children::ChildState;

impl FamilyApi for ThreadHandle {
    fn children(&self) -> Result<Vec<Subagent>> {
        let children = self.thread.read(|_, sql| registry::all(sql))?;
        Ok(children.into_iter().map(Subagent::of).collect())
    }

    fn is_child(&self, reference: &str) -> Result<bool> {
        let child = self.thread.read_mut(|state, sql| state.child(sql, reference))?;
        Ok(child.is_some_and(|child| child.state != ChildState::Pending))
    }

    fn parent(&self) -> Result<Option<String>> {
        self.thread.read(|state, _| Ok(state.meta.parent.as_ref().map(|parent| parent.thread.clone())))
    }

    fn arguments(&self) -> Result<Map<String, Value>> {
        self.thread.read(|state, _| {
            Ok(state.meta.parent.as_ref().map(|parent| parent.arguments.clone()).unwrap_or_default())
        })
    }

    fn notify_parent(&self, text: &str) -> Result<()> {
        self.scope.writes("tell the parent")?;
        self.thread.subagents().notify_parent(text)
    }

    fn set_status(&self, text: &str) -> Result<()> {
        self.scope.writes("say how the thread is")?;
        self.thread.subagents().set_status(text)
    }

    fn message_json(&self, message: NewMessage) -> Result<Value> {
        let NewMessage { role, content, silent, metadata, attachments } =
            self.thread.variables().shown(message).inner();
        let attachments: Vec<Value> = attachments.iter().map(attached).collect();
        Ok(json!({
            "role": role, "content": content, "silent": silent, "metadata": metadata, "attachments": attachments,
        }))
    }

    fn ask_thread(&self, request: ThreadRequest) -> LocalBoxFuture<'static, Result<Value>> {
        let thread = self.thread.clone();
        // The other thread checks the effects of a member.
        let reads =
            matches!(request.route, ThreadRoute::Get | ThreadRoute::ListMessages | ThreadRoute::Member);
        let may = if reads { Ok(()) } else { self.scope.writes("change another thread") };
        Box::pin(async move {
            may?;
            let reply = thread.subagents().ask(request).await?;
            let body = reply.body.as_ref().map_or("null", |body| body.get());
            crate::json::from_str(body).map_err(Error::internal)
        })
    }

    fn ask_stream(&self, request: ThreadRequest<StreamRoute>) -> LocalBoxFuture<'static, Result<Response>> {
        let thread = self.thread.clone();
        Box::pin(async move {
            let answer = thread.subagents().ask_streamed(&request).await;
            answer
                .map_err(|error| Error::new(Code::Overloaded, format!("The thread did not answer: {error}.")))
        })
    }
}
