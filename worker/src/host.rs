//! The engine's host on Cloudflare.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use bobbin::engine::spilled_above;
use bobbin::host::ai::{AI_BINDING, AiRequest};
use bobbin::host::http::{FetchError, Request, Response};
use bobbin::host::{Bucket, Host, Listeners, Object, Pending, Process, Sibling, Sql};
use bobbin::sandbox::{HostCalls, Outcome, Run, Sandbox};
use bobbin::{Error, Result};
use futures::FutureExt;
use wasm_bindgen::prelude::*;

use crate::bindings::{self, Env, ObjectState, Storage, thrown};
use crate::bucket::FilesBucket;
use crate::clock::{Clock, MS_US, now_us};
use crate::fetch::{ask_ai, fetch};
use crate::lifecycle::{promise, told};
use crate::remote::{self, ObjectResponse};
use crate::sandbox;
use crate::sockets::Sockets;
use crate::sql::{Counters, ObjectSql};
use crate::streamed;

/// One object's storage, sockets and outgoing requests.
pub(crate) struct ObjectHost {
    ctx: ObjectState,
    env: Env,
    storage: Storage,
    sql: ObjectSql,
    sockets: Rc<Sockets>,
    bucket: Option<FilesBucket>,
    counters: Option<Rc<Counters>>,
    clock: Rc<Clock>,
    /// Variables that were read. Those of a deployment never change, and each read crosses into JavaScript.
    vars: RefCell<Vec<(String, Option<String>)>>,
}

/// Maximum number of cached variables, about as many as models and settings use. Names come from definitions.
const VARS: usize = 64;

impl ObjectHost {
    /// The host of the object with this context. Counts operations if there are counters.
    pub(crate) fn new(
        ctx: ObjectState,
        env: Env,
        sockets: Rc<Sockets>,
        counters: Option<Rc<Counters>>,
    ) -> Result<ObjectHost, JsValue> {
        let storage = ctx.storage()?;
        let sql = ObjectSql::new(storage.sql()?, counters.clone());
        let above = spilled_above(env.var("BOBBIN_R2_ABOVE_BYTES").as_deref());
        let bucket = env.files().map(|files| FilesBucket::new(files, above));
        let (clock, vars) = (Clock::new(), RefCell::default());
        Ok(ObjectHost { ctx, env, storage, sql, sockets, bucket, counters, clock, vars })
    }
}

impl Object for ObjectHost {
    fn sql(&self) -> &dyn Sql {
        &self.sql
    }

