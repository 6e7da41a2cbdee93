//! One thread: its host, its definitions, and a cache of what it stored.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use crate::access;
use crate::engine::catalogs::Catalogs;
use crate::engine::ephemeral::Ephemeral;
use crate::error::Result;
use crate::host::{Host, Sql, Transactions, not_run};
use crate::sandbox::Sandbox;
use crate::spec::Catalog;
use crate::store::state::State;
use crate::store::{meta, schema};
use crate::work::native::Natives;

/// One thread: its definitions, its host, and a cache of what it stored. A clone is another reference to the same thread.
#[derive(Clone)]
pub struct Thread(Rc<Parts>);

/// What a thread consists of.
pub struct Parts {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) natives: Rc<dyn Natives>,
    pub(crate) sandbox: Rc<dyn Sandbox>,
    pub(crate) catalog: Catalogs,
    /// A cache; `None` until read, and again after anything went wrong.
    pub(crate) state: RefCell<Option<Box<State>>>,
    /// What exists only while the object lives: the flow, waiters, the partial text.
    pub(crate) ephemeral: Ephemeral,
    /// Whether it was deleted. Whoever still works in it finds nothing any more, also when another thread is in its place.
    gone: Cell<bool>,
}

impl Deref for Thread {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Where an object has its thread. One that was deleted gives way: what comes afterwards finds a new one, which may be created,
/// and shares nothing in memory with whatever is still under way in the old one.
pub struct Place(RefCell<Thread>);

impl Place {
    /// A place whose thread is on this host, with what runs the application's own code. Reads nothing yet.
    pub fn new(
        host: Rc<dyn Host>,
        natives: Rc<dyn Natives>,
        sandbox: Rc<dyn Sandbox>,
        catalog: Rc<Catalog>,
    ) -> Place {
        Place(RefCell::new(Thread::new(host, natives, sandbox, catalog)))
    }

    /// The thread that is there now.
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

impl Thread {
    /// A thread on its host, with what runs the application's own code. Reads nothing yet.
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

    /// See [`Thread::transition`], which is compiled for each of hundreds; this is not. The state is taken out meanwhile, so
    /// that a panic inside leaves none behind, nor what somebody has loaded in the middle of it.
    fn transit(&self, f: &mut dyn FnMut(&mut State, &dyn Sql) -> Result<()>) -> Result<()> {
        self.ensure_loaded()?;
        let mut state = self.state.borrow_mut().take().ok_or_else(access::no_thread)?;
        let empties = Empties(&self.state);
        self.transact(&mut |sql| {
            f(&mut state, sql)?;
            if !state.changed.is_empty() {
                self.memories().note_changes(&mut state, sql)?;
            }
            Ok(())
        })?;
        drop(empties);
        *self.state.borrow_mut() = Some(state);
        Ok(())
    }

    /// A transaction of the host.
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

    /// See [`Thread::transaction`]. When it rolls back, by an error or a panic, what was known of the alarm is forgotten: it
    /// may have been set inside.
    fn transact(&self, f: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        self.must_be_here()?;
        let rolls_back = self.ephemeral.alarm.forget_unless_kept();
        self.host.transact(f)?;
        rolls_back.keep();
        Ok(())
    }

    /// It was deleted, and so is all that it knew.
    pub(crate) fn go(&self) {
        self.gone.set(true);
        self.state.borrow_mut().take();
        self.ephemeral.alarm.forget();
    }

    /// Whether anybody is told what happens in it.
    pub(crate) fn has_listeners(&self) -> bool {
        !self.gone.get() && self.host.listeners().any()
    }

    /// The same of those who follow one run.
    pub(crate) fn has_followers(&self) -> bool {
        self.has_listeners() && self.host.listeners().follow_run()
    }

    /// Writes the tables and the row of a new thread, inside the transaction that makes it; the directory is told.
    pub(crate) fn create_tables(&self, state: &State, sql: &dyn Sql, now: i64) -> Result<()> {
        schema::migrate(sql, 0)?;
        state.meta.insert(sql, schema::VERSION)?;
        if !state.created_told {
            meta::must_tell_created(sql)?;
        }
        self.outbox().post_row(state, sql, now)
    }

    fn must_be_here(&self) -> Result<()> {
        if self.gone.get() { Err(access::no_thread()) } else { Ok(()) }
    }

    pub(crate) fn ensure_loaded(&self) -> Result<()> {
        self.must_be_here()?;
        self.load()?;
        self.mcp().load_lists()?;
        let Err(error) = self.settle_works() else { return Ok(()) };
        // A thread that can be written no more stays readable; the next look tries again.
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

/// Whatever way a transition ends, what was read while it went on is not what there is now.
struct Empties<'a>(&'a RefCell<Option<Box<State>>>);

impl Drop for Empties<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.try_borrow_mut() {
            state.take();
        }
    }
}

/// A panic may come between a commit and the frame that tells of it. Then every listener's connection is ended: it
/// comes back, says what it has, and is sent the rest.
pub(crate) struct LostFrames<'a>(pub(crate) &'a dyn Host);

impl Drop for LostFrames<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.listeners().close("the thread had to start over");
        }
    }
}
