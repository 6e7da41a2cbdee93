//! Values after names without `:` or `=`: arguments of calls, SQL statements, attributes of elements, lines
//! of `.netrc`.

use crate::redact::step_count;
use crate::scrub::name;
use crate::scrub::value::{is_none, quote};
use crate::scrub::{before, byte, continues, part};

/// Maximum bytes before a name, and of an unquoted value, that are checked.
const LOOK_BYTES: usize = 128;
/// Maximum bytes of a quoted value.
const QUOTED_BYTES: usize = 1024;
/// Minimum characters of a value.
const LEAST_CHARS: usize = 6;

/// Suffixes of functions that take a name and its value.
const KEEPERS: [&[u8]; 10] = [
    b"define",
    b"env",
    b"set",
    b"put",
    b"variable",
    b"add",
    b"property",
    b"default",
    b"header",
    b"environ.get",
];
/// String types between a name and its value.
const TYPES: [&[u8]; 4] = [b"string = ", b"String = ", b"str = ", b"&str = "];

/// The range of the value for the name at `start..end`.
pub(super) fn find(
    bytes: &[u8],
    (start, end): (usize, usize),
    name: &[u8],
    extra: &[Vec<u8>],
) -> Option<(usize, usize)> {
    // For most names the next byte decides.
    let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
    let back = || part(bytes, start.saturating_sub(LOOK_BYTES), start);
    match byte(bytes, end) {
        b'=' if is(b"value") => attribute(bytes, end, back(), extra),
        b':' if is(b"pass") => {
            let asked = [&b"-passin "[..], b"-passout ", b"-pass "].iter().any(|flag| back().ends_with(flag));
            if asked { bare(bytes, end + 1) } else { None }
        }
        b' ' | b'\t' if is(b"by") => {
            let back = back();
            let by = back.len() >= 11 && back.get(back.len() - 11..)?.eq_ignore_ascii_case(b"identified ");
            if by { quoted(bytes, blanks(bytes, end)) } else { None }
        }
        b' ' | b'\t' if is(b"password") || is(b"passwd") || is(b"passphrase") => {
            let at = blanks(bytes, end);
            quoted(bytes, at)
                .or_else(|| if follows_login(back()) { bare(bytes, at) } else { None })
                .or_else(|| spaced(bytes, (start, end), name, extra))
        }
        b' ' => spaced(bytes, (start, end), name, extra),
        b'(' if quote(bytes, end + 1).is_some() => call(bytes, (start, end), name, extra),
        b'"' | b'\'' | b'`' | b'\\' => argument(bytes, (start, end), name, extra),
        _ => None,
    }
}

/// `var apiToken string = "…"`, and `-ApiToken '…'` of a shell command.
fn spaced(
    bytes: &[u8],
    (start, end): (usize, usize),
    name: &[u8],
    extra: &[Vec<u8>],
) -> Option<(usize, usize)> {
    let at = end + 1;
    let from = match byte(bytes, at) {
        b's' | b'S' | b'&' => at + TYPES.iter().find(|kind| continues(bytes, at, kind))?.len(),
        b'"' | b'\'' if before(bytes, start) == b'-' && before(bytes, start.saturating_sub(1)) == b' ' => at,
        _ => return None,
    };
    name::meaning(name, extra).and_then(|_| quoted(bytes, from))
}

/// `name="db.password" value="…"`.
fn attribute(bytes: &[u8], end: usize, back: &[u8], extra: &[Vec<u8>]) -> Option<(usize, usize)> {
    if byte(bytes, end) != b'=' {
        return None;
    }
    step_count::add(back.len());
    let back = back.trim_ascii_end();
    let (mark, back) = back.split_last().filter(|(mark, _)| matches!(mark, b'"' | b'\''))?;
    let opens = back.iter().rposition(|byte| byte == mark)?;
    let label = back.get(opens + 1..)?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    let last = label.rsplit(|byte| !is_name(byte)).next()?;
    if before(back, opens) != b'=' || name::meaning(last, extra).is_none() {
        return None;
    }
    let value = quoted_any(bytes, end + 1)?;
    (!is_none(part(bytes, value.0, value.1))).then_some(value)
}

/// `setPassword("…")`, `.password("…")`.
fn call(
    bytes: &[u8],
    (start, end): (usize, usize),
    name: &[u8],
    extra: &[Vec<u8>],
) -> Option<(usize, usize)> {
    let begins = |word: &[u8]| name.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word));
    let gives = before(bytes, start) == b'.' || begins(b"set") || begins(b"with");
    if gives && name::meaning(name, extra).is_some() { quoted(bytes, end + 1) } else { None }
}

