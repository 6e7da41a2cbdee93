//! Effects.

use crate::definitions::references::Kind;
use crate::limits::EFFECT_ATTEMPTS_MAX;
use crate::names::wrong_callable;
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn effects(&mut self) {
        for (name, effect) in &self.catalog.effects {
            let at = Subject { kind: Kind::Effect, name };
            if let Some(wrong) = wrong_callable(name) {
                self.error(at, "name", wrong);
            }
            if let Some(args) = &effect.args {
                self.schema(at, "args", args);
            }
            self.run(at, &effect.run, &self.natives.effects, effect.timeout_ms);
            if effect.attempts.is_some_and(|attempts| attempts == 0 || attempts > EFFECT_ATTEMPTS_MAX) {
                self.error(at, "attempts", format!("must be from 1 to {EFFECT_ATTEMPTS_MAX}"));
            }
            self.variables(at, &effect.variables);
        }
    }
}
