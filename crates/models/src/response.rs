//! The provider's identification of a response: its id, and the model that produced it.

use crate::Delta;
use bobbin_definitions::limits;
use bobbin_definitions::text::first_bytes;

/// Which of the two are known while a response is decoded. Events may repeat them.
#[derive(Debug, Default)]
pub struct SeenNames {
    id: bool,
    model: bool,
}

impl SeenNames {
    /// Reads an event's id and model. Each is passed on once.
    pub fn take(&mut self, id: &str, model: &str, out: &mut Vec<Delta>) {
        let id = if self.id { "" } else { id.trim() };
        let model = if self.model { "" } else { model.trim() };
        if id.is_empty() && model.is_empty() {
            return;
        }
        self.id |= !id.is_empty();
        self.model |= !model.is_empty();
        out.push(Delta::Response { id: id.to_owned(), model: model.to_owned() });
    }
}

/// Id and model of an attempt, for the log. They are foreign texts, of at most
/// [`limits::RESPONSE_NAME_BYTES`] each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseNames {
    /// Empty when unknown.
    pub id: String,
    /// Empty when unknown.
    pub model: String,
}

impl ResponseNames {
    /// Takes a [`Delta::Response`]. The first value of each wins.
    pub fn take(&mut self, id: &str, model: &str) {
        for (mine, told) in [(&mut self.id, id), (&mut self.model, model)] {
            if mine.is_empty() {
                *mine = bounded(told);
            }
        }
    }

    /// Clears values that contain the API key of the request.
    pub fn hide(&mut self, key: Option<&str>) {
        for mine in [&mut self.id, &mut self.model] {
            if holds(mine, key) {
                mine.clear();
            }
        }
    }
}

/// Whether a text contains the key.
pub fn holds(text: &str, key: Option<&str>) -> bool {
    key.is_some_and(|key| !key.is_empty() && text.contains(key))
}

/// The first [`limits::RESPONSE_NAME_BYTES`] bytes of a name.
pub fn bounded(text: &str) -> String {
    first_bytes(text, limits::RESPONSE_NAME_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_told_once_and_is_bounded() {
        let (mut named, mut out) = (SeenNames::default(), Vec::new());
        for (id, model) in [("", ""), ("", "m"), ("a", "m"), ("a", "m"), ("b", "n")] {
            named.take(id, model, &mut out);
        }
        let told = |id: &str, model: &str| Delta::Response { id: id.into(), model: model.into() };
        assert_eq!(out, [told("", "m"), told("a", "")]);
        let mut names = ResponseNames::default();
        names.take("", &"\u{e9}".repeat(150));
        names.take("sk-secret-1", "other");
        assert_eq!((names.id.as_str(), names.model), ("sk-secret-1", "\u{e9}".repeat(100)));
        let mut names = ResponseNames { id: names.id, model: "m".into() };
        names.hide(Some(""));
        names.hide(Some("sk-secret"));
        assert_eq!(names, ResponseNames { id: String::new(), model: "m".into() });
    }
}
