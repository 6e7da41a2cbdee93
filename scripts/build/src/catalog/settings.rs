//! `bobbin.json`: settings of a folder of definitions.

use bobbin::validate::{Complaint, Severity};
use schemars::JsonSchema;
use serde::Deserialize;

use super::folder::SETTINGS;
use super::{shape, text};

/// Which complaints keep the definitions from being served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Diagnostics {
    /// Errors.
    #[default]
    Normal,
    /// Warnings too.
    Strict,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Settings {
    diagnostics: Diagnostics,
}

/// Reads the settings; those that are wrong are complained about and have their defaults.
pub(super) fn read(json: &str, complaints: &mut Vec<Complaint>) -> Diagnostics {
    let value = match text::read(SETTINGS, json) {
        Ok(value) => value,
        Err(wrong) => {
            complaints.push(wrong);
            return Diagnostics::default();
        }
    };
    let (settings, wrong) = shape::read::<Settings>(value);
    for shape::Wrong { field, message } in wrong {
        complaints.push(Complaint { file: SETTINGS.to_owned(), field, message, severity: Severity::Error });
    }
    settings.unwrap_or_default().diagnostics
}
