//! Hooks, and the lists that name them.

use std::collections::BTreeSet;

use crate::definitions::references::Kind;
use crate::limits::HOOK_MS;
use crate::names::wrong_id;
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn hooks(&mut self) {
        self.idle_hooks();
        let listed: BTreeSet<&String> = {
            let prompts = self.catalog.prompts.values().flat_map(|prompt| &prompt.hooks);
            prompts.chain(self.catalog.agents.values().flat_map(|agent| &agent.hooks)).collect()
        };
        for (id, hook) in &self.catalog.hooks {
            let at = Subject { kind: Kind::Hook, name: id };
            if let Some(wrong) = wrong_id(id) {
                self.error(at, "id", wrong);
            }
            self.run(at, &hook.run, &self.natives.hooks, None);
            self.variables(at, &hook.variables);
            if hook.timeout_ms.is_some_and(|ms| ms == 0 || ms > HOOK_MS) {
                self.error(at, "timeoutMs", format!("must be from 1 to {HOOK_MS} (30 seconds)"));
            }
            if !listed.contains(id) {
                self.warning(at, "", "no prompt and no agent lists it in `hooks`, so it never runs");
            }
        }
    }

    /// Hooks run while their prompt is active on a side. A prompt that is only called runs none.
    fn idle_hooks(&mut self) {
        let sides =
            self.catalog.agents.values().flat_map(|agent| [Some(&agent.side_a), agent.side_b.as_ref()]);
        let active: BTreeSet<&String> = sides.flatten().map(|side| &side.prompt).collect();
        for (name, prompt) in &self.catalog.prompts {
            if !prompt.hooks.is_empty() && !active.contains(name) {
                let at = Subject { kind: Kind::Prompt, name };
                self.warning(at, "hooks", "never run: no agent has this prompt for a side, and a prompt that is called runs none of its own");
            }
        }
    }

    /// Checks the `hooks` of a prompt or an agent.
    pub(super) fn hook_list(&mut self, at: Subject<'_>, hooks: &[String]) {
        let mut seen = BTreeSet::new();
        for (index, id) in hooks.iter().enumerate() {
            let field = format!("hooks[{index}]");
            self.reference(at, &field, Kind::Hook, id);
            if !seen.insert(id) {
                self.error(at, &field, format!("\"{id}\" is listed twice"));
            }
        }
    }
}
