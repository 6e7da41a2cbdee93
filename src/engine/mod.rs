//! The engine of one thread.
//!
//! # Layout
//!
//! Reading order: [`step`](self) is the seven-step cycle; `flow` drives it from step to step and re-enters it after a
//! crash; `run` is its program counter.
//!
//! * `step`: the cycle. `context` and `window`: what a request to a model holds. `model_call`: attempts, fallbacks,
//!   watchdogs; `tries`: how far a step is with its model; `replay`: what providers want back with their replies.
//! * `tool_call`: receipts. `tool_result`: results and their files. `http_tool`: tools behind a URL. `post`: the request of
//!   whatever has `run.http`. `subprompt`: prompts that are called. `handoff`: another agent takes over; `opening`: the
//!   message that a called prompt or agent begins with. `tool_queue`: calls that code queues; `invoke`: calls that it waits
//!   for; `scope`: where a call is made; `apart`: what becomes of calls made apart from any run.
//! * `stop`: when a turn, a session or a run ends; `close`: what then changes. `side`: the two sides. `session`: what a
//!   session came to.
//! * `flow`: one flow per thread, recovery, yielding. `alarm`: the one alarm, and how it joins a run.
//! * `thread_state`: the thread for the code that works in it, with `execution` and `resources`. `values`: what tools and
//!   clients remember in the thread. `env`: values of variables. `files`: its files. `attachments`: those that messages
//!   show. `effects`: what it does later. `hooks`: code of the application's own around all of it.
//! * `accept`: posts, and `idempotency`: those that come twice. `control`: stop, continue, terminate, delete. `create`: a
//!   new thread. `edit`: changes to messages and the thread. `read`: everything that only reads. `log`: what happened,
//!   durably. `operator`: failures, for the server's terminal. `endpoints`: routes of the application's own.
//! * `listen` and `frame`: streams. `outbox`: what the directory is told.
//! * `state`, `rows`, `run`, `schema`: storage. `host`: the door to the outside.

pub(crate) mod accept;
pub(crate) mod alarm;
pub(crate) mod attachments;
pub(crate) mod attempts;
pub(crate) mod close;
pub(crate) mod code;
pub(crate) mod context;
pub(crate) mod control;
pub(crate) mod detached;
pub(crate) mod edit;
pub(crate) mod effects;
pub(crate) mod env;
pub(crate) mod ephemeral;
pub(crate) mod files;
pub(crate) mod flow;
pub(crate) mod handle;
pub(crate) mod handoff;
pub(crate) mod hooks;
pub(crate) mod http_tool;
pub(crate) mod invoke;
pub(crate) mod log;
pub(crate) mod model_call;
pub(crate) mod opening;
pub(crate) mod operator;
pub(crate) mod outbox;
pub(crate) mod post;
pub(crate) mod provider_call;
pub(crate) mod replay;
pub(crate) mod scope;
pub(crate) mod session;
pub(crate) mod step;
pub(crate) mod stop;
pub(crate) mod stream;
pub(crate) mod subagents;
pub(crate) mod subprompt;
pub(crate) mod tool_call;
pub(crate) mod tool_queue;
pub(crate) mod tool_result;
pub(crate) mod values;

pub use crate::api::endpoints::EndpointAnswer;
pub use crate::api::endpoints::EndpointCall;
pub use crate::api::endpoints::Panicked;
pub use crate::engine::effects::NewEffect;
pub use crate::engine::effects::Repetition;
pub use crate::engine::files::FileChunk;
pub use crate::engine::files::FileOptions;
pub use crate::engine::files::FileRecord;
pub use crate::engine::files::FileStats;
pub use crate::engine::files::GrepMatch;
pub use crate::engine::files::GrepResult;
pub use crate::engine::files::spilled_above;
pub use crate::engine::hooks::HookCall;
pub use crate::engine::subagents::RemoteThread;
pub use crate::engine::subagents::Subagent;
pub use crate::sdk::Identity;
pub use crate::sdk::NewMessage;
pub use crate::sdk::ThreadState;
pub use crate::sdk::messages::MessageUpdate;
pub use crate::sdk::messages::NewAttachment;
pub use crate::sdk::run_handle::AbortSignal;
pub use crate::sdk::run_handle::Execution;
pub use crate::store::side::Side;
pub use crate::work::native::EffectCall;
pub use crate::work::native::NativeCall;
pub use crate::work::native::Natives;

use std::cell::RefCell;
use std::rc::Rc;

use crate::access;
use crate::access::Action;
use crate::access::ThreadRef;
use crate::engine::effects::schedule::By;
use crate::engine::ephemeral::Live;
use crate::error::Code;
use crate::error::Error;
use crate::error::Result;
use crate::host::Host;
use crate::host::Sql;
use crate::host::Transactions;
use crate::host::http;
use crate::request::Reply;
use crate::request::Served;
use crate::request::ThreadRequest;
use crate::request::ThreadRoute;
use crate::request::fields::Body;
use crate::sandbox::Sandbox;
use crate::spec::Catalog;
use crate::store::state::State;

