//! One thread: its host, its definitions, and a cache of its stored state.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use crate::access;
use crate::definitions::Catalog;
use crate::engine::catalogs::Catalogs;
use crate::engine::ephemeral::Ephemeral;
use crate::error::Result;
use crate::host::{Host, Sql, Transactions, not_run};
use crate::sandbox::Sandbox;
use crate::store::state::State;
use crate::store::{meta, schema};
use crate::work::native::Natives;

/// One thread: its definitions, its host, and a cache of its stored state. A clone is a reference to the same
/// thread.
#[derive(Clone)]
pub struct Thread(Rc<Parts>);

/// The parts of a thread.
pub struct Parts {
    pub(crate) host: Rc<dyn Host>,
    pub(super) natives: Rc<dyn Natives>,
    pub(super) sandbox: Rc<dyn Sandbox>,
    pub(crate) catalog: Catalogs,
    /// A cache; `None` until the first read, and after an error.
    pub(crate) state: RefCell<Option<Box<State>>>,
    /// State that exists only while the object lives: the flow, waiters, the partial text.
    pub(crate) ephemeral: Ephemeral,
    /// Whether it was deleted. Code that still runs in it then finds no thread, even if a new thread has its
    /// place.
    gone: Cell<bool>,
}

impl Deref for Thread {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The current thread of an object. A deleted thread is replaced by a new one, which may be created. The new
/// thread shares no memory with work that still runs in the old one.
pub struct ThreadSlot(RefCell<Thread>);

impl ThreadSlot {
    /// A slot for a thread on this host, with the runtimes of the application's code. Reads nothing yet.
    pub fn new(
        host: Rc<dyn Host>,
        natives: Rc<dyn Natives>,
        sandbox: Rc<dyn Sandbox>,
        catalog: Rc<Catalog>,
    ) -> ThreadSlot {
        ThreadSlot(RefCell::new(Thread::new(host, natives, sandbox, catalog)))
    }

    /// The current thread.
    pub fn thread(&self) -> Thread {
        let mut held = self.0.borrow_mut();
        if held.gone.get() {
            let Parts { host, natives, sandbox, catalog, .. } = &**held;
            let compiled = catalog.compiled().clone();
            let next = Thread::new(host.clone(), natives.clone(), sandbox.clone(), compiled);
            *held = next;
        }
        held.clone()
    }
}

/// The additional writes that a transition's changes require, in its transaction. `memory::sources` implements it.
pub(super) trait ChangeNotes {
    /// Notes the changed messages and files for the memories that read them.
    ///
    /// # Errors
    /// Those of the database. Then the transition is rolled back.
    fn note_changes(&self, state: &mut State, sql: &dyn Sql) -> Result<()>;
}

impl Thread {
    /// A thread on its host, with the runtimes of the application's code. Reads nothing yet.
    fn new(
        host: Rc<dyn Host>,
        natives: Rc<dyn Natives>,
        sandbox: Rc<dyn Sandbox>,
        catalog: Rc<Catalog>,
    ) -> Self {
        Thread(Rc::new(Parts {
            host,
            natives,
            sandbox,
            catalog: Catalogs::new(catalog),
            state: RefCell::new(None),
            ephemeral: Ephemeral::default(),
            gone: Cell::new(false),
        }))
    }

    /// Reads the state and the tables.
    pub(crate) fn read<T>(&self, f: impl FnOnce(&State, &dyn Sql) -> Result<T>) -> Result<T> {
        self.ensure_loaded()?;
        let state = self.state.borrow();
        f(state.as_ref().ok_or_else(access::no_thread)?, self.host.sql())
    }

    /// Reads the state and may fill its caches; writes nothing.
    pub(crate) fn read_mut<T>(&self, f: impl FnOnce(&mut State, &dyn Sql) -> Result<T>) -> Result<T> {
        self.ensure_loaded()?;
        let mut state = self.state.borrow_mut();
        f(state.as_mut().ok_or_else(access::no_thread)?, self.host.sql())
    }

    /// One transition: everything inside commits together, or nothing does and the cache is dropped.
    pub(crate) fn transition<T>(&self, f: impl FnOnce(&mut State, &dyn Sql) -> Result<T>) -> Result<T> {
        let (mut f, mut value) = (Some(f), None);
        self.transit(&mut |state, sql| {
            if let Some(f) = f.take() {
                value = Some(f(state, sql)?);
            }
            Ok(())
        })?;
        value.ok_or_else(not_run)
    }

