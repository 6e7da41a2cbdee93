//! `bobbin::thread::Host` on the simulated world.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use bobbin::api::ThreadRequest;
use bobbin::code::{Door, Outcome, Run};
use bobbin::http::{Body, FetchError, Request, Response};
use bobbin::models::{ProviderCall, ProviderError};
use bobbin::spec::message::{ToolResult, ToolStatus};
use bobbin::thread::{
    EffectCall, EndpointAnswer, EndpointCall, Frame, HookCall, Host, NativeCall, ObjectStream, Panicked,
    Sibling,
};
use bobbin::{Error, Result, limits};
use bytes::Bytes;
use futures_util::stream::{self, LocalBoxStream};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;

use super::answer::Piece;
use super::executor::{Timer, gate};
use super::fault::{At, Injected};
use super::member::Member;
use super::outside::{Handler, Native};
use super::sim_sql::{SimSql, gone};
use super::world::World;

/// Microseconds that a piece of an object takes.
const OBJECT_US: i64 = 1_000;
/// Bytes of such a piece.
const OBJECT_PIECE: usize = 300_000;

/// What a panic of code that works in the thread said. A crash goes on: the process dies.
fn panicked(payload: Box<dyn Any + Send>) -> Panicked {
    match payload.downcast_ref::<&str>() {
        Some(text) => Panicked((*text).to_owned()),
        None if payload.is::<Injected>() => Panicked("injected".to_owned()),
        None => resume_unwind(payload),
    }
}

/// The door of one life of an object.
#[derive(Clone)]
pub struct SimHost {
    sql: SimSql,
}

impl SimHost {
    pub(super) fn new(world: Rc<World>, member: Rc<Member>) -> SimHost {
        let life = member.life();
        SimHost { sql: SimSql { world, member, life } }
    }

    fn member(&self) -> &Rc<Member> {
        &self.sql.member
    }

    fn world(&self) -> &Rc<World> {
        &self.sql.world
    }

    fn alive(&self) -> bool {
        self.sql.alive()
    }

    /// What a scripted native does.
    async fn perform(&self, native: Native, place: usize, name: &str) -> ToolResult {
        let world = self.world().clone();
        match native {
            Native::Never => std::future::pending().await,
            Native::Works(work) => {
                let result = work.await;
                world.outside.finish(place);
                self.point(At::NativeDone, name).await;
                result
            }
            Native::Acts(act) => {
                world.outside.finish(place);
                self.point(At::NativeDone, name).await;
                act()
            }
            Native::Gives(us, result) => {
                if us > 0 {
                    world.pause(us).await;
                }
                world.outside.finish(place);
                self.point(At::NativeDone, name).await;
                result
            }
        }
    }

    /// Reaches the bucket, once earlier writes are durable.
    async fn ask_bucket(&self, what: &str) -> std::result::Result<(), FetchError> {
        self.point(At::Object, what).await;
        gate().await;
        self.world().count_request();
        match self.world().bucket.refuses.get() {
            true => Err(FetchError("the bucket is out of order".into())),
            false => Ok(()),
        }
    }

    /// A point in an async call; a process that is gone stays there for ever.
    async fn point(&self, at: At, what: &str) {
        if !self.alive() {
            return std::future::pending().await;
        }
        self.world().point(at, what);
    }
}

impl Host for SimHost {
    type Sql = SimSql;
    type Body = SimBody;

    fn sql(&self) -> &SimSql {
        &self.sql
    }

