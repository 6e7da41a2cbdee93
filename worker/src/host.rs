//! The engine's door on Cloudflare.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use bobbin::api::ThreadRequest;
use bobbin::code::{Door, Outcome, Run};
use bobbin::http::{FetchError, Request, Response};
use bobbin::models::{ProviderCall, ProviderError};
use bobbin::spec::message::ToolResult;
use bobbin::thread::Frame;
use bobbin::thread::host::{EffectCall, Host, NativeCall, ObjectStream, Sibling};
use bobbin::thread::{EndpointAnswer, EndpointCall, HookCall, Panicked, spilled_above};
use bobbin::{Error, Result};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::LocalBoxStream;
use wasm_bindgen::prelude::*;

use crate::bindings::{self, Env, ObjectState, Storage, Timer, thrown};
use crate::bucket;
use crate::fetch::{FetchBody, fetch};
use crate::lifecycle::{promise, told};
use crate::remote::{self, Answer};
use crate::sandbox;
use crate::sockets::Sockets;
use crate::sql::{Counters, ObjectSql};
use crate::streamed;

/// Microseconds in a millisecond.
const MS_US: i64 = 1_000;

/// One object's storage, sockets and ways out.
pub(crate) struct ObjectHost {
    ctx: ObjectState,
    env: Env,
    storage: Storage,
    sql: ObjectSql,
    sockets: Rc<Sockets>,
    counters: Option<Rc<Counters>>,
}

impl ObjectHost {
    /// The host of the object with this context. Counts what it does when there are counters.
    pub(crate) fn new(
        ctx: ObjectState,
        env: Env,
        sockets: Rc<Sockets>,
        counters: Option<Rc<Counters>>,
    ) -> Result<ObjectHost, JsValue> {
        let storage = ctx.storage()?;
        let sql = ObjectSql::new(storage.sql()?, counters.clone());
        Ok(ObjectHost { ctx, env, storage, sql, sockets, counters })
    }
}

impl Host for ObjectHost {
    type Sql = ObjectSql;
    type Body = FetchBody;

    fn sql(&self) -> &ObjectSql {
        &self.sql
    }

    fn transaction<T>(&self, f: impl FnOnce(&ObjectSql) -> Result<T>) -> Result<T> {
        if let Some(counters) = &self.counters {
            counters.transaction();
        }
        // The platform rolls back when the closure throws. So an error is thrown, and a panic too: unwinding through
        // JavaScript frames would leave the transaction to chance. Outside both go on as what they were.
        let (mut f, mut result) = (Some(f), None);
        let mut body = || {
            let Some(f) = f.take() else { return false };
            let outcome = catch_unwind(AssertUnwindSafe(|| f(&self.sql)));
            let commits = matches!(outcome, Ok(Ok(_)));
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
            (Some(Ok(Ok(_))) | None, Err(error)) => {
                Err(Error::internal(format!("transaction: {}", thrown(&error))))
            }
            (Some(Ok(outcome)), _) => outcome,
            (None, Ok(_)) => Err(Error::internal("the platform did not run a transaction")),
        }
    }

    fn now_us(&self) -> i64 {
        bindings::date_now() as i64 * MS_US
    }

    fn random(&self) -> [u8; 16] {
        bindings::random()
    }

    fn var(&self, name: &str) -> Option<String> {
        self.env.var(name)
    }