    /// The part of [`Thread::transition`] that is compiled once and not for each closure. The state is taken
    /// out during the transition, so that a panic leaves no state behind, not even one that was loaded
    /// meanwhile.
    fn transit(&self, f: &mut dyn FnMut(&mut State, &dyn Sql) -> Result<()>) -> Result<()> {
        self.ensure_loaded()?;
        let mut state = self.state.borrow_mut().take().ok_or_else(access::no_thread)?;
        let empties = CacheGuard(&self.state);
        self.transact(&mut |sql| {
            f(&mut state, sql)?;
            if !state.changed.is_empty() {
                self.note_changes(&mut state, sql)?;
            }
            Ok(())
        })?;
        drop(empties);
        *self.state.borrow_mut() = Some(state);
        Ok(())
    }

    /// Runs a transaction of the host.
    pub(crate) fn transaction<T>(&self, f: impl FnOnce(&dyn Sql) -> Result<T>) -> Result<T> {
        let (mut f, mut value) = (Some(f), None);
        self.transact(&mut |sql| {
            if let Some(f) = f.take() {
                value = Some(f(sql)?);
            }
            Ok(())
        })?;
        value.ok_or_else(not_run)
    }

    /// See [`Thread::transaction`]. An error or a panic rolls it back. The alarm's state is then unknown,
    /// because it may have been set inside.
    fn transact(&self, f: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        self.ensure_not_deleted()?;
        let rolls_back = self.ephemeral.alarm.forget_unless_kept();
        self.host.transact(f)?;
        rolls_back.keep();
        Ok(())
    }

    /// Marks the thread as deleted, and drops its cached state.
    pub(super) fn go(&self) {
        self.gone.set(true);
        self.state.borrow_mut().take();
        self.ephemeral.alarm.forget();
    }

    /// Whether the thread has listeners.
    pub(super) fn has_listeners(&self) -> bool {
        !self.gone.get() && self.host.listeners().any()
    }

    /// Whether it has listeners that follow one run.
    pub(super) fn has_followers(&self) -> bool {
        self.has_listeners() && self.host.listeners().follow_run()
    }

    /// Writes the tables and the row of a new thread, inside the transaction that creates it. Posts it to the
    /// directory.
    pub(crate) fn create_tables(&self, state: &State, sql: &dyn Sql, now: i64) -> Result<()> {
        schema::migrate(sql, 0)?;
        state.meta.insert(sql, schema::VERSION)?;
        if !state.creation_handled {
            meta::mark_created_pending(sql)?;
        }
        self.outbox().post_row(state, sql, now)
    }

    fn ensure_not_deleted(&self) -> Result<()> {
        if self.gone.get() { Err(access::no_thread()) } else { Ok(()) }
    }

    pub(crate) fn ensure_loaded(&self) -> Result<()> {
        self.ensure_not_deleted()?;
        self.load()?;
        self.mcp().load_lists()?;
        let Err(error) = self.settle_works() else { return Ok(()) };
        // A thread that cannot be written stays readable; the next read tries again.
        self.variables().log_once(format!("the outcome of calls could not be stored: {error}"));
        self.load()
    }

    fn load(&self) -> Result<()> {
        if self.state.borrow().is_some() {
            return Ok(());
        }
        let sql = self.host.sql();
        let migrate = |version| self.host.transaction(|sql| schema::migrate(sql, version));
        let state = State::load(sql, migrate)?.ok_or_else(access::no_thread)?;
        *self.state.borrow_mut() = Some(Box::new(state));
        Ok(())
    }
}

/// Drops any state that was loaded during a transition, however the transition ends.
struct CacheGuard<'a>(&'a RefCell<Option<Box<State>>>);

impl Drop for CacheGuard<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.try_borrow_mut() {
            state.take();
        }
    }
}

/// A panic may come between a commit and its frame. This guard then closes every listener's connection.
/// Clients reconnect with their position and receive the rest.
pub(crate) struct LostFrames<'a>(pub(crate) &'a dyn Host);

impl Drop for LostFrames<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.listeners().close("the thread had to start over");
        }
    }
}
