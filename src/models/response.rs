//! What a provider calls its answer: an id, and the model that gave it.

use crate::limits;
use crate::models::Delta;
use crate::text::first_bytes;

/// What was told of it so far, while an answer is decoded: each event may say it again.
#[derive(Debug, Default)]
pub(crate) struct Named {
    id: bool,
    model: bool,
}

impl Named {
    /// What an event says; what was told before is not told again.
    pub(crate) fn take(&mut self, id: &str, model: &str, out: &mut Vec<Delta>) {
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

/// The same of an attempt, for the log: texts of others, each of [`limits::RESPONSE_NAME_BYTES`] at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseNames {
    /// Empty where it was not told.
    pub(crate) id: String,
    /// Empty where it was not told.
    pub(crate) model: String,
}

impl ResponseNames {
    /// Takes what a [`Delta::Response`] says; what comes first counts.
    pub(crate) fn take(&mut self, id: &str, model: &str) {
        for (mine, told) in [(&mut self.id, id), (&mut self.model, model)] {
            if mine.is_empty() {
                *mine = bounded(told);
            }
        }
    }

    /// Leaves out what holds a key that the provider was sent.
    pub(crate) fn hide(&mut self, key: Option<&str>) {
        for mine in [&mut self.id, &mut self.model] {
            if holds(mine, key) {
                mine.clear();
            }
        }
    }
}

/// Whether a text has a key in it.
pub(crate) fn holds(text: &str, key: Option<&str>) -> bool {
    key.is_some_and(|key| !key.is_empty() && text.contains(key))
}

pub(crate) fn bounded(text: &str) -> String {
    first_bytes(text, limits::RESPONSE_NAME_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_told_once_and_is_bounded() {
        let (mut named, mut out) = (Named::default(), Vec::new());
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