    fn transact(&self, work: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        if let Some(counters) = &self.counters {
            counters.transaction();
        }
        // The platform rolls back if the closure throws. So errors and panics become exceptions, because a
        // panic must not unwind through JavaScript frames. Afterwards both continue in their own form.
        let mut result = None;
        let mut body = || {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&self.sql)));
            let commits = matches!(outcome, Ok(Ok(())));
            result = Some(outcome);
            commits
        };
        let mut body = AssertUnwindSafe(&mut body as &mut dyn FnMut() -> bool);
        let ran = self.storage.transaction_sync(&mut move || {
            let body = &mut body;
            if (body.0)() { Ok(JsValue::UNDEFINED) } else { Err(JsValue::from_str("rolled back")) }
        });
        match (result, ran) {
            (Some(Err(panic)), _) => resume_unwind(panic),
            (Some(Ok(Ok(()))) | None, Err(error)) => {
                Err(Error::internal(format!("transaction: {}", thrown(&error))))
            }
            (Some(Ok(outcome)), _) => outcome,
            (None, Ok(_)) => Err(Error::internal("the platform did not run a transaction")),
        }
    }

    fn now_us(&self) -> i64 {
        now_us()
    }

    fn random(&self) -> [u8; 16] {
        bindings::random()
    }

    fn var(&self, name: &str) -> Option<String> {
        if let Some((_, known)) = self.vars.borrow().iter().find(|(known, _)| known == name) {
            return known.clone();
        }
        let bound = || self.env.ai().filter(|_| name == AI_BINDING).map(|_| "bound".to_owned());
        let value = self.env.var(name).or_else(bound);
        let mut vars = self.vars.borrow_mut();
        if vars.len() < VARS {
            vars.push((name.to_owned(), value.clone()));
        }
        value
    }

    fn sibling(&self, to: Sibling, call: String) -> Pending<Result<String>> {
        let (objects, name) = match to {
            Sibling::Directory(name) => (self.env.directories(), name),
            Sibling::Thread(id) => (self.env.threads(), id),
            Sibling::Memory(name) => (self.env.memories(), name),
        };
        Box::pin(async move {
            let stub = objects.and_then(|objects| objects.get_by_name(&name));
            let stub = stub.map_err(|error| Error::internal(thrown(&error)))?;
            let ObjectResponse { status, retry_after, body } =
                remote::call(&stub, &JsValue::from_str(&call)).await?;
            let body = body.as_string().unwrap_or_else(|| "null".into());
            let retry_after = retry_after.map(|s| format!(",\"retry_after\":{s}")).unwrap_or_default();
            Ok(format!("{{\"status\":{status}{retry_after},\"body\":{body}}}"))
        })
    }

    fn sleep_until(&self, us: i64) -> Pending<()> {
        Box::pin(self.clock.sleep_until(us))
    }

    fn set_alarm(&self, due_us: Option<i64>) -> Result<()> {
        if let Some(counters) = &self.counters {
            counters.alarm();
        }
        let set = match due_us {
            // Rounded up, because an early alarm would find nothing due.
            Some(us) => self.storage.set_alarm((us as f64 / MS_US as f64).ceil()),
            None => self.storage.delete_alarm(),
        };
        set.map(|_| ()).map_err(|error| Error::internal(format!("alarm: {}", thrown(&error))))
    }

    fn alarm(&self) -> Pending<Result<Option<i64>>> {
        let storage = self.storage.clone();
        Box::pin(async move {
            let at = storage.get_alarm().await.map_err(|error| Error::internal(thrown(&error)))?;
            Ok(at.as_f64().map(|ms| ms as i64 * MS_US))
        })
    }

    fn spawn(&self, work: Pending<()>) {
        let under_way = self.clock.begin_work();
        let guarded = async move {
            if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
                bindings::log(&format!("a task of an object panicked: {}", told(&*panic)));
            }
            drop(under_way);
            Ok(JsValue::UNDEFINED)
        };
        let promise = promise(guarded);
        if let Err(error) = self.ctx.wait_until(&promise) {
            // The future runs all the same, but the platform does not wait for it.
            bindings::log(&format!("waitUntil: {}", thrown(&error)));
        }
    }

    fn log(&self, line: &str) {
        bindings::log(line);
    }
}

thread_local! {
    // State that all objects of the isolate share.
    static PROCESS: Rc<Process> = Rc::default();
}

impl Host for ObjectHost {
    fn process(&self) -> Rc<Process> {
        PROCESS.with(Rc::clone)
    }

    fn fetch(&self, request: Request) -> Pending<Result<Response, FetchError>> {
        Box::pin(fetch(request))
    }

    fn ask_ai(&self, request: AiRequest) -> Pending<Result<Response, FetchError>> {
        Box::pin(ask_ai(self.env.ai(), request))
    }

    fn sibling_stream(&self, thread: String, call: String) -> Pending<Result<Response, FetchError>> {
        let threads = self.env.threads();
        Box::pin(async move { streamed::ask(&threads.map_err(streamed::failed)?, &thread, &call).await })
    }

    fn bucket(&self) -> Option<&dyn Bucket> {
        self.bucket.as_ref().map(|bucket| bucket as &dyn Bucket)
    }

    fn listeners(&self) -> &dyn Listeners {
        &*self.sockets
    }
}

impl Sandbox for ObjectHost {
    fn run(&self, run: Run, door: Rc<dyn HostCalls>) -> Pending<Outcome> {
        Box::pin(sandbox::run(self.env.isolate(), run, door))
    }

    fn is_bound(&self) -> bool {
        self.env.isolate().is_some()
    }
}