    fn fetch(
        &self,
        request: Request,
    ) -> impl Future<Output = std::result::Result<Response<FetchBody>, FetchError>> + 'static {
        fetch(request)
    }

    fn native(&self, call: NativeCall) -> impl Future<Output = ToolResult> + 'static {
        bobbin::tools::run(call)
    }

    fn effect(&self, call: EffectCall) -> impl Future<Output = std::result::Result<(), String>> + 'static {
        bobbin::effects::run(call)
    }

    fn endpoint(
        &self,
        call: EndpointCall,
    ) -> impl Future<Output = std::result::Result<Result<EndpointAnswer>, Panicked>> + 'static {
        bobbin::endpoints::run(call)
    }

    fn hook(
        &self,
        call: HookCall,
    ) -> impl Future<Output = std::result::Result<std::result::Result<serde_json::Value, String>, Panicked>>
    + 'static {
        bobbin::hooks::run(call)
    }

    fn provider(
        &self,
        call: ProviderCall,
    ) -> impl Future<Output = std::result::Result<std::result::Result<(), ProviderError>, Panicked>> + 'static
    {
        bobbin::models::run(call)
    }

    fn sandbox(&self, run: Run, door: Rc<dyn Door>) -> impl Future<Output = Outcome> + 'static {
        sandbox::run(self.env.isolate(), run, door)
    }

    fn sibling(&self, to: Sibling, call: String) -> impl Future<Output = Result<String>> + 'static {
        let (objects, name) = match to {
            Sibling::Directory(name) => (self.env.directories(), name),
            Sibling::Thread(id) => (self.env.threads(), id),
        };
        async move {
            let stub = objects.and_then(|objects| objects.get_by_name(&name));
            let stub = stub.map_err(|error| Error::internal(thrown(&error)))?;
            let Answer { status, retry_after, body } = remote::call(&stub, &JsValue::from_str(&call)).await?;
            let body = body.as_string().unwrap_or_else(|| "null".into());
            let retry_after = retry_after.map(|s| format!(",\"retry_after\":{s}")).unwrap_or_default();
            Ok(format!("{{\"status\":{status}{retry_after},\"body\":{body}}}"))
        }
    }

    fn sibling_stream(
        &self,
        thread: String,
        request: ThreadRequest,
    ) -> impl Future<Output = std::result::Result<Response<ObjectStream>, FetchError>> + 'static {
        let threads = self.env.threads();
        async move { streamed::ask(&threads.map_err(streamed::failed)?, &thread, &request).await }
    }

    fn bucket(&self) -> Option<u64> {
        self.env.files().map(|_| spilled_above(self.env.var("BOBBIN_R2_ABOVE_BYTES").as_deref()))
    }

    fn put_object(
        &self,
        key: String,
        length: u64,
        content: LocalBoxStream<'static, Result<Bytes>>,
    ) -> impl Future<Output = std::result::Result<(), FetchError>> + 'static {
        bucket::put(self.env.files(), key, length, content)
    }

    fn get_object(
        &self,
        key: String,
        range: Range<u64>,
    ) -> impl Future<Output = std::result::Result<Option<ObjectStream>, FetchError>> + 'static {
        bucket::get(self.env.files(), key, range)
    }

    fn delete_objects(
        &self,
        keys: Vec<String>,
    ) -> impl Future<Output = std::result::Result<(), FetchError>> + 'static {
        bucket::delete(self.env.files(), keys)
    }

    fn sleep_until(&self, us: i64) -> impl Future<Output = ()> + 'static {
        sleep_until(us)
    }

    fn set_alarm(&self, due_us: Option<i64>) -> Result<()> {
        if let Some(counters) = &self.counters {
            counters.alarm();
        }
        let set = match due_us {
            // Rounded up: an alarm before its time would find nothing due.
            Some(us) => self.storage.set_alarm((us as f64 / MS_US as f64).ceil()),
            None => self.storage.delete_alarm(),
        };
        set.map(|_| ()).map_err(|error| Error::internal(format!("alarm: {}", thrown(&error))))
    }

    fn alarm(&self) -> impl Future<Output = Result<Option<i64>>> + 'static {
        let storage = self.storage.clone();
        async move {
            let at = storage.get_alarm().await.map_err(|error| Error::internal(thrown(&error)))?;
            Ok(at.as_f64().map(|ms| ms as i64 * MS_US))
        }
    }

    fn close_listeners(&self, reason: &str) {
        self.sockets.close_all(reason);
    }

    fn has_listeners(&self) -> bool {
        self.sockets.any()
    }

    fn broadcast(&self, frame: &Frame) {
        self.sockets.broadcast(frame);
    }

    fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let guarded = async move {
            if let Err(panic) = AssertUnwindSafe(future).catch_unwind().await {
                bindings::log(&format!("a task of an object panicked: {}", told(&*panic)));
            }
            Ok(JsValue::UNDEFINED)
        };
        let promise = promise(guarded);
        if let Err(error) = self.ctx.wait_until(&promise) {
            // The future runs all the same; only the platform does not know that it should wait.
            bindings::log(&format!("waitUntil: {}", thrown(&error)));
        }
    }

    fn log(&self, line: &str) {
        bindings::log(line);
    }
}

async fn sleep_until(us: i64) {
    loop {
        let left = us - bindings::date_now() as i64 * MS_US;
        if left <= 0 {
            return;
        }
        // Rounded up: a timer that fires early would only start another one.
        match Timer::after((left as f64 / MS_US as f64).ceil()) {
            Ok(timer) => timer.await,
            Err(error) => {
                // Returning would turn a wait into none; the platform refuses timers only to dying objects.
                bindings::log(&format!("timer: {}", thrown(&error)));
                std::future::pending::<()>().await;
            }
        }
    }
}
