//! The object of a memory that threads share, in the simulated world, and its clients.

use std::any::Any;
use std::rc::Rc;

use bobbin::definitions::Catalog;
use bobbin::memory::SharedMemory;
use bobbin::request::memory::object_name;
use bobbin::request::{
    MemoryAsk, MemoryCall, MemoryRoute, Query, RawResponse, Reply, StreamRoute, ThreadRequest,
};
use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::host::{Member, Object, SECOND_US, SimHost, World, open_memory};
use crate::sim::{Seen, Sim, TRIES};

/// A memory that threads share.
pub(crate) struct OpenedMemory(Rc<SharedMemory>);

impl OpenedMemory {
    pub(crate) fn new(host: SimHost, catalog: Rc<Catalog>) -> OpenedMemory {
        OpenedMemory(open_memory(host, catalog))
    }
}

impl Object for OpenedMemory {
    fn alarm(self: Rc<Self>) -> LocalBoxFuture<'static, ()> {
        Box::pin(self.0.clone().alarm())
    }
    fn call(self: Rc<Self>, text: String) -> LocalBoxFuture<'static, Reply> {
        let memory = self.0.clone();
        Box::pin(async move { memory.call(&text).await })
    }
    fn serve(self: Rc<Self>, request: ThreadRequest<StreamRoute>) -> LocalBoxFuture<'static, RawResponse> {
        panic!("a memory was asked for a stream: {request:?}")
    }
    fn any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl Sim {
    /// One request to a memory that threads share, repeated until it is answered, as the Worker sends it once it knows who asks.
    pub async fn insist_memory(
        &self,
        owner: Option<&str>,
        memory: &str,
        of: MemoryRoute,
        key: Option<&str>,
        body: &Value,
    ) -> Seen {
        let ask = MemoryAsk::Route { of, query: Query::default(), idempotency_key: key.map(str::to_owned) };
        let call = MemoryCall { memory: memory.to_owned(), owner: owner.map(str::to_owned), ask };
        let head = serde_json::to_string(&call).expect("a call");
        let text = format!("{head}\n{}", if body.is_null() { String::new() } else { body.to_string() });
        let member = self.world.member(&object_name(owner, memory));
        for _ in 0..TRIES {
            let text = text.clone();
            let reply = self.world.enter_at(&member, "request", move |object| object.call(text)).await;
            if let Ok(Reply { status, retry_after, body }) = reply
                && status < 500
            {
                let body = body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap());
                return Seen { status, body, retry_after };
            }
            self.world.pause(50_000 + self.world.below(SECOND_US as usize) as i64).await;
        }
        self.world.fail(format!("{call:?} was not answered in {TRIES} tries"));
        Seen { status: 599, body: Value::Null, retry_after: None }
    }
}

/// What is owed has an alarm in time, or its handler runs.
pub(crate) fn watch(world: &World, member: &Member) {
    if member.has_table("mem_work") {
        let due: Vec<i64> = member.database.ask("SELECT due_us FROM mem_work");
        let alarm = member.alarm.get();
        if let Some(due) = due.first()
            && !alarm.running
            && !alarm.retrying()
            && alarm.due_us.is_none_or(|at| at > (*due).max(world.now_us()))
        {
            world.fail(format!("work on a memory is due at {due}, and the alarm is {alarm:?}"));
        }
    }
}
