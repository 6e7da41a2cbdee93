//! The three classes of objects, as the shim's JavaScript classes forward to them.

use std::cell::{Cell, OnceCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use bobbin::definitions::Catalog;
use bobbin::directory::Directory;
use bobbin::engine::ThreadSlot;
use bobbin::engine::feed::{Continuation, FeedStart};
use bobbin::memory::SharedMemory;
use bobbin::request::{RawResponse, Reply, ThreadRequest};
use bobbin::validate::missing_natives;
use bobbin::{Code, Error, Registered};
use futures::FutureExt;
use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::answer::{self, Response};
use crate::bindings::{Env, IncomingRequest, ObjectState, Storage, date_now, log, thrown};
use crate::host::ObjectHost;
use crate::lifecycle::{promise, told};
use crate::remote;
use crate::sockets::{Sockets, Subscription};
use crate::sql::Counters;
use crate::streamed::{self, IncomingBody, Readers};
use crate::upgrade::{HEADER, Listen};

/// A call for the counters of an object's storage; answered only in development.
pub(crate) const COUNTERS: &str = "{\"counters\":true}";

thread_local! {
    // Shared by all objects and requests of the isolate; it never changes.
    static CATALOG: OnceCell<Result<Rc<Catalog>, Error>> = const { OnceCell::new() };
}

/// The catalog, read once per isolate.
///
/// # Errors
/// `catalog_invalid`: the file does not have the format of this version of the build tool.
pub(crate) fn catalog(text: &JsValue) -> Result<Rc<Catalog>, Error> {
    let read = || {
        let text = text.as_string().unwrap_or_default();
        let catalog = Catalog::from_json(&text).inspect(|catalog| {
            for missing in missing_natives(catalog, &bobbin::natives()) {
                log(&format!(
                    "catalog.json: {missing} is not in this Worker: was it built without its crate?"
                ));
            }
        });
        catalog.map(Rc::new).map_err(|error| {
            log(&format!("catalog.json: {error}"));
            Error::new(Code::CatalogInvalid, format!("The definitions cannot be read: {error}."))
                .hint("Build and deploy again: npm run build names every problem with its file and field.")
        })
    };
    CATALOG.with(|catalog| catalog.get_or_init(read).clone())
}

/// Shared behaviour of the classes, around the core.
struct Shell<T> {
    /// The core, or the error that prevented it.
    core: Result<T, Error>,
    storage: Storage,
    counters: Option<Rc<Counters>>,
    dev: bool,
    /// Panics of the alarm since it last succeeded.
    alarm_panics: Cell<u32>,
}

impl<T> Shell<T> {
    fn new(
        ctx: &ObjectState,
        env: &Env,
        sockets: &Rc<Sockets>,
        catalog_text: &JsValue,
        make: impl FnOnce(Rc<ObjectHost>, Rc<Catalog>) -> T,
    ) -> Result<Shell<T>, JsValue> {
        let dev = crate::auth::is_dev(env);
        let counters = dev.then(Rc::<Counters>::default);
        let host = ObjectHost::new(ctx.clone(), env.clone(), sockets.clone(), counters.clone())?;
        let core = catalog(catalog_text).map(|catalog| make(Rc::new(host), catalog));
        Ok(Shell { core, storage: ctx.storage()?, counters, dev, alarm_panics: Cell::new(0) })
    }

    /// Answers a call. A panic becomes a response, too: 500, with an id that the log has.
    async fn answer(&self, text: &str, answer: impl AsyncFnOnce(&T) -> Reply) -> JsValue {
        if let Some(counters) = &self.counters
            && text == COUNTERS
        {
            return remote::pack(Reply::json(200, &counters.to_json()));
        }
        let reply = match &self.core {
            Err(error) => error.clone().into(),
            Ok(core) => match AssertUnwindSafe(answer(core)).catch_unwind().await {
                Ok(reply) if reply.status == 500 => answer::without_details(reply, self.dev),
                Ok(reply) => reply,
                Err(panic) => answer::without_details(Error::internal(told(&*panic)).into(), self.dev),
            },
        };
        remote::pack(reply)
    }

    /// Answers a call with a streamed body, as [`Shell::answer`] does.
    async fn serve(&self, serve: impl AsyncFnOnce(&T) -> RawResponse) -> RawResponse {
        match &self.core {
            Err(error) => error.clone().into(),
            Ok(core) => match AssertUnwindSafe(serve(core)).catch_unwind().await {
                Ok(served) if streamed::is_internal(&served) => streamed::without_details(served, self.dev),
                Ok(served) => served,
                Err(panic) => answer::without_details(Error::internal(told(&*panic)).into(), self.dev).into(),
            },
        }
    }

    /// Runs the alarm. Never throws, because the platform drops an alarm after six failures. After a panic it
    /// is set again, with increasing delays.
    async fn alarm(&self, run: impl AsyncFnOnce(&T)) {
        let Ok(core) = &self.core else {
            // The definitions are invalid. The work waits for the next deployment.
            return self.alarm_again(60_000.0);
        };
        match AssertUnwindSafe(run(core)).catch_unwind().await {
            Ok(()) => self.alarm_panics.set(0),
            Err(panic) => {
                let panics = self.alarm_panics.get().saturating_add(1);
                self.alarm_panics.set(panics);
                log(&format!("an alarm panicked ({panics}): {}", told(&*panic)));
                self.alarm_again(f64::from(2_u32.saturating_pow(panics.min(12))) * 1_000.0);
            }
        }
    }

    fn alarm_again(&self, in_ms: f64) {
        if let Err(error) = self.storage.set_alarm(date_now() + in_ms) {
            log(&format!("no alarm: {}", thrown(&error)));
        }
    }
}

/// One conversation.
#[wasm_bindgen]
pub struct ThreadObject {
    shell: Rc<Shell<ThreadSlot>>,
    sockets: Rc<Sockets>,
    readers: Readers,
    ctx: ObjectState,
}

impl std::panic::RefUnwindSafe for ThreadObject {}
impl std::panic::UnwindSafe for ThreadObject {}

#[wasm_bindgen]
impl ThreadObject {
    /// `ctx` and `env` as the platform gives them, and the text of catalog.json.
    #[wasm_bindgen(constructor)]
    pub fn new(ctx: JsValue, env: JsValue, catalog: &JsValue) -> Result<ThreadObject, JsValue> {
        let (ctx, env) = (ctx.unchecked_into::<ObjectState>(), Env::new(env));
        let sockets = Rc::new(Sockets::new(ctx.clone()));
        let shell = Shell::new(&ctx, &env, &sockets, catalog, |host, catalog| {
            let natives = Rc::new(Registered);
            ThreadSlot::new(host.clone(), natives, host, catalog)
        })?;
        Ok(ThreadObject { shell: Rc::new(shell), sockets, readers: Readers::new(), ctx })
    }

    /// A request to the thread: a [`ThreadRequest`] as JSON, a line break, the request's body. Resolves with
    /// `[status, retryAfter, body]`.
    pub fn call(&self, text: String) -> Promise {
        let shell = self.shell.clone();
        promise(async move {
            let handle = async |place: &ThreadSlot| match ThreadRequest::parse(&text) {
                Ok(request) => place.thread().handle(request).await,
                Err(error) => error.into(),
            };
            Ok(shell.answer(&text, handle).await)
        })
    }

    /// The alarm.
    pub fn alarm(&self, _info: JsValue) -> Promise {
        let shell = self.shell.clone();
        promise(async move {
            shell.alarm(async |place| place.thread().alarm().await).await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// A request from the Worker. One header has the call: an upgrade, or a call with a streamed body.
    /// Returns a `Response` or a promise of one.
    pub fn fetch(&self, request: JsValue) -> Result<JsValue, JsValue> {
        let request = request.unchecked_into::<IncomingRequest>();
        match request.header(streamed::HEADER) {
            Some(call) => Ok(self.serve(request, call).into()),
            None => self.upgrade(&request).map(JsValue::from),
        }
    }
    /// Messages of clients are ignored. The platform answers `ping`.
    #[wasm_bindgen(js_name = webSocketMessage)]
    pub fn web_socket_message(&self, _socket: JsValue, _message: JsValue) {}

    /// A socket was closed by its client.
    #[wasm_bindgen(js_name = webSocketClose)]
    pub fn web_socket_close(&self, socket: JsValue, code: u16, _reason: JsValue, _clean: JsValue) {
        self.sockets.closed(socket, code);
    }

    /// A socket broke.
    #[wasm_bindgen(js_name = webSocketError)]
    pub fn web_socket_error(&self, _socket: JsValue, _error: JsValue) {
        self.sockets.forget();
    }
}

impl ThreadObject {
    fn upgrade(&self, request: &IncomingRequest) -> Result<Response, JsValue> {
        let error = match catch_unwind(AssertUnwindSafe(|| self.open(request))) {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => error,
            Err(panic) => Error::internal(told(&*panic)),
        };
        answer::of_error(error, None, None, self.shell.dev)
    }

    fn serve(&self, request: IncomingRequest, call: String) -> Promise {
        let (shell, ctx, readers) = (self.shell.clone(), self.ctx.clone(), self.readers.clone());
        promise(async move {
            let body = IncomingBody::of(&request, Some(&readers))?;
            let reading = body.clone().stream();
            let served = shell.serve(async |place| match ThreadRequest::parse(&call) {
                Ok(request) => place.thread().serve(request, reading).await,
                Err(error) => error.into(),
            });
            let served = match (served.await, body.given_up()) {
                (served, Some(error)) if served.status >= 400 => error.into(),
                (served, _) => served,
            };
            // Many clients read a response only after they have sent their whole body.
            body.discard().await;
            streamed::respond(served, &ctx).map(JsValue::from)
        })
    }

    /// Runs synchronously from the snapshot until the socket is among the listeners, so that no frame is
    /// missed or sent twice.
    fn open(&self, request: &IncomingRequest) -> Result<Response, Error> {
        let thread = self.shell.core.as_ref().map_err(Clone::clone)?.thread();
        let listen = Listen::parse(&request.header(HEADER).unwrap_or_default())?;
        let (caller, filter, last) =
            (&listen.caller, &listen.subscription.filter, listen.last_event_id.as_deref());
        let (first, subscription, then, run) = match &listen.feed {
            None => (thread.listen(caller, filter, last)?, listen.subscription, Continuation::Live, None),
            Some(of) => {
                let FeedStart { frames, filter, then, run } = thread.follow(caller, filter, of, last)?;
                (frames, Subscription { filter, ..listen.subscription }, then, run)
            }
        };
        let failed = |error: JsValue| Error::internal(thrown(&error));
        let client = self.sockets.open(subscription, &first, &then)?;
        answer::upgraded(&client, run.as_deref()).map_err(failed)
    }
}

/// The threads of one owner, or the owners.
#[wasm_bindgen]
pub struct DirectoryObject {
    shell: Rc<Shell<Rc<Directory>>>,
}

impl std::panic::RefUnwindSafe for DirectoryObject {}
impl std::panic::UnwindSafe for DirectoryObject {}

#[wasm_bindgen]
impl DirectoryObject {
    /// `ctx` and `env` as the platform gives them, and the text of catalog.json.
    #[wasm_bindgen(constructor)]
    pub fn new(ctx: JsValue, env: JsValue, catalog: &JsValue) -> Result<DirectoryObject, JsValue> {
        let (ctx, env) = (ctx.unchecked_into::<ObjectState>(), Env::new(env));
        let sockets = Rc::new(Sockets::new(ctx.clone()));
        let shell = Shell::new(&ctx, &env, &sockets, catalog, |host, catalog| Directory::new(host, catalog))?;
        Ok(DirectoryObject { shell: Rc::new(shell) })
    }

    /// A `DirectoryCall` as JSON. Resolves with `[status, retryAfter, body]`.
    pub fn call(&self, text: String) -> Promise {
        let shell = self.shell.clone();
        promise(async move { Ok(shell.answer(&text, async |directory| directory.call(&text)).await) })
    }

    /// The alarm.
    pub fn alarm(&self, _info: JsValue) -> Promise {
        let shell = self.shell.clone();
        promise(async move {
            shell.alarm(async |directory| directory.clone().alarm().await).await;
            Ok(JsValue::UNDEFINED)
        })
    }
}

/// A memory that threads share.
#[wasm_bindgen]
pub struct MemoryObject {
    shell: Rc<Shell<Rc<SharedMemory>>>,
}

impl std::panic::RefUnwindSafe for MemoryObject {}
impl std::panic::UnwindSafe for MemoryObject {}

#[wasm_bindgen]
impl MemoryObject {
    /// `ctx` and `env` as the platform gives them, and the text of catalog.json.
    #[wasm_bindgen(constructor)]
    pub fn new(ctx: JsValue, env: JsValue, catalog: &JsValue) -> Result<MemoryObject, JsValue> {
        let (ctx, env) = (ctx.unchecked_into::<ObjectState>(), Env::new(env));
        let sockets = Rc::new(Sockets::new(ctx.clone()));
        let shell =
            Shell::new(&ctx, &env, &sockets, catalog, |host, catalog| SharedMemory::new(host, catalog))?;
        Ok(MemoryObject { shell: Rc::new(shell) })
    }

    /// A `MemoryCall` as JSON, a line break, and what it asks for. Resolves with `[status, retryAfter, body]`.
    pub fn call(&self, text: String) -> Promise {
        let shell = self.shell.clone();
        promise(async move { Ok(shell.answer(&text, async |memory| memory.call(&text).await).await) })
    }

    /// The alarm.
    pub fn alarm(&self, _info: JsValue) -> Promise {
        let shell = self.shell.clone();
        promise(async move {
            shell.alarm(async |memory| memory.clone().alarm().await).await;
            Ok(JsValue::UNDEFINED)
        })
    }
}
