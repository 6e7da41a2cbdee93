//! `bobbin.json`.

use crate::validate::Check;

/// The file, below the folder of definitions.
pub(crate) const FILE: &str = "bobbin.json";

impl Check<'_> {
    pub(crate) fn folder_settings(&mut self) {
        for (inner, message) in self.catalog.settings.retry_defaults.problems() {
            self.error_in_settings(format!("retryDefaults.{inner}"), message);
        }
        for (inner, message) in self.catalog.settings.scrub.problems(None) {
            self.error_in_settings(format!("scrub.{inner}"), message);
        }
        for (inner, message) in self.catalog.settings.budget.problems() {
            self.error_in_settings(format!("budget.{inner}"), message);
        }
    }
}
