//! The values of the account and of the instance. Directories store them, and threads cache them in memory. A
//! thread revalidates its cache once in each run that may need a value, and before each effect and endpoint
//! request that does. A new value therefore takes effect with the next run. The directories' replies are
//! encrypted.
//!
//! Without keys a deployment has no such values, and an agent without variables needs none. In both cases
//! there is no request.

use futures::future::{LocalBoxFuture, try_join};

use crate::definitions::{Http, graph, template};
use crate::engine::features::Variables;
use crate::env::level;
use crate::env::level::Level;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::request::directory_call as call;
use crate::request::directory_call::ROOT;

impl Variables<'_> {
    /// Loads the values that the agent's definitions may need, before a step.
    ///
    /// # Errors
    /// `overloaded`: a directory did not reply.
    pub(crate) async fn ready_env(&self) -> Result<()> {
        let agent = self.read(|state, _| Ok(state.meta.agent.clone()))?;
        if self.uses_values(&agent) { self.refresh_env().await } else { Ok(()) }
    }

    /// Loads the values for a request to a URL, if it uses any.
    pub(crate) async fn ready_http(&self, http: &Http) -> Result<()> {
        if http.uses_values() { self.refresh_env().await } else { Ok(()) }
    }

    /// Revalidates the values of the account and the instance, once per run.
    ///
    /// Boxed, so that the futures of its callers do not embed this one.
    #[inline(never)]
    pub(crate) fn refresh_env(&self) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(self.refresh())
    }

    async fn refresh(&self) -> Result<()> {
        let (run, owner) =
            self.read(|state, _| Ok((state.active().map(|run| run.id), state.meta.owner.clone())))?;
        let levels = &self.ephemeral.env.levels;
        if run.is_some() && levels.fresh.get() == run {
            return Ok(());
        }
        self.ask_levels(owner.as_deref()).await?;
        levels.fresh.set(run);
        Ok(())
    }

    /// Requests the values from both directories, with retries.
    pub(super) async fn ask_levels(&self, owner: Option<&str>) -> Result<()> {
        if !level::are_kept(&*self.host) {
            return Ok(());
        }
        let mut pauses = limits::ENV_PAUSES_US.into_iter();
        loop {
            let account = async {
                match owner {
                    Some(_) => self.ask_level(call::name_of(owner), &self.ephemeral.env.levels.account).await,
                    None => Ok(()),
                }
            };
            let instance = self.ask_level(ROOT.to_owned(), &self.ephemeral.env.levels.instance);
            let Err(error) = try_join(account, instance).await else { return Ok(()) };
            let Some(pause) = pauses.next() else {
                return Err(Error::new(
                    Code::Overloaded,
                    format!("The values of the account and the instance could not be read: {error}"),
                ));
            };
            self.host.sleep_until(self.host.now_us() + pause).await;
        }
    }

    async fn ask_level(&self, directory: String, level: &Level) -> Result<()> {
        if level::refresh(&*self.host, directory, level).await? {
            self.ephemeral.env.secrets.forget();
        }
        Ok(())
    }

    /// Whether a run of this agent may need a value of the account or the instance.
    #[inline(never)]
    fn uses_values(&self, agent: &str) -> bool {
        if let Some((_, uses)) = self.ephemeral.env.uses.borrow().as_ref().filter(|(known, _)| known == agent)
        {
            return *uses;
        }
        let uses = self.catalog.agents.get(agent).is_some_and(|agent| {
            graph::reach(&self.catalog, agent).into_iter().any(|found| {
                let model = match found.item {
                    graph::Item::Prompt(prompt) => self.uses_for_model(&prompt.model),
                    graph::Item::Agent(_)
                    | graph::Item::Tool(_)
                    | graph::Item::Hook(_)
                    | graph::Item::Server(_) => false,
                };
                model || found.item.uses_values()
            })
        });
        *self.ephemeral.env.uses.borrow_mut() = Some((agent.to_owned(), uses));
        uses
    }

    /// Whether the model or a fallback has a key or address that is not set as a Worker variable.
    fn uses_for_model(&self, model: &str) -> bool {
        self.catalog.model_chain(model).into_iter().any(|model| {
            let in_url = model.base_url.as_deref().map(template::names).unwrap_or_default();
            in_url.into_iter().chain(model.key_env()).any(|name| self.host.var(name).is_none())
        })
    }
}
