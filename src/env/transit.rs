//! Variables in transit between objects: encrypted, and bound to the receiver.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::definitions::VariableKind;
use crate::env::{Change, EncryptedRow, Keys, VariableSet};
use crate::error::Result;

/// A decrypted variable.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PlainVariable {
    pub(crate) name: String,
    pub(crate) kind: VariableKind,
    pub(crate) text: String,
}

/// Shows only name and type.
impl std::fmt::Debug for PlainVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.kind.as_str())
    }
}

/// Encrypts variables for the object with this name. No other object can decrypt them.
///
/// # Errors
/// `encryption_unavailable` without a key.
pub(crate) fn seal(
    object: &str,
    values: &[PlainVariable],
    keys: &Keys,
    random: &dyn Fn() -> [u8; 16],
) -> Result<Vec<EncryptedRow>> {
    let object = VariableSet::empty(object);
    let sealed = values.iter().map(|PlainVariable { name, kind, text }| {
        let sealed = keys.seal(random(), &object.context(name, *kind), text)?;
        let bytes = STANDARD.encode(&sealed.bytes);
        Ok(EncryptedRow { name: name.clone(), kind: *kind, key: sealed.key, sealed: bytes })
    });
    sealed.collect()
}

/// Decrypts variables that were encrypted for the object with this name, as a change that also removes
/// `deleted`.
///
/// # Errors
/// `encryption_unavailable` for a value that cannot be decrypted; the message names it.
pub(crate) fn open(
    object: &str,
    rows: Vec<EncryptedRow>,
    deleted: Vec<String>,
    keys: &Keys,
) -> Result<Change> {
    let set = VariableSet::of(object, rows, keys);
    let mut change = Change { deleted, types_field: "type".into(), ..Change::default() };
    for (name, held) in set.iter() {
        change.values.push((name.to_owned(), held.read()?.to_owned()));
        change.kinds.push((name.to_owned(), held.kind));
    }
    Ok(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_opens_for_the_object_that_it_was_sent_to_alone() {
        let keys = Keys::parse("a=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        let value = PlainVariable { name: "TOKEN".into(), kind: VariableKind::Secret, text: "canary".into() };
        assert_eq!(format!("{value:?}"), "TOKEN (secret)");
        let rows = seal("letter a", &[value], &keys, &|| [7; 16]).unwrap();
        assert!(!serde_json::to_string(&rows).unwrap().contains("canary"));
        let change = open("letter a", rows.clone(), vec!["OLD".into()], &keys).unwrap();
        assert_eq!(change.values, [("TOKEN".to_owned(), "canary".to_owned())]);
        assert_eq!(change.kinds, [("TOKEN".to_owned(), VariableKind::Secret)]);
        assert_eq!(change.deleted, ["OLD"]);
        let error = open("letter b", rows.clone(), Vec::new(), &keys).unwrap_err();
        assert!(error.message.starts_with("The value of TOKEN cannot be read"), "{error}");
        let shown: Vec<EncryptedRow> =
            rows.into_iter().map(|row| EncryptedRow { kind: VariableKind::Text, ..row }).collect();
        assert!(open("letter a", shown, Vec::new(), &keys).is_err());
    }
}
