//! `bobbin.json`: settings of a folder of definitions.

use bobbin_definitions::definitions::Settings;
use bobbin_definitions::validate::{Complaint, Severity};

use crate::folder::SETTINGS;
use crate::{shape, text};

/// Reads the settings. Reports invalid ones and uses their defaults.
pub(super) fn read(json: &str, complaints: &mut Vec<Complaint>) -> Settings {
    let value = match text::read(SETTINGS, json) {
        Ok(value) => value,
        Err(wrong) => {
            complaints.push(wrong);
            return Settings::default();
        }
    };
    let (settings, wrong) = shape::read::<Settings>(value);
    for shape::Wrong { field, message } in wrong {
        complaints.push(Complaint { file: SETTINGS.to_owned(), field, message, severity: Severity::Error });
    }
    settings.unwrap_or_default()
}
