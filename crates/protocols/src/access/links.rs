//! Signed links to files, because an `<img>` sends no header. A link allows reading one file for a limited
//! time.

use crate::access::{Caller, Scope, Via};
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::limits::{LINK_S, SECOND_US};
use bobbin_definitions::signing::{hmac_sha256, same, unhex};

/// The query parameter with the end of a link, seconds since 1970.
pub const EXPIRES: &str = "expires";
/// The query parameter with the thread's generation, if there may be several.
pub const LIFE: &str = "life";
/// The query parameter with the signature.
pub const SIGNATURE: &str = "signature";

/// The maker of links.
#[derive(Clone)]
pub struct Links {
    /// Scheme, host and port.
    origin: String,
    /// `None` on an open development server.
    secret: Option<Vec<u8>>,
    /// End of the links, seconds since 1970.
    expires_s: i64,
    /// Generation of their thread; `None` if there is only one.
    life: Option<i64>,
}

impl std::fmt::Debug for Links {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Links").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Links {
    /// Links to files on a server, valid for 45 to 60 minutes from `now_us`. They end at quarters of an hour, so
    /// that an address stays the same for a while and a browser can cache the file.
    pub fn new(origin: &str, secret: &[u8], now_us: i64) -> Links {
        let quarter = LINK_S / 4;
        let expires_s = (now_us / SECOND_US / quarter + 4) * quarter;
        Links { origin: origin.to_owned(), secret: Some(secret.to_vec()), expires_s, life: None }
    }

    /// Unsigned links, for a developer's own machine.
    pub fn unsigned(origin: &str) -> Links {
        Links { origin: origin.to_owned(), secret: None, expires_s: 0, life: None }
    }

    /// Sets the generation of the thread.
    pub fn of_life(self, life: Option<i64>) -> Links {
        Links { life, ..self }
    }

    /// The address of a file of a thread.
    pub fn to(&self, thread: &str, path: &str) -> String {
        let path = path.trim_start_matches('/');
        let shown: Vec<String> = path.split('/').map(escaped).collect();
        let (origin, expires) = (&self.origin, self.expires_s);
        let Some(secret) = &self.secret else {
            return format!("{origin}/api/threads/{thread}/fs/{}", shown.join("/"));
        };
        let signed = signature(secret, thread, self.life, path, expires);
        let signed: String = signed.iter().map(|byte| format!("{byte:02x}")).collect();
        let life = self.life.map(|life| format!("{LIFE}={life}&")).unwrap_or_default();
        format!(
            "{origin}/api/threads/{thread}/fs/{}?{life}{EXPIRES}={expires}&{SIGNATURE}={signed}",
            shown.join("/")
        )
    }
}

/// The parameters of a link.
#[derive(Clone, Copy, Debug)]
pub struct FileLink<'a> {
    /// [`LIFE`].
    pub life: Option<&'a str>,
    /// [`EXPIRES`].
    pub expires: &'a str,
    /// [`SIGNATURE`].
    pub signature: &'a str,
}

/// Authenticates a link to a file of a thread, at `now_us`. `path` is decoded.
///
/// # Errors
/// `unauthenticated` if the link has expired or its signature is invalid.
pub fn bearer(secret: &[u8], thread: &str, path: &str, link: FileLink<'_>, now_us: i64) -> Result<Caller> {
    let FileLink { life, expires, signature: given } = link;
    let wrong = |text: &str| {
        Error::new(Code::Unauthenticated, text)
            .hint("Links to files end after an hour; read the chat again for a new one.")
    };
    let expires_s: i64 = expires.parse().map_err(|_| wrong("The link is not valid."))?;
    let life = match life {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| wrong("The link is not valid."))?),
    };
    let right = signature(secret, thread, life, path.trim_start_matches('/'), expires_s);
    if !unhex(given).is_some_and(|given| same(&given, &right)) {
        return Err(wrong("The link is not valid."));
    }
    if expires_s.saturating_mul(SECOND_US) <= now_us {
        return Err(wrong("The link has ended."));
    }
    let via = Via::Token { expires_us: expires_s.saturating_mul(SECOND_US), life };
    Ok(Caller { scope: Scope::Thread(thread.to_owned()), via })
}

fn signature(secret: &[u8], thread: &str, life: Option<i64>, path: &str, expires_s: i64) -> [u8; 32] {
    let life = life.map(|life| life.to_string()).unwrap_or_default();
    // The domain of this signature is separate: tokens contain no NUL.
    let head = format!("file\0{thread}\0{life}\0{expires_s}\0");
    hmac_sha256(secret, &[head.as_bytes(), path.as_bytes()])
}

fn escaped(segment: &str) -> String {
    let mut shown = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                shown.push(char::from(byte))
            }
            _ => shown.push_str(&format!("%{byte:02X}")),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_for_its_file_for_an_hour() {
        let now = 1_795_300_000 * SECOND_US;
        let secret = b"0123456789abcdef";
        let link = Links::new("https://a.example", secret, now).to("t1", "/attachments/a ü.png");
        let (address, query) = link.split_once('?').unwrap();
        assert_eq!(address, "https://a.example/api/threads/t1/fs/attachments/a%20%C3%BC.png");
        let field = |name: &str| {
            let pair = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
            pair.unwrap().to_owned()
        };
        let (expires, signed) = (field(EXPIRES), field(SIGNATURE));
        let who = |secret: &[u8], thread: &str, path: &str, expires: &str, later_s: i64| {
            let link = FileLink { life: None, expires, signature: &signed };
            bearer(secret, thread, path, link, now + later_s * SECOND_US).ok().map(|caller| caller.scope)
        };
        let path = "attachments/a ü.png";
        assert_eq!(who(secret, "t1", path, &expires, 0), Some(Scope::Thread("t1".into())));
        assert_eq!(who(secret, "t1", path, &expires, 2_600), Some(Scope::Thread("t1".into())));
        assert_eq!(who(secret, "t1", path, &expires, 3_700), None, "it has ended");
        assert_eq!(who(secret, "t2", path, &expires, 0), None, "of another thread");
        assert_eq!(who(secret, "t1", "attachments/b.png", &expires, 0), None, "of another file");
        assert_eq!(who(b"another secret!!", "t1", path, &expires, 0), None);
        let later = (expires.parse::<i64>().unwrap() + 1).to_string();
        assert_eq!(who(secret, "t1", path, &later, 0), None, "the time is signed, too");
        assert_eq!(who(secret, "t1", path, "never", 0), None);
    }

    #[test]
    fn a_link_is_good_for_one_of_the_threads_that_have_an_id() {
        let now = 1_795_300_000 * SECOND_US;
        let secret = b"0123456789abcdef";
        let link = Links::new("https://a.example", secret, now).of_life(Some(2)).to("t1", "a.png");
        let (_, query) = link.split_once("?life=2&expires=").unwrap();
        let (expires, signature) = query.split_once("&signature=").unwrap();
        let via = |life| bearer(secret, "t1", "a.png", FileLink { life, expires, signature }, now).ok();
        assert!(matches!(via(Some("2")).unwrap().via, Via::Token { life: Some(2), .. }));
        for other in [None, Some("1"), Some("3"), Some("x")] {
            assert!(via(other).is_none(), "{other:?}");
        }
    }
}
