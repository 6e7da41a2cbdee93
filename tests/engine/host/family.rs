//! How the objects of a world call each other. A call reaches the other object once what the caller wrote is durable;
//! when the callee dies the call fails, and when the caller dies the callee goes on.

use std::rc::Rc;

use bobbin::host::http::{FetchError, Response};
use bobbin::request::{Content, RawResponse, StreamRoute, ThreadRequest, ThreadRoute};
use bobbin::{Code, Error, Result};
use futures::{StreamExt, stream};

use super::executor::gate;
use super::member::{Member, Object};
use super::outside::Called;
use super::pipe::{Reader, Writer, pipe};
use super::world::World;

impl World {
    /// One object calls another with a text.
    pub(super) async fn call(self: &Rc<Self>, from: &Member, to: &str, call: &str) -> Result<String> {
        let (head, body) = call.split_once('\n').unwrap_or((call, ""));
        match serde_json::from_str::<ThreadRequest>(head) {
            Ok(request) => {
                let route = Some(request.route.clone());
                self.note(from, to, &request, route, body);
            }
            Err(error) => self.fail(format!("a call of {to} is none: {error}: {head}")),
        }
        self.call_memory(from, to, call).await
    }

    /// The same, of the object of a memory: what it is asked is nothing that threads are.
    pub(super) async fn call_memory(self: &Rc<Self>, from: &Member, to: &str, call: &str) -> Result<String> {
        if !self.reaches(from, to) {
            return Err(lost());
        }
        let _open = OpenCall::new(self);
        let (text, world, late_us) = (call.to_owned(), self.clone(), self.lateness_us());
        let arrives = move |object: Rc<dyn Object>| async move {
            if late_us > 0 {
                world.pause(late_us).await;
            }
            object.call(text).await
        };
        let reply = self.enter_at(&self.member(to), "call", arrives).await;
        serde_json::to_string(&reply.map_err(|_| lost())?).map_err(Error::internal)
    }

    /// One object asks another for something that it answers with a stream.
    pub(super) async fn ask(
        self: &Rc<Self>,
        from: &Member,
        to: &str,
        call: String,
    ) -> Result<Response, FetchError> {
        let request: ThreadRequest<StreamRoute> =
            serde_json::from_str(&call).map_err(|error| FetchError(format!("{call} is no call: {error}")))?;
        self.note(from, to, &request, None, "");
        if !self.reaches(from, to) {
            return Err(FetchError("the thread cannot be reached".into()));
        }
        let open = OpenCall::new(self);
        let (writer, reader) = pipe();
        let world = self.clone();
        drop(self.enter_at(&self.member(to), "ask", move |object| async move {
            let RawResponse { status, headers, content } = object.serve(request).await;
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let length = length.and_then(|(_, length)| length.parse().ok());
            world.when_durable(writer.begin((status, headers)));
            pour(&world, content, length, writer).await;
        }));
        let (status, headers) = reader.head().await?;
        let answering = Answering { reader, _open: open };
        let body = stream::unfold(answering, |mut answering| async move {
            gate().await;
            answering.reader.next().await.map(|piece| (piece, answering))
        });
        Ok(Response { status, headers, body: body.boxed_local() })
    }

    fn note<R>(
        &self,
        from: &Member,
        to: &str,
        request: &ThreadRequest<R>,
        route: Option<ThreadRoute>,
        body: &str,
    ) {
        if request.thread_id != to {
            self.fail(format!("{to} is called as {}", request.thread_id));
        }
        self.outside.calls.borrow_mut().push(Called {
            at_us: self.now_us(),
            from: from.id.clone(),
            to: to.into(),
            route,
            body: body.into(),
        });
    }
}

fn lost() -> Error {
    Error::new(Code::Overloaded, "The thread was restarted or is overloaded.")
}

/// Hands content over until nobody wants more. What is not handed over as a whole breaks off.
async fn pour(world: &World, content: Content, length: Option<u64>, writer: Writer) {
    let mut content = match content {
        Content::Empty => return writer.end(),
        Content::Bytes(bytes) => stream::iter([Ok(bytes)]).boxed_local(),
        Content::Stream(stream) => stream,
    };
    let mut poured = 0;
    while let Some(piece) = content.next().await {
        let Ok(piece) = piece else { return };
        poured += piece.len() as u64;
        world.when_durable(writer.hand(piece));
        gate().await;
        if !writer.taken().await {
            return;
        }
    }
    if length.is_some_and(|length| length != poured) {
        return world.fail(format!("{poured} bytes were answered as {length:?}"));
    }
    writer.end();
}

/// The content of another object's answer.
struct Answering {
    reader: Reader,
    _open: OpenCall,
}

/// Counts the calls that are under way.
struct OpenCall(Rc<World>);

impl OpenCall {
    fn new(world: &Rc<World>) -> OpenCall {
        world.open_calls.set(world.open_calls.get() + 1);
        OpenCall(world.clone())
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.open_calls.set(self.0.open_calls.get() - 1);
    }
}
