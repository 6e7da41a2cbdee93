//! Query parameters with errors that name them.

use serde::{Deserialize, Serialize};

use bobbin_definitions::error::{Error, Result};
use bobbin_definitions::validate::nearest;

/// Decoded query parameters, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Query(pub Vec<(String, String)>);

impl Query {
    /// Refuses unknown and repeated parameters.
    ///
    /// # Errors
    /// `invalid_field` names the parameter, and the known one that is most similar.
    pub fn check(&self, known: &[&str]) -> Result<()> {
        for (at, (name, _)) in self.0.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(unknown("parameter", name, known));
            }
            if self.0.iter().take(at).any(|(before, _)| before == name) {
                return Err(Error::field(name, format!("`{name}` is given twice.")));
            }
        }
        Ok(())
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// A whole number between 0 and `max`, or `default`. A larger one becomes `max`.
    pub fn number(&self, name: &str, default: u32, max: u32) -> Result<u32> {
        match self.get(name) {
            None | Some("") => Ok(default),
            Some(text) => text
                .parse::<u32>()
                .map(|value| value.min(max))
                .map_err(|_| Error::field(name, format!("`{name}` must be a whole number, not “{text}”."))),
        }
    }

    /// `true`/`1` or `false`/`0`; absent is false.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None | Some("" | "false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(text) => Err(Error::field(name, format!("`{name}` must be true or false, not “{text}”."))),
        }
    }
}

/// The error for an unknown name.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let there_are = match known {
        [] => "There are none here.".to_owned(),
        known => format!("There are: {}.", known.join(", ")),
    };
    let hint = match nearest(name, known) {
        Some(near) => format!("Did you mean `{near}`? {there_are}"),
        None => there_are,
    };
    // A name may be as long as a body, so the message shows only its beginning.
    let shown: String = name.chars().take(100).collect();
    Error::field(&shown, format!("`{shown}` is no {what} of this request.")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_not_known_or_comes_twice_is_refused() {
        let query = |names: &[&str]| Query(names.iter().map(|name| ((*name).into(), "1".into())).collect());
        assert!(query(&["limit", "offset"]).check(&["offset", "limit"]).is_ok());
        assert!(query(&[]).check(&[]).is_ok());
        let error = query(&["limt"]).check(&["limit", "offset"]).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("limt"));
        assert_eq!(error.hint.as_deref(), Some("Did you mean `limit`? There are: limit, offset."));
        let error = query(&["limit", "limit"]).check(&["limit"]).unwrap_err();
        assert_eq!(error.message, "`limit` is given twice.");
    }
}
