//! API keys: `BOBBIN_API_KEYS`, a list `key=scope,key2=scope2`.

use sha2::{Digest, Sha256};

use crate::access::Scope;
use bobbin_definitions::signing::same;

/// An error in the list. It names a key by its position and never contains it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// An entry without `=`.
    #[error("entry {place} has no scope: write `key=scope`")]
    NoScope {
        /// Counted from 1.
        place: usize,
    },
    /// An entry that begins with `=`.
    #[error("entry {place} has no key before its `=`")]
    NoKey {
        /// Counted from 1.
        place: usize,
    },
    /// A key with white space, control characters or other characters that an HTTP header cannot carry.
    #[error("the key of entry {place} may have only visible ASCII characters")]
    BadKey {
        /// Counted from 1.
        place: usize,
    },
    /// The text after the last `=` is not a scope.
    #[error("entry {place} has an unknown scope: it is `admin`, `owner:<id>` or `thread:<id>`")]
    BadScope {
        /// Counted from 1.
        place: usize,
    },
    /// A key that an earlier entry has as well.
    #[error("entry {place} has the same key as entry {first}")]
    Twice {
        /// Position, from 1.
        place: usize,
        /// Position of the earlier entry.
        first: usize,
    },
}

/// The keys of a deployment, as hashes.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<([u8; 32], Scope)>);

impl Keys {
    /// Reads the list. Entries are separated by commas; white space around them and empty ones are ignored. A
    /// key may contain `=`, because the scope follows the last one.
    pub fn parse(list: &str) -> Result<Keys, KeysError> {
        let mut keys: Vec<([u8; 32], Scope)> = Vec::new();
        let mut places = Vec::new();
        for (place, entry) in (1..).zip(list.split(',').map(str::trim)) {
            if entry.is_empty() {
                continue;
            }
            let (key, scope) = entry.rsplit_once('=').ok_or(KeysError::NoScope { place })?;
            let key = key.trim_end();
            match key {
                "" => return Err(KeysError::NoKey { place }),
                _ if !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                    return Err(KeysError::BadKey { place });
                }
                _ => {}
            }
            let scope = scope.trim_start().parse().map_err(|_| KeysError::BadScope { place })?;
            let hash = hash(key);
            if let Some(at) = keys.iter().position(|(other, _)| *other == hash) {
                return Err(KeysError::Twice { place, first: places.get(at).copied().unwrap_or_default() });
            }
            keys.push((hash, scope));
            places.push(place);
        }
        Ok(Keys(keys))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scope of a key. Compares the hashes of all keys, so that the time reveals nothing about any key.
    pub fn scope(&self, key: &str) -> Option<&Scope> {
        let given = hash(key);
        self.0.iter().fold(None, |found, (hash, scope)| if same(hash, &given) { Some(scope) } else { found })
    }
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_their_whole_text() {
        let keys = Keys::parse("one=admin, two==owner:alice,\n a=b=thread:t1 ,,").unwrap();
        let scope = |key| keys.scope(key).map(Scope::to_string);
        assert_eq!(scope("one").as_deref(), Some("admin"));
        assert_eq!(scope("two=").as_deref(), Some("owner:alice"));
        assert_eq!(scope("a=b").as_deref(), Some("thread:t1"));
        for wrong in ["", "on", "one ", "ONE", "two", "one=admin"] {
            assert_eq!(scope(wrong), None, "{wrong:?}");
        }
        assert!(Keys::parse("").unwrap().is_empty() && Keys::parse(" , ").unwrap().is_empty());
    }

    #[test]
    fn a_wrong_entry_is_named_and_its_key_is_not() {
        for (list, error, text) in [
            ("a=admin,secret", KeysError::NoScope { place: 2 }, "entry 2 has no scope: write `key=scope`"),
            ("=admin", KeysError::NoKey { place: 1 }, "entry 1 has no key before its `=`"),
            (
                "sec ret=admin",
                KeysError::BadKey { place: 1 },
                "the key of entry 1 may have only visible ASCII characters",
            ),
            (
                "schlüssel=admin",
                KeysError::BadKey { place: 1 },
                "the key of entry 1 may have only visible ASCII characters",
            ),
            (
                "a=admin,b=owner:",
                KeysError::BadScope { place: 2 },
                "entry 2 has an unknown scope: it is `admin`, `owner:<id>` or `thread:<id>`",
            ),
            (
                "secret=root",
                KeysError::BadScope { place: 1 },
                "entry 1 has an unknown scope: it is `admin`, `owner:<id>` or `thread:<id>`",
            ),
            (
                "secret=admin,,b=admin,secret=owner:a",
                KeysError::Twice { place: 4, first: 1 },
                "entry 4 has the same key as entry 1",
            ),
        ] {
            let actual = Keys::parse(list).unwrap_err();
            assert_eq!(actual, error, "{list}");
            assert_eq!(actual.to_string(), text);
        }
    }
}
