//! `bobbin::host` on the simulated world.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use bobbin::Result;
use bobbin::definitions::Catalog;
use bobbin::engine::ThreadSlot;
use bobbin::host::http::{Body, FetchError, Request, Response};
use bobbin::host::{Bucket, Frame, Host, Listeners, Object, Pending, Process, Sibling, Sql};
use bobbin::memory::SharedMemory;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;

use super::answer::Piece;
use super::collector::COLLECTOR_URL;
use super::embeddings::EMBED_URL;
use super::executor::{Timer, gate};
use super::fault::At;
use super::member::Member;
use super::sim_sql::{SimSql, gone};
use super::world::World;

/// The door of one life of an object.
#[derive(Clone)]
pub struct SimHost {
    sql: SimSql,
}

/// A thread in one life of its object.
pub fn open(host: SimHost, catalog: Rc<Catalog>) -> ThreadSlot {
    let host = Rc::new(host);
    ThreadSlot::new(host.clone(), host.clone(), host, catalog)
}

/// A memory that threads share, in one life of its object.
pub fn open_memory(host: SimHost, catalog: Rc<Catalog>) -> Rc<SharedMemory> {
    SharedMemory::new(Rc::new(host), catalog)
}

impl SimHost {
    pub(super) fn new(world: Rc<World>, member: Rc<Member>) -> SimHost {
        let life = member.life();
        SimHost { sql: SimSql { world, member, life } }
    }

    pub(super) fn member(&self) -> &Rc<Member> {
        &self.sql.member
    }

    /// The name of its object.
    pub fn name(&self) -> &str {
        &self.member().id
    }

    pub(super) fn world(&self) -> &Rc<World> {
        &self.sql.world
    }

    pub(super) fn alive(&self) -> bool {
        self.sql.alive()
    }

    /// A point in an async call; a process that is gone stays there for ever.
    pub(super) async fn point(&self, at: At, what: &str) {
        if !self.alive() {
            return std::future::pending().await;
        }
        self.world().point(at, what);
    }
}

impl Object for SimHost {
    fn sql(&self) -> &dyn Sql {
        &self.sql
    }

    fn transact(&self, work: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        if !self.alive() {
            return Err(gone());
        }
        let (world, member) = (self.world(), self.member());
        world.point(At::Begin, "");
        member.touch();
        let alarm = member.alarm.get();
        member.database.begin();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            work(&self.sql)?;
            world.point(At::BeforeCommit, "");
            Ok(())
        }));
        let keep = matches!(outcome, Ok(Ok(())));
        member.database.end(keep);
        if !keep {
            let mut now = member.alarm.get();
            now.roll_back(alarm);
            member.alarm.set(now);
        }
        match outcome {
            Ok(Ok(())) => {
                world.point(At::AfterCommit, "");
                Ok(())
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

    fn sibling(&self, to: Sibling, call: String) -> Pending<Result<String>> {
        let host = self.clone();
        Box::pin(async move {
            host.point(At::Sibling, &call).await;
            gate().await;
            let reply = match &to {
                Sibling::Directory(_) => host.world().outside.call_sibling(to, &call),
                Sibling::Thread(id) => host.world().call(host.member(), id, &call).await,
                Sibling::Memory(name) => host.world().call_memory(host.member(), name, &call).await,
            };
            gate().await;
            host.point(At::SiblingDone, &call).await;
            reply
        })
    }

    fn sleep_until(&self, us: i64) -> Pending<()> {
        let host = self.clone();
        let sleeps = &self.member().sleeps;
        sleeps.set(sleeps.get() + 1);
        Box::pin(async move {
            gate().await;
            Timer::new(host.world().executor.clone(), us).await;
            host.point(At::Sleep, "").await;
        })
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

    fn alarm(&self) -> Pending<Result<Option<i64>>> {
        let host = self.clone();
        Box::pin(async move {
            gate().await;
            Ok(host.member().alarm.get().next_us())
        })
    }

    fn spawn(&self, work: Pending<()>) {
        if self.alive() {
            self.world().point(At::Spawn, "");
            self.world().spawn(self.member(), work);
        }
    }

    fn log(&self, line: &str) {
        self.world().log.borrow_mut().push(line.to_owned());
    }
}

impl Host for SimHost {
    fn process(&self) -> Rc<Process> {
        self.world().process.borrow().clone()
    }

    fn fetch(&self, request: Request) -> Pending<Result<Response, FetchError>> {
        let host = self.clone();
        Box::pin(async move {
            host.point(At::Fetch, &request.url).await;
            gate().await;
            let world = host.world().clone();
            world.count_request();
            let (answer, place, complaints) = world.outside.receive(&request, world.now_us());
            complaints.into_iter().for_each(|complaint| world.fail(complaint));
            // A collector is told beside whatever else is asked.
            let beside = [COLLECTOR_URL, EMBED_URL].iter().any(|url| request.url.starts_with(url));
            let open = (!beside).then(|| Open::new(host.member()));
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
            let body = SimBody { host, pieces, place, open }.stream();
            Ok(Response { status, headers: answer.headers, body })
        })
    }

    fn sibling_stream(&self, thread: String, call: String) -> Pending<Result<Response, FetchError>> {
        let host = self.clone();
        Box::pin(async move {
            host.point(At::Sibling, &thread).await;
            gate().await;
            let answer = host.world().ask(host.member(), &thread, call).await?;
            host.point(At::SiblingDone, &thread).await;
            let Response { status, headers, body } = answer;
            let pieces = stream::unfold((host, body), |(host, mut body)| async move {
                let piece = body.next().await;
                host.point(At::Chunk, "of another object").await;
                piece.map(|piece| (piece, (host, body)))
            });
            Ok(Response { status, headers, body: Box::pin(pieces) as Body })
        })
    }

    fn bucket(&self) -> Option<&dyn Bucket> {
        self.world().bucket.above.get().map(|_| self as &dyn Bucket)
    }

    fn listeners(&self) -> &dyn Listeners {
        self
    }
}

impl Listeners for SimHost {
    fn any(&self) -> bool {
        self.alive() && self.member().has_listeners()
    }

    fn want_items(&self) -> bool {
        self.alive() && self.member().listeners_want_items()
    }

    fn want_progress(&self) -> bool {
        self.alive() && self.member().listeners_want_progress()
    }

    fn follow_run(&self) -> bool {
        self.alive() && self.member().listeners_follow_run()
    }

    fn broadcast(&self, frame: &Frame) {
        if self.alive() {
            self.world().point(At::Broadcast, frame.kind);
            self.world().send(frame.clone());
        }
    }

    fn close(&self, _reason: &str) {
        if self.alive() {
            let member = self.member().clone();
            self.world().when_durable(move || member.close_listeners());
        }
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
struct SimBody {
    host: SimHost,
    /// Last one first.
    pieces: Vec<Piece>,
    place: Option<usize>,
    /// Until its last piece was handed over; what follows is the end alone.
    open: Option<Open>,
}

impl SimBody {
    fn stream(self) -> Body {
        Box::pin(stream::unfold(self, |mut body| async move { body.next().await.map(|piece| (piece, body)) }))
    }

    async fn next(&mut self) -> Option<Result<Bytes, FetchError>> {
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