    fn transaction<T>(&self, f: impl FnOnce(&SimSql) -> Result<T>) -> Result<T> {
        if !self.alive() {
            return Err(gone());
        }
        let (world, member) = (self.world(), self.member());
        world.point(At::Begin, "");
        member.touch();
        let alarm = member.alarm.get();
        member.database.begin();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let value = f(&self.sql)?;
            world.point(At::BeforeCommit, "");
            Ok(value)
        }));
        let keep = matches!(outcome, Ok(Ok(_)));
        member.database.end(keep);
        if !keep {
            let mut now = member.alarm.get();
            now.roll_back(alarm);
            member.alarm.set(now);
        }
        match outcome {
            Ok(Ok(value)) => {
                world.point(At::AfterCommit, "");
                Ok(value)
            }
            Ok(Err(error)) => Err(error),
            Err(payload) => resume_unwind(payload),
        }
    }

    fn now_us(&self) -> i64 {
        // The platform's clock has milliseconds, and stands still between two awaits.
        self.world().now_us() / 1_000 * 1_000
    }

    fn random(&self) -> [u8; 16] {
        self.world().random()
    }

    fn var(&self, name: &str) -> Option<String> {
        self.world().vars.borrow().get(name).cloned()
    }

    fn fetch(
        &self,
        request: Request,
    ) -> impl Future<Output = std::result::Result<Response<SimBody>, FetchError>> + 'static {
        let host = self.clone();
        async move {
            host.point(At::Fetch, &request.url).await;
            gate().await;
            let world = host.world().clone();
            world.count_request();
            let (answer, place, complaints) = world.outside.receive(&request, world.now_us());
            complaints.into_iter().for_each(|complaint| world.fail(complaint));
            let open = Open::new(host.member());
            host.point(At::Sent, &request.url).await;
            match answer.delay_us {
                Some(us) => world.pause(us).await,
                None => std::future::pending().await,
            }
            host.point(At::Headers, &request.url).await;
            let Some(status) = answer.status else {
                return Err(FetchError("connection refused".into()));
            };
            let mut pieces = answer.pieces;
            pieces.reverse();
            let body = SimBody { host, pieces, place, open: Some(open) };
            Ok(Response { status, headers: answer.headers, body })
        }
    }

    fn native(&self, call: NativeCall) -> impl Future<Output = ToolResult> + 'static {
        let host = self.clone();
        async move {
            host.point(At::Native, &call.name).await;
            // What a tool does to the outside waits behind the output gate.
            gate().await;
            let world = host.world().clone();
            let Some((native, place)) = world.outside.start(&call) else {
                return ToolResult::error(format!("There is no native tool \"{}\".", call.name));
            };
            host.perform(native, place, &call.name).await
        }
    }

    fn effect(&self, call: EffectCall) -> impl Future<Output = std::result::Result<(), String>> + 'static {
        let host = self.clone();
        async move {
            host.point(At::Native, &call.native).await;
            gate().await;
            let world = host.world().clone();
            let Some((native, place)) = world.outside.start_effect(&call, world.now_us()) else {
                // Those of the crate itself work in the thread alone.
                return bobbin::effects::run(call).await;
            };
            let result = host.perform(native, place, &call.native).await;
            match result.status {
                ToolStatus::Success => Ok(()),
                ToolStatus::Error => Err(result.text()),
            }
        }
    }

    fn endpoint(
        &self,
        call: EndpointCall,
    ) -> impl Future<Output = std::result::Result<Result<EndpointAnswer>, Panicked>> + 'static {
        let host = self.clone();
        async move {
            host.point(At::Native, &call.native).await;
            gate().await;
            let acting = host.clone();
            let running = AssertUnwindSafe(async move {
                match acting.world().outside.ask_endpoint(&call) {
                    None => Err(Error::internal("there is no such endpoint")),
                    Some(Handler::Never) => std::future::pending().await,
                    Some(Handler::Works(work)) => Ok(work.await),
                    Some(Handler::Acts(us, act)) => {
                        if us > 0 {
                            acting.world().pause(us).await;
                        }
                        let answer = act();
                        acting.point(At::NativeDone, &call.native).await;
                        answer
                    }
                }
            });
            running.catch_unwind().await.map_err(panicked)
        }
    }

    /// A failure of the world goes on through the provider; what the provider's own code says ends the call.
    fn provider(
        &self,
        call: ProviderCall,
    ) -> impl Future<Output = std::result::Result<std::result::Result<(), ProviderError>, Panicked>> + 'static
    {
        let running = AssertUnwindSafe(async move { bobbin::models::start(call).await }).catch_unwind();
        running.map(|ended| {
            ended.map_err(|payload| match payload.downcast_ref::<&str>() {
                Some(text) => Panicked((*text).to_owned()),
                None => resume_unwind(payload),
            })
        })
    }

    fn hook(
        &self,
        call: HookCall,
    ) -> impl Future<Output = std::result::Result<std::result::Result<Value, String>, Panicked>> + 'static
    {
        let host = self.clone();
        async move {
            host.point(At::Native, &call.native).await;
            gate().await;
            let acting = host.clone();
            let running = AssertUnwindSafe(async move {
                let native = call.native.clone();
                let Some(reaction) = acting.world().outside.ask_hook(call.clone()) else {
                    // Those of the crate itself.
                    return bobbin::hooks::run(call)
                        .await
                        .unwrap_or_else(|panicked| Err(panicked.to_string()));
                };
                let given = reaction.await;
                acting.point(At::NativeDone, &native).await;
                given
            });
            running.catch_unwind().await.map_err(panicked)
        }
    }

    fn sandbox(&self, run: Run, door: Rc<dyn Door>) -> impl Future<Output = Outcome> + 'static {
        let host = self.clone();
        async move {
            host.point(At::Sandbox, &run.source).await;
            // What code does to the outside waits behind the output gate.
            gate().await;
            let source = run.source.clone();
            let (world, member) = (host.world().clone(), host.member().clone());
            let aside =
                move |work: futures_util::future::LocalBoxFuture<'static, ()>| world.spawn(&member, work);
            let outcome = host.world().outside.sandbox.start(run, door, Rc::new(aside)).await;
            host.point(At::SandboxDone, &source).await;
            outcome
        }
    }

    fn sibling(&self, to: Sibling, call: String) -> impl Future<Output = Result<String>> + 'static {
        let host = self.clone();
        async move {
            host.point(At::Sibling, &call).await;
            gate().await;
            let reply = match &to {
                Sibling::Directory(_) => host.world().outside.call_sibling(to, &call),
                Sibling::Thread(id) => host.world().call(host.member(), id, &call).await,
            };
            gate().await;
            host.point(At::SiblingDone, &call).await;
            reply
        }
    }

    fn sibling_stream(
        &self,
        thread: String,
        request: ThreadRequest,
    ) -> impl Future<Output = std::result::Result<Response<ObjectStream>, FetchError>> + 'static {
        let host = self.clone();
        async move {
            host.point(At::Sibling, &thread).await;
            gate().await;
            let answer = host.world().ask(host.member(), &thread, request).await?;
            host.point(At::SiblingDone, &thread).await;
            let Response { status, headers, body } = answer;
            let pieces = stream::unfold((host, body), |(host, mut body)| async move {
                let piece = body.next().await;
                host.point(At::Chunk, "of another object").await;
                piece.map(|piece| (piece, (host, body)))
            });
            Ok(Response { status, headers, body: Box::pin(pieces) as ObjectStream })
        }
    }

    fn bucket(&self) -> Option<u64> {
        self.world().bucket.above.get()
    }

    fn put_object(
        &self,
        key: String,
        length: u64,
        mut content: LocalBoxStream<'static, Result<Bytes>>,
    ) -> impl Future<Output = std::result::Result<(), FetchError>> + 'static {
        let host = self.clone();
        async move {
            host.ask_bucket(&key).await?;
            let world = host.world().clone();
            let mut object = Vec::new();
            while let Some(piece) = content.next().await {
                object.extend_from_slice(&piece.map_err(|error| FetchError(error.message))?);
                world.pause(OBJECT_US).await;
                host.point(At::Chunk, "object").await;
            }
            if object.len() as u64 != length {
                world.fail(format!("{key}: {} bytes instead of {length}", object.len()));
            }
            world.bucket.objects.borrow_mut().insert(key.clone(), object.into());
            world.bucket.puts.set(world.bucket.puts.get() + 1);
            gate().await;
            host.point(At::ObjectDone, &key).await;
            Ok(())
        }
    }

    fn get_object(
        &self,
        key: String,
        range: Range<u64>,
    ) -> impl Future<Output = std::result::Result<Option<ObjectStream>, FetchError>> + 'static {
        let host = self.clone();
        async move {
            host.ask_bucket(&key).await?;
            let bucket = &host.world().bucket;
            bucket.gets.set(bucket.gets.get() + 1);
            let Some(object) = bucket.objects.borrow().get(&key).cloned() else { return Ok(None) };
            host.point(At::ObjectDone, &key).await;
            let part = object.slice(range.start as usize..range.end as usize);
            let pieces = stream::unfold((host.clone(), part), |(host, mut part)| async move {
                if part.is_empty() {
                    return None;
                }
                host.world().pause(OBJECT_US).await;
                host.point(At::Chunk, "object").await;
                let piece = part.split_to(part.len().min(OBJECT_PIECE));
                Some((Ok(piece), (host, part)))
            });
            Ok(Some(Box::pin(pieces) as ObjectStream))
        }
    }

    fn delete_objects(
        &self,
        keys: Vec<String>,
    ) -> impl Future<Output = std::result::Result<(), FetchError>> + 'static {
        let host = self.clone();
        async move {
            host.ask_bucket(&keys.join(" ")).await?;
            let world = host.world().clone();
            if keys.is_empty() || keys.len() as i64 > limits::DELETED_OBJECTS {
                world.fail(format!("{} objects are deleted at once", keys.len()));
            }
            world.bucket.objects.borrow_mut().retain(|key, _| !keys.contains(key));
            gate().await;
            host.point(At::ObjectDone, "deleted").await;
            Ok(())
        }
    }

    fn sleep_until(&self, us: i64) -> impl Future<Output = ()> + 'static {
        let host = self.clone();
        async move {
            gate().await;
            Timer::new(host.world().executor.clone(), us).await;
            host.point(At::Sleep, "").await;
        }
    }

    fn set_alarm(&self, due_us: Option<i64>) -> Result<()> {
        if !self.alive() {
            return Err(gone());
        }
        let delay = due_us.map(|due| due - self.world().now_us());
        self.world().point(At::SetAlarm, &format!("{delay:?}"));
        if due_us.is_some_and(|due| due <= 0 || due / 1_000_000_000_000_000 != 1) {
            self.world().fail(format!("an alarm at {due_us:?} is no time in microseconds"));
        }
        self.member().set_alarm(due_us);
        Ok(())
    }

    fn alarm(&self) -> impl Future<Output = Result<Option<i64>>> + 'static {
        let host = self.clone();
        async move {
            gate().await;
            Ok(host.member().alarm.get().next_us())
        }
    }

    fn has_listeners(&self) -> bool {
        self.alive() && self.member().has_listeners()
    }

    fn broadcast(&self, frame: &Frame) {
        if self.alive() {
            self.world().point(At::Broadcast, frame.kind);
            self.world().send(frame.clone());
        }
    }

    fn close_listeners(&self, _reason: &str) {
        if self.alive() {
            let member = self.member().clone();
            self.world().when_durable(move || member.close_listeners());
        }
    }

    fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        if self.alive() {
            self.world().point(At::Spawn, "");
            self.world().spawn(self.member(), future);
        }
    }

    fn log(&self, line: &str) {
        self.world().log.borrow_mut().push(line.to_owned());
    }
}

