//! Runs the hooks of one name, one after another.

use serde_json::Value;

use crate::definitions::hook::HookName;
use crate::engine::features::Hooks;
use crate::engine::hooks::Site;
use crate::error::Result;

/// The subject that a hook may change.
pub(super) trait Subject {
    /// The current arguments of the hook.
    fn args(&self) -> Vec<Value>;

    /// Applies the hook's return value.
    ///
    /// # Errors
    /// The reason why it is invalid, as text; then nothing has changed.
    fn take(&mut self, answer: Value) -> Result<ChainControl, String>;
}

/// Whether the next hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainControl {
    Go,
    Stop,
}

impl Hooks<'_> {
    /// Runs the hooks of that name one after another on a subject.
    pub(super) async fn transform(
        &self,
        at: &Site<'_>,
        name: HookName,
        subject: &mut dyn Subject,
    ) -> Result<ChainControl> {
        for hook in self.hooks_for(at.definitions, name) {
            let answer = self.call_hook(at, hook, subject.args()).await?;
            match answer.and_then(|answer| subject.take(answer)) {
                Ok(ChainControl::Go) => {}
                Ok(ChainControl::Stop) => return Ok(ChainControl::Stop),
                Err(error) => self.hook_failed(at, hook, &error)?,
            }
        }
        Ok(ChainControl::Go)
    }

    /// Runs the hooks of that name one after another, and ignores their return values.
    pub(super) async fn observe(&self, at: &Site<'_>, name: HookName, args: &[Value]) -> Result<()> {
        for hook in self.hooks_for(at.definitions, name) {
            if let Err(error) = self.call_hook(at, hook, args.to_vec()).await? {
                self.hook_failed(at, hook, &error)?;
            }
        }
        Ok(())
    }
}
