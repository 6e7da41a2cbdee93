//! Values of variables: those that the model of a memory needs, and secrets that stored texts must not
//! contain.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use futures::future::try_join;

use crate::definitions::catalog::RESERVED_PREFIX;
use crate::definitions::graph::DeclaredVariables;
use crate::definitions::{Memory, VariableKind, template};
use crate::env::level;
use crate::env::level::Level;
use crate::env::{Redactor, StoredValue};
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::memory::shared::SharedMemory;
use crate::request::directory_call::{ROOT, name_of};

/// Cached values of the object.
#[derive(Default)]
pub(super) struct Values {
    account: Level,
    instance: Level,
    declared: OnceCell<DeclaredVariables>,
    /// Removes the cached secrets; reset when they change.
    redactor: RefCell<Option<Rc<Redactor>>>,
}

impl SharedMemory {
    /// The value of a Worker variable or, if there is none, of the instance. Definitions cannot read the
    /// runtime's own settings.
    pub(super) fn of_deployment(&self, name: &str) -> Option<String> {
        if name.starts_with(RESERVED_PREFIX) {
            return None;
        }
        self.host.var(name).or_else(|| {
            let instance = self.values.instance.borrow();
            let held = instance.as_ref().and_then(|copy| copy.set.get(name))?;
            held.read()
                .inspect_err(|error| self.log(&format!("{name} has no value here: {error}")))
                .ok()
                .map(str::to_owned)
        })
    }

    /// Writes a line to the operator's log.
    pub(super) fn log(&self, line: &str) {
        self.host.log(&self.redactor().text(line));
    }

    /// Ensures that the values for the memory's model are cached.
    pub(super) async fn ready_to_embed(&self, memory: &Memory) -> Result<()> {
        let model = memory.embedding.as_ref().and_then(|name| self.catalog.models.get(name));
        let Some(model) = model else { return Ok(()) };
        let in_url = model.base_url.as_deref().map(template::names).unwrap_or_default();
        if in_url.into_iter().chain(model.key_env()).all(|name| self.host.var(name).is_some()) {
            return Ok(());
        }
        self.refresh(None).await
    }

    /// Ensures that the secrets of an owner and of the instance are cached, before texts are cleaned.
    pub(super) async fn ready_to_clean(&self, owner: Option<&str>) -> Result<()> {
        self.refresh(owner).await
    }

    /// Reads the values from the directories, with retries.
    async fn refresh(&self, owner: Option<&str>) -> Result<()> {
        let host = &*self.host;
        if !level::are_kept(host) {
            return Ok(());
        }
        let mut pauses = limits::ENV_PAUSES_US.into_iter();
        loop {
            let account = async {
                match owner {
                    Some(_) => level::refresh(host, name_of(owner), &self.values.account).await,
                    None => Ok(false),
                }
            };
            let instance = level::refresh(host, ROOT.to_owned(), &self.values.instance);
            let error = match try_join(account, instance).await {
                Ok((false, false)) => return Ok(()),
                Ok(_) => {
                    self.values.redactor.borrow_mut().take();
                    return Ok(());
                }
                Err(error) => error,
            };
            let Some(pause) = pauses.next() else {
                let text = format!("The values of the account and the instance could not be read: {error}");
                return Err(Error::new(Code::Overloaded, text));
            };
            host.sleep_until(host.now_us() + pause).await;
        }
    }

    /// The redactor for all cached secrets.
    pub(super) fn redactor(&self) -> Rc<Redactor> {
        if let Some(known) = &*self.values.redactor.borrow() {
            return known.clone();
        }
        let declared = self.values.declared.get_or_init(|| DeclaredVariables::of(&self.catalog));
        let mut secrets: Vec<(String, String)> = Vec::new();
        for level in [&self.values.account, &self.values.instance] {
            let secret = |(name, held): &(&str, &StoredValue)| {
                held.kind == VariableKind::Secret || declared.is_secret(name)
            };
            let level = level.borrow();
            let held = level.iter().flat_map(|copy| copy.set.iter()).filter(secret);
            secrets.extend(
                held.filter_map(|(name, held)| Some((name.to_owned(), held.read().ok()?.to_owned()))),
            );
        }
        let own = declared.secrets().filter_map(|name| Some((name.to_owned(), self.host.var(name)?)));
        secrets.extend(own);
        secrets.extend(declared.secret_values().map(|(name, value)| (name.to_owned(), value.to_owned())));
        let named = secrets.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let redactor = Rc::new(Redactor::new(named));
        *self.values.redactor.borrow_mut() = Some(redactor.clone());
        redactor
    }
}