/// One thread: its definitions, its host, and a cache of what it stored.
pub struct Thread {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) natives: Rc<dyn Natives>,
    pub(crate) sandbox: Rc<dyn Sandbox>,
    pub(crate) catalog: Rc<Catalog>,
    /// A cache; `None` until read, and again after anything went wrong.
    pub(crate) state: RefCell<Option<State>>,
    /// What exists only while the object lives: the flow, waiters, the partial text.
    pub(crate) live: Live,
}

impl Thread {
    /// A thread on its host, with what runs the application's own code. Reads nothing yet.
    pub fn new(
        host: Rc<dyn Host>,
        natives: Rc<dyn Natives>,
        sandbox: Rc<dyn Sandbox>,
        catalog: Rc<Catalog>,
    ) -> Rc<Self> {
        Rc::new(Thread { host, natives, sandbox, catalog, state: RefCell::new(None), live: Live::default() })
    }

    /// Answers a request of the API. Any wake of an object with an unfinished run goes on with it.
    pub async fn handle(self: Rc<Self>, request: ThreadRequest) -> Reply {
        let _lost = LostFrames(&*self.host);
        let answer = self.answer(request).await;
        answer.unwrap_or_else(|error| {
            if error.code == Code::Internal {
                self.log(&format!("internal error: {error}"));
            }
            Reply::from(self.redact_error(error))
        })
    }

    /// Answers a request of a streamed route ([`ThreadRoute::is_streamed`]) with its body, which is read as far as it
    /// is wanted. The same as [`Thread::handle`] otherwise.
    pub async fn serve(self: Rc<Self>, request: ThreadRequest, body: http::Body) -> Served {
        let _lost = LostFrames(&*self.host);
        let served = self.answer_streamed(request, body).await;
        served.unwrap_or_else(|error| {
            if error.code == Code::Internal {
                self.log(&format!("internal error: {error}"));
            }
            Served::from(self.redact_error(error))
        })
    }

    async fn answer_streamed(self: &Rc<Self>, request: ThreadRequest, body: http::Body) -> Result<Served> {
        self.authorise(&request)?;
        check_query(&request)?;
        self.wake()?;
        if let ThreadRoute::Endpoint { method, path } = &request.route {
            return self.serve_endpoint(&request, *method, path, body).await;
        }
        self.serve_file(&request, body).await
    }

    async fn answer(self: &Rc<Self>, request: ThreadRequest) -> Result<Reply> {
        if request.route == ThreadRoute::Create {
            return self.create(&request).await;
        }
        if request.route == ThreadRoute::Letter {
            return self.hear(&request).await;
        }
        self.authorise(&request)?;
        check_query(&request)?;
        self.wake()?;
        match &request.route {
            ThreadRoute::Create | ThreadRoute::Letter | ThreadRoute::Stream | ThreadRoute::Events => {
                Err(Error::new(Code::NotFound, "Streams are opened by an upgrade, not by a call."))
            }
            ThreadRoute::Member => self.answer_member(&request).await,
            ThreadRoute::Get => self.get(&request),
            ThreadRoute::Patch => self.patch(&request.body).await,
            ThreadRoute::Delete => self.delete(&request).await,
            ThreadRoute::PostMessage => self.post_message(&request).await,
            ThreadRoute::ListMessages => self.list_messages(&request.query),
            ThreadRoute::GetMessage(id) => self.get_message(id),
            ThreadRoute::PatchMessage(id) => self.patch_message(id, &request.body).await,
            ThreadRoute::DeleteMessage(id) => self.delete_message(id),
            ThreadRoute::Stop => {
                Body::parse(&request.body)?.known(&[])?;
                self.stop()
            }
            ThreadRoute::Continue => self.continue_run(&request.body),
            ThreadRoute::Terminate => {
                Body::parse(&request.body)?.known(&[])?;
                self.terminate().await
            }
            ThreadRoute::ListLogs => self.list_logs(&request.query),
            ThreadRoute::GetLog(id) => self.get_log(id),
            ThreadRoute::Diagnostics => self.diagnostics().await,
            ThreadRoute::ListSubagents => self.list_subagents(&request.query),
            ThreadRoute::GetCost => self.get_cost().await,
            ThreadRoute::GetValues => self.get_values(&request.query),
            ThreadRoute::PostValue => self.post_value(&request.body),
            ThreadRoute::DeleteValue => self.delete_value(&request.query),
            ThreadRoute::GetVariables(id) => self.get_variables(id).await,
            ThreadRoute::PostVariables(id) => self.post_variables(&request, id).await,
            ThreadRoute::ListEffects => self.list_effects(&request.query),
            ThreadRoute::PostEffect => self.post_effect(&request),
            ThreadRoute::GetEffect(id) => self.get_effect(id),
            ThreadRoute::RunEffect(id) => {
                Body::parse(&request.body)?.known(&[])?;
                self.run_effect_now(id)
            }
            ThreadRoute::CancelEffect(id) => {
                Body::parse(&request.body)?.known(&[])?;
                self.cancel_effect(id, By::User)
            }
            ThreadRoute::ListFiles
            | ThreadRoute::GetFile(_)
            | ThreadRoute::HeadFile(_)
            | ThreadRoute::PutFile(_)
            | ThreadRoute::PostFile(_)
            | ThreadRoute::MoveFile(_)
            | ThreadRoute::DeleteFile(_)
            | ThreadRoute::ListUploads
            | ThreadRoute::StartUpload
            | ThreadRoute::GetUpload(_)
            | ThreadRoute::PutChunk { .. }
            | ThreadRoute::CompleteUpload(_)
            | ThreadRoute::DeleteUpload(_)
            | ThreadRoute::Endpoint { .. } => Err(Error::internal("a streamed route was called with a text")),
        }
    }