/// Counts the requests that are open.
struct Open(Rc<Member>);

impl Open {
    fn new(member: &Rc<Member>) -> Open {
        member.open_requests.set(member.open_requests.get() + 1);
        member.most_open.set(member.most_open.get().max(member.open_requests.get()));
        Open(member.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open_requests.set(self.0.open_requests.get() - 1);
    }
}

/// A scripted body.
pub struct SimBody {
    host: SimHost,
    /// Last one first.
    pieces: Vec<Piece>,
    place: Option<usize>,
    /// Until its last piece was handed over; what follows is the end alone.
    open: Option<Open>,
}

impl Body for SimBody {
    async fn next(&mut self) -> Option<std::result::Result<Bytes, FetchError>> {
        loop {
            // A chunk that is there is no reason to wait; the platform still hands it over in a turn of its own.
            gate().await;
            match self.pieces.pop() {
                Some(Piece::Wait(us)) => {
                    // Kept until it is over: a dropped future must not lose silence.
                    let until = self.host.world().now_us() + us;
                    Timer::new(self.host.world().executor.clone(), until).await;
                }
                Some(Piece::Stall) => {
                    self.pieces.push(Piece::Stall);
                    return std::future::pending().await;
                }
                Some(Piece::Cut) => {
                    self.host.point(At::Chunk, "cut").await;
                    return Some(Err(FetchError("the connection broke".into())));
                }
                Some(Piece::Data(bytes)) => {
                    if self.pieces.is_empty() {
                        self.open = None;
                    }
                    self.host.point(At::Chunk, "data").await;
                    return Some(Ok(bytes));
                }
                None => {
                    if let Some(place) = self.place.take() {
                        self.host.world().outside.finish(place);
                    }
                    self.host.point(At::Chunk, "end").await;
                    return None;
                }
            }
        }
    }
}