/// `define('DB_PASSWORD', '…')`.
fn argument(
    bytes: &[u8],
    (start, end): (usize, usize),
    name: &[u8],
    extra: &[Vec<u8>],
) -> Option<(usize, usize)> {
    let mark = quote(bytes, end)?;
    let comma = end + mark.length();
    let opens = start.saturating_sub(mark.length());
    let first = byte(bytes, comma) == b',' && before(bytes, opens) == b'(' && mark.opens(bytes, start);
    if !first || name::meaning(name, extra).is_none() {
        return None;
    }
    let function = part(bytes, opens.saturating_sub(33), opens.saturating_sub(1)).to_ascii_lowercase();
    step_count::add(function.len());
    let keeps = KEEPERS.iter().any(|keeper| function.ends_with(keeper));
    if keeps { quoted(bytes, blanks(bytes, comma + 1)) } else { None }
}

/// Whether `login name` precedes the name, as in `.netrc`.
fn follows_login(back: &[u8]) -> bool {
    step_count::add(back.len());
    let mut words = back.split(u8::is_ascii_whitespace).rev().filter(|word| !word.is_empty());
    words.next().is_some() && words.next() == Some(b"login")
}

/// A quoted text that does not look like prose.
fn quoted(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (from, end) = quoted_any(bytes, at)?;
    let text = part(bytes, from, end);
    let odd = text.iter().any(|byte| byte.is_ascii_digit() || (byte.is_ascii_punctuation() && *byte != b'_'));
    let prose = text.iter().any(u8::is_ascii_whitespace);
    (text.len() >= LEAST_CHARS && odd && !prose && !is_none(text)).then_some((from, end))
}

fn quoted_any(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mark = quote(bytes, at)?;
    let from = at + mark.length();
    let close = byte(bytes, from - 1);
    let text = part(bytes, from, from + QUOTED_BYTES);
    let length = text.iter().position(|byte| *byte == close || *byte == b'\n').unwrap_or(text.len());
    step_count::add(length);
    let closed = text.get(length) == Some(&close);
    // Without the backslash before the closing mark.
    let end = from + length - usize::from(mark.length() == 2 && length > 0);
    closed.then_some((from, end))
}

/// An unquoted text, up to the next blank.
fn bare(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let text = part(bytes, at, at + LOOK_BYTES);
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`".contains(byte);
    let length = text.iter().position(ends).unwrap_or(text.len());
    step_count::add(length);
    let text = text.get(..length)?;
    (text.len() >= LEAST_CHARS && !is_none(text)).then_some((at, at + length))
}

fn blanks(bytes: &[u8], at: usize) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    at + part(bytes, at, at + 16).iter().take_while(blank).count()
}

/// A command with a password flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Curl,
    Mysql,
    Sshpass,
    /// `docker login` and others.
    Login,
    Redis,
    Ldap,
}

impl Command {
    /// The command with a name.
    pub(super) fn of(name: &[u8]) -> Option<Command> {
        if !(4..=12).contains(&name.len()) {
            return None;
        }
        let is = |names: &[&[u8]]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        match name.first().map(u8::to_ascii_lowercase)? {
            b'c' if is(&[b"curl"]) => Some(Command::Curl),
            b'm' if is(&[b"mysql", b"mysqldump", b"mysqladmin", b"mariadb", b"mariadb-dump"]) => {
                Some(Command::Mysql)
            }
            b's' if is(&[b"sshpass"]) => Some(Command::Sshpass),
            b'l' if is(&[b"login"]) => Some(Command::Login),
            b'l' if is(&[b"ldapsearch", b"ldapadd", b"ldapmodify", b"ldapdelete", b"ldapwhoami"]) => {
                Some(Command::Ldap)
            }
            b'r' if is(&[b"redis-cli"]) => Some(Command::Redis),
            _ => None,
        }
    }

    /// The password after a flag at a position.
    pub(super) fn password(self, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
        let flag: &[u8] = match self {
            Command::Curl => return crate::scrub::known::password_of_flag(bytes, at),
            Command::Mysql | Command::Sshpass | Command::Login => b"-p",
            Command::Redis => b"-a",
            Command::Ldap => b"-w",
        };
        if !before(bytes, at).is_ascii_whitespace() || !continues(bytes, at, flag) {
            return None;
        }
        let behind = at + flag.len();
        let from = blanks(bytes, behind);
        let spaced = from > behind;
        let fits = match self {
            Command::Mysql => !spaced,
            Command::Sshpass => true,
            _ => spaced,
        };
        let quote = quote(bytes, from).map_or(0, |mark| mark.length());
        let value = bare(bytes, from + quote).filter(|_| fits)?;
        let text = part(bytes, value.0, value.1);
        // A port, a flag, or a placeholder.
        let none = text.iter().all(u8::is_ascii_digit) || text.starts_with(b"-") || text.starts_with(b"$");
        (!none).then_some(value)
    }
}