    /// Compares the caller's scope with the thread's owner. A thread that is not the caller's is not found.
    fn authorise(&self, request: &ThreadRequest) -> Result<()> {
        let action = match &request.route {
            ThreadRoute::Endpoint { method, path } => self.endpoint_action(*method, path),
            route if route.reads() => Action::ReadThread,
            ThreadRoute::Stream | ThreadRoute::Events => Action::Stream,
            ThreadRoute::PostMessage => Action::Send,
            ThreadRoute::Stop | ThreadRoute::Continue => Action::StopContinue,
            _ => Action::Manage,
        };
        self.read(|state, _| {
            let thread = ThreadRef { id: &state.meta.thread_id, owner: state.meta.owner.as_deref() };
            request.caller.may(&action, Some(thread))
        })
    }

    /// Looks at the state and the tables.
    pub(crate) fn read<T>(&self, f: impl FnOnce(&State, &dyn Sql) -> Result<T>) -> Result<T> {
        self.ensure_loaded()?;
        let state = self.state.borrow();
        f(state.as_ref().ok_or_else(access::no_thread)?, self.host.sql())
    }

    /// Looks at the state and may fill its caches; writes nothing.
    pub(crate) fn read_mut<T>(&self, f: impl FnOnce(&mut State, &dyn Sql) -> Result<T>) -> Result<T> {
        self.ensure_loaded()?;
        let mut state = self.state.borrow_mut();
        f(state.as_mut().ok_or_else(access::no_thread)?, self.host.sql())
    }

    /// One transition: everything inside commits together, or nothing does and the cache is dropped. The state is
    /// taken out meanwhile, so that a panic inside leaves none behind.
    pub(crate) fn transition<T>(&self, f: impl FnOnce(&mut State, &dyn Sql) -> Result<T>) -> Result<T> {
        self.ensure_loaded()?;
        let mut state = self.state.borrow_mut().take().ok_or_else(access::no_thread)?;
        let value = self.transaction(|sql| f(&mut state, sql))?;
        *self.state.borrow_mut() = Some(state);
        Ok(value)
    }

    /// A transaction of the host. When it rolls back, by an error or a panic, what was known of the alarm is forgotten:
    /// it may have been set inside.
    pub(crate) fn transaction<T>(&self, f: impl FnOnce(&dyn Sql) -> Result<T>) -> Result<T> {
        let rolls_back = self.live.alarm.forget_unless_kept();
        let value = self.host.transaction(f)?;
        rolls_back.keep();
        Ok(value)
    }

    pub(crate) fn ensure_loaded(&self) -> Result<()> {
        self.load()?;
        let Err(error) = self.settle_works() else { return Ok(()) };
        // A thread that can be written no more stays readable; the next look tries again.
        self.tell_once(format!("the outcome of calls could not be stored: {error}"));
        self.load()
    }

    fn load(&self) -> Result<()> {
        if self.state.borrow().is_some() {
            return Ok(());
        }
        let sql = self.host.sql();
        let migrate = |version| self.host.transaction(|sql| crate::store::schema::migrate(sql, version));
        let state = State::load(sql, migrate)?.ok_or_else(access::no_thread)?;
        *self.state.borrow_mut() = Some(state);
        Ok(())
    }
}

/// Refuses parameters that the route does not know.
fn check_query(request: &ThreadRequest) -> Result<()> {
    request.route.parameters().map_or(Ok(()), |known| request.query.check(known))
}

/// A panic may come between a commit and the frame that tells of it. Then every listener's connection is ended: it
/// comes back, says what it has, and is sent the rest.
struct LostFrames<'a>(&'a dyn Host);

impl Drop for LostFrames<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.listeners().close("the thread had to start over");
        }
    }
}
