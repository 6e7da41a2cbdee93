//! The encryption keys: values are encrypted with AES-256-GCM under the first key of
//! `BOBBIN_ENCRYPTION_KEYS`. All keys in the list can decrypt, so that keys can be rotated.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use crate::error::{Code, Error, Result};

/// The deployment's secret that lists the keys: `id=base64,…`.
pub const KEYS_VAR: &str = "BOBBIN_ENCRYPTION_KEYS";

/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Bytes of a nonce, which precedes the ciphertext.
const NONCE_BYTES: usize = 12;
/// Maximum characters of a key's id.
const ID_CHARS: usize = 32;

/// The keys of a deployment. The first one encrypts.
#[derive(Default)]
pub struct Keys(Vec<Key>);

struct Key {
    id: String,
    cipher: Aes256Gcm,
}

/// An encrypted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedValue {
    /// Id of the key.
    pub key: String,
    /// The nonce and the ciphertext.
    pub bytes: Vec<u8>,
}

/// Shows only ids.
impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

impl Keys {
    /// Parses the list. Both base64 alphabets are accepted, with or without padding.
    ///
    /// # Errors
    /// `encryption_unavailable`: the list is empty or invalid. The message names the entry, but never shows
    /// it.
    pub fn parse(list: &str) -> Result<Keys> {
        let mut keys: Vec<Key> = Vec::new();
        for (at, entry) in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).enumerate() {
            let wrong = |what: String| {
                Error::new(Code::EncryptionUnavailable, format!("{KEYS_VAR}: entry {} {what}.", at + 1)).hint(
                    format!("It is `id=base64` of {KEY_BYTES} random bytes; a comma separates entries."),
                )
            };
            let (id, key) = entry.split_once('=').ok_or_else(|| wrong("has no id".into()))?;
            let id = id.trim();
            let fine = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if id.is_empty() || id.len() > ID_CHARS || !id.chars().all(fine) {
                return Err(wrong(format!(
                    "has no id of 1 to {ID_CHARS} letters, digits, `_`, `-` and `.` before its first `=`"
                )));
            }
            if keys.iter().any(|key| key.id == id) {
                return Err(wrong(format!("has the id “{id}” a second time")));
            }
            let bytes = decode(key.trim()).ok_or_else(|| wrong(format!("(“{id}”) is no base64")))?;
            let cipher = Aes256Gcm::new_from_slice(&bytes)
                .map_err(|_| wrong(format!("(“{id}”) has {} bytes, not {KEY_BYTES}", bytes.len())))?;
            keys.push(Key { id: id.to_owned(), cipher });
        }
        if keys.is_empty() {
            return Err(Error::new(
                Code::EncryptionUnavailable,
                "This deployment has no key to encrypt values with.",
            )
            .hint(format!("Set the secret {KEYS_VAR} to `id=base64` of {KEY_BYTES} random bytes.")));
        }
        Ok(Keys(keys))
    }

    /// Encrypts a value with the first key. `context` is authenticated: the value can be decrypted only with
    /// the same one. `random` must be new each time.
    ///
    /// # Errors
    /// `encryption_unavailable` without a key.
    pub fn seal(&self, random: [u8; 16], context: &str, value: &str) -> Result<EncryptedValue> {
        let none = || Error::new(Code::EncryptionUnavailable, "There is no key to encrypt values with.");
        let key = self.0.first().ok_or_else(none)?;
        let nonce: Vec<u8> = random.into_iter().take(NONCE_BYTES).collect();
        let payload = Payload { msg: value.as_bytes(), aad: context.as_bytes() };
        let encrypted = key
            .cipher
            .encrypt(Nonce::from_slice(&nonce), payload)
            .map_err(|_| Error::internal("a value could not be encrypted"))?;
        Ok(EncryptedValue { key: key.id.clone(), bytes: [nonce, encrypted].concat() })
    }

    /// Decrypts a value.
    ///
    /// # Errors
    /// `encryption_unavailable` names a key that is no longer listed, or says that the value does not match;
    /// it never shows the value.
    pub fn open(&self, sealed: &EncryptedValue, context: &str) -> Result<String> {
        let id = &sealed.key;
        let key = self.0.iter().find(|key| key.id == *id).ok_or_else(|| {
            Error::new(
                Code::EncryptionUnavailable,
                format!("it was encrypted with the key “{id}”, which {KEYS_VAR} does not list"),
            )
        })?;
        let damaged = || {
            let what = format!("the key “{id}” does not open it: another key has that id, or it is damaged");
            Error::new(Code::EncryptionUnavailable, what)
        };
        let (nonce, encrypted) = sealed.bytes.split_at_checked(NONCE_BYTES).ok_or_else(damaged)?;
        let payload = Payload { msg: encrypted, aad: context.as_bytes() };
        let bytes = key.cipher.decrypt(Nonce::from_slice(nonce), payload).map_err(|_| damaged())?;
        String::from_utf8(bytes).map_err(|_| damaged())
    }

    /// Id of the encrypting key.
    pub fn first(&self) -> Option<&str> {
        self.0.first().map(|key| key.id.as_str())
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let alphabets = [base64::alphabet::STANDARD, base64::alphabet::URL_SAFE];
    alphabets.iter().find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const B: &str = "_____________________________________________________w";

    fn b() -> String {
        // 32 bytes, in the other alphabet and without padding.
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode([0xff_u8; 32])
    }

    #[test]
    fn what_one_key_has_encrypted_opens_while_it_is_listed() {
        let old = Keys::parse(&format!("a={A}")).unwrap();
        let sealed = old.seal([1; 16], "thread t\0NAME", "a value").unwrap();
        assert_eq!(sealed.key, "a");
        assert!(!sealed.bytes.windows(5).any(|window| window == b"value"));
        let both = Keys::parse(&format!(" b={} , a={A},", b())).unwrap();
        assert_eq!(both.first(), Some("b"));
        assert_eq!(both.open(&sealed, "thread t\0NAME").unwrap(), "a value");
        assert_eq!(both.seal([2; 16], "c", "").unwrap().key, "b");
        let new = Keys::parse(&format!("b={}", b())).unwrap();
        let error = new.open(&sealed, "thread t\0NAME").unwrap_err();
        assert_eq!(
            error.message,
            "it was encrypted with the key “a”, which BOBBIN_ENCRYPTION_KEYS does not list"
        );
    }

    #[test]
    fn a_value_opens_only_where_it_was_stored_and_as_it_was() {
        let keys = Keys::parse(&format!("a={A}")).unwrap();
        let sealed = keys.seal([1; 16], "here", "a value").unwrap();
        assert!(keys.open(&sealed, "there").is_err());
        for at in 0..sealed.bytes.len() {
            let mut other = sealed.clone();
            other.bytes[at] ^= 1;
            assert!(keys.open(&other, "here").is_err(), "byte {at}");
            other.bytes.truncate(at);
            assert!(keys.open(&other, "here").is_err(), "cut at {at}");
        }
        let same_id = Keys::parse(&format!("a={}", b())).unwrap();
        assert!(same_id.open(&sealed, "here").unwrap_err().message.contains("another key has that id"));
    }

    #[test]
    fn a_list_that_makes_no_sense_is_named_by_its_entry_and_never_shown() {
        for (list, says) in [
            (String::new(), "no key"),
            (" , ".to_owned(), "no key"),
            ("hush".to_owned(), "entry 1 has no id"),
            (A.to_owned(), "entry 1 has no id of 1 to 32"),
            (format!("a={A},hush"), "entry 2 has no id"),
            (format!("={A}"), "entry 1 has no id of"),
            (format!("a b={A}"), "entry 1 has no id of"),
            (format!("a={A},a={A}"), "entry 2 has the id “a” a second time"),
            ("a=hush!".to_owned(), "entry 1 (“a”) is no base64"),
            ("a=aHVzaA==".to_owned(), "entry 1 (“a”) has 4 bytes, not 32"),
            (format!("a={B}"), "not 32"),
        ] {
            let error = Keys::parse(&list).unwrap_err();
            assert_eq!(error.code, Code::EncryptionUnavailable);
            assert!(error.message.contains(says), "{list}: {error}");
            assert!(error.hint.is_some());
            assert!(
                !format!("{error:?}").contains("hush") && !format!("{error:?}").contains("AAEC"),
                "{error:?}"
            );
        }
        assert!(!format!("{:?}", Keys::parse(&format!("a={A}")).unwrap()).contains("AAEC"));
    }
}
