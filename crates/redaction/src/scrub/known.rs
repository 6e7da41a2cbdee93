//! Secrets with their own format: blocks of keys, passwords in URLs and commands, tokens with known prefixes.

use crate::redact::step_count;
use crate::scrub::words;
use crate::scrub::{Kind, Span, before, byte, continues, part};

/// Maximum bytes of a URL that are searched for its user.
const AUTHORITY_BYTES: usize = 256;
/// Maximum bytes of a flag and the blanks after it.
const FLAG_BYTES: usize = 32;
/// Minimum characters of a user that is a key.
const KEY_CHARS: usize = 10;
/// Maximum bytes of the first line of a block.
const HEAD_BYTES: usize = 80;

/// Blocks between `-----BEGIN …-----` and `-----END …-----`.
#[derive(Default)]
pub(super) struct Pem {
    /// No block ends after this position.
    none_from: Option<usize>,
}

impl Pem {
    /// The block at a position: a private key, or something public.
    pub(super) fn block(&mut self, bytes: &[u8], start: usize) -> Option<Span> {
        let head = part(bytes, start + 11, start + 11 + HEAD_BYTES);
        let label = head.windows(5).position(|five| five == b"-----")?;
        let label = head.get(..label)?;
        let private = label.windows(11).any(|eleven| eleven == b"PRIVATE KEY");
        let from = start + 11 + label.len() + 5;
        let end = if self.none_from.is_some_and(|none| none <= from) {
            None
        } else {
            find(bytes, from, b"-----END ")
        };
        let Some(end) = end else {
            self.none_from = Some(self.none_from.map_or(from, |none| none.min(from)));
            // The end was cut off.
            return private.then_some(Span { start, end: bytes.len(), kind: Kind::Keyword });
        };
        let tail = part(bytes, end + 9, end + 9 + HEAD_BYTES);
        let closed = tail.windows(5).position(|five| five == b"-----").map_or(0, |at| at + 5);
        let kind = if private { Kind::Keyword } else { Kind::Public };
        Some(Span { start, end: end + 9 + closed, kind })
    }
}

fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let at = rest.windows(wanted.len()).position(|window| window == wanted);
    step_count::add(at.unwrap_or(rest.len()));
    at.map(|at| from + at)
}

/// The password in `scheme://user:password@host`. `start` is where the user begins.
pub(super) fn password_of_url(bytes: &[u8], start: usize) -> Option<(usize, usize)> {
    let authority = part(bytes, start, start + AUTHORITY_BYTES);
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?\"'`<>|\\".contains(byte);
    let length = authority.iter().position(ends).unwrap_or(authority.len());
    step_count::add(length);
    let mut authority = authority.get(..length)?;
    // A password may contain a `#`, but a port cannot.
    if let Some(hash) = authority.iter().position(|byte| *byte == b'#') {
        let before = authority.get(..hash)?;
        let port =
            before.rsplit(|byte| *byte == b':').next().is_none_or(|port| port.iter().all(u8::is_ascii_digit));
        if port || !before.contains(&b':') {
            authority = before;
        }
    }
    let host = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority.get(..host)?.iter().position(|byte| *byte == b':');
    let from = colon.map_or(0, |colon| colon + 1);
    let secret = authority.get(from..host)?;
    // A user without a password counts only if it does not look like a name.
    let long = colon.is_some() || (secret.len() >= 16 && secret.iter().any(u8::is_ascii_digit));
    (long && !is_place(secret)).then_some((start + from, start + host))
}

/// The password in `-u name:password` and `--user name:password`.
pub(super) fn password_of_flag(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if !before(bytes, at).is_ascii_whitespace() {
        return None;
    }
    let flags = [&b"-u "[..], b"--user ", b"--user=", b"-U ", b"--proxy-user "];
    let flag = flags.iter().find(|flag| continues(bytes, at, flag))?;
    let mut from = at + flag.len();
    while byte(bytes, from) == b' ' && from < at + FLAG_BYTES {
        from += 1;
    }
    let quote = byte(bytes, from);
    let quoted = matches!(quote, b'"' | b'\'');
    from += usize::from(quoted);
    let rest = part(bytes, from, from + AUTHORITY_BYTES);
    let ends = |byte: &u8| if quoted { *byte == quote || *byte == b'\n' } else { byte.is_ascii_whitespace() };
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    step_count::add(length);
    let text = rest.get(..length)?;
    let colon = text.iter().position(|byte| *byte == b':')?;
    let (user, secret) = (text.get(..colon)?, text.get(colon + 1..)?);
    // A key as the user, without a password.
    if secret.is_empty() && user.len() >= KEY_CHARS && user.iter().any(u8::is_ascii_digit) && !is_place(user)
    {
        return Some((from, from + colon));
    }
    (!is_place(secret)).then_some((from + colon + 1, from + length))
}

/// Whether a text is a placeholder for a password.
fn is_place(text: &[u8]) -> bool {
    text.is_empty()
        || text.iter().all(|byte| b"*xX.".contains(byte))
        || text.starts_with(b"<")
        || text.starts_with(b"$")
        || text.starts_with(b"{")
        || text.starts_with(b"[")
}

/// The format of a token after its prefix.
#[derive(Clone, Copy)]
enum SuffixRule {
    /// At least this many letters, digits, `_` and `-`, with a digit or without words.
    Token(usize),
    /// The same, also with `.`.
    Dotted(usize),
    /// Exactly this many capital letters and digits.
    Upper(usize),
    /// At least this many hexadecimal digits.
    Hex(usize),
    /// Exactly this many letters and digits.
    Exact(usize),
    /// This many letters and digits, a `.`, and this many hexadecimal digits.
    Split(usize, usize),
}

/// Maximum bytes of a token that are checked.
const TOKEN_BYTES: usize = 256;

/// Minimum number of different letters in a token without digits.
const KINDS: u32 = 8;

/// Prefixes of tokens, grouped by their first letter; a longer prefix comes before a shorter one that it
/// starts with.
const TOKENS: [(&[u8], SuffixRule); 105] = [
    (b"1//0", SuffixRule::Token(24)),
    (b"AKIA", SuffixRule::Upper(16)),
    (b"ASIA", SuffixRule::Upper(16)),
    (b"ABIA", SuffixRule::Upper(16)),
    (b"ACCA", SuffixRule::Upper(16)),
    (b"AIza", SuffixRule::Token(30)),
    (b"ATATT3x", SuffixRule::Token(24)),
    (b"AGE-SECRET-KEY-1", SuffixRule::Token(24)),
    (b"CFPAT-", SuffixRule::Token(24)),
    (b"CLOJARS_", SuffixRule::Hex(40)),
    (b"EZAK", SuffixRule::Token(32)),
    (b"FLWSECK_TEST-", SuffixRule::Hex(12)),
    (b"FLWSECK-", SuffixRule::Hex(12)),
    (b"GOCSPX-", SuffixRule::Token(16)),
    (b"LTAI", SuffixRule::Token(12)),
    (b"NRAK-", SuffixRule::Token(24)),
    (b"NRII-", SuffixRule::Token(24)),
    (b"PMAK-", SuffixRule::Token(30)),
    (b"SG.", SuffixRule::Dotted(30)),
    (b"SK", SuffixRule::Hex(32)),
    (b"dop_v1_", SuffixRule::Hex(32)),
    (b"doo_v1_", SuffixRule::Hex(32)),
    (b"dckr_pat_", SuffixRule::Token(16)),
    (b"dp.pt.", SuffixRule::Token(24)),
    (b"dapi", SuffixRule::Hex(32)),
    (b"dor_v1_", SuffixRule::Hex(32)),
    (b"eyJ", SuffixRule::Dotted(24)),
    (b"figd_", SuffixRule::Token(24)),
    (b"fo1_", SuffixRule::Token(30)),
    (b"fm2_", SuffixRule::Token(30)),
    (b"ghp_", SuffixRule::Token(20)),
    (b"gho_", SuffixRule::Token(20)),
    (b"ghu_", SuffixRule::Token(20)),
    (b"ghs_", SuffixRule::Token(20)),
    (b"ghr_", SuffixRule::Token(20)),
    (b"github_pat_", SuffixRule::Token(20)),
    (b"glpat-", SuffixRule::Token(16)),
    (b"glptt-", SuffixRule::Token(16)),
    (b"gldt-", SuffixRule::Token(16)),
    (b"glrt-", SuffixRule::Token(16)),
    (b"glcbt-", SuffixRule::Token(16)),
    (b"glsa_", SuffixRule::Token(24)),
    (b"glc_", SuffixRule::Token(24)),
    (b"gsk_", SuffixRule::Token(24)),
    (b"hf_", SuffixRule::Token(24)),
    (b"hvs.", SuffixRule::Token(20)),
    (b"key-", SuffixRule::Hex(32)),
    (b"lin_api_", SuffixRule::Token(20)),
    (b"lin_oauth_", SuffixRule::Token(20)),
    (b"npm_", SuffixRule::Token(24)),
    (b"ntn_", SuffixRule::Token(30)),
    (b"nvapi-", SuffixRule::Token(40)),
    (b"ops_eyJ", SuffixRule::Token(24)),
    (b"pypi-", SuffixRule::Token(24)),
    (b"pscale_tkn_", SuffixRule::Token(20)),
    (b"pscale_pw_", SuffixRule::Token(20)),
    (b"pscale_oauth_", SuffixRule::Token(20)),
    (b"pul-", SuffixRule::Hex(40)),
    (b"phx_", SuffixRule::Token(30)),
    (b"pplx-", SuffixRule::Token(24)),
    (b"pat", SuffixRule::Split(14, 48)),
    (b"rk_live_", SuffixRule::Token(10)),
    (b"rk_test_", SuffixRule::Token(10)),
    (b"rubygems_", SuffixRule::Hex(32)),
    (b"r8_", SuffixRule::Token(24)),
    (b"rnd_", SuffixRule::Token(24)),
    (b"rk_prod_", SuffixRule::Token(10)),
    (b"sk_live_", SuffixRule::Token(10)),
    (b"sk_test_", SuffixRule::Token(10)),
    (b"sk-proj-", SuffixRule::Token(16)),
    (b"sk-ant-", SuffixRule::Token(16)),
    (b"sk-or-", SuffixRule::Token(16)),
    (b"sk-", SuffixRule::Token(24)),
    (b"shpat_", SuffixRule::Hex(24)),
    (b"shpss_", SuffixRule::Hex(24)),
    (b"shpca_", SuffixRule::Hex(24)),
    (b"sq0atp-", SuffixRule::Token(16)),
    (b"sq0csp-", SuffixRule::Token(16)),
    (b"sntrys_", SuffixRule::Token(24)),
    (b"sntryu_", SuffixRule::Hex(32)),
    (b"sbp_", SuffixRule::Hex(32)),
    (b"shippo_live_", SuffixRule::Hex(32)),
    (b"sk_prod_", SuffixRule::Token(10)),
    (b"s-s4t2ud-", SuffixRule::Hex(32)),
    (b"s-s4t2af-", SuffixRule::Hex(32)),
    (b"sm_pat_", SuffixRule::Token(16)),
    (b"sm_aat_", SuffixRule::Token(16)),
    (b"sm_sat_", SuffixRule::Token(16)),
    (b"shippo_test_", SuffixRule::Hex(32)),
    (b"shppa_", SuffixRule::Hex(24)),
    (b"sgp_", SuffixRule::Token(30)),
    (b"s.", SuffixRule::Exact(24)),
    (b"tfp_", SuffixRule::Token(24)),
    (b"vercel_blob_rw_", SuffixRule::Token(20)),
    (b"whsec_", SuffixRule::Token(16)),
    (b"xoxb-", SuffixRule::Token(10)),
    (b"xoxp-", SuffixRule::Token(10)),
    (b"xoxa-", SuffixRule::Token(10)),
    (b"xoxr-", SuffixRule::Token(10)),
    (b"xoxs-", SuffixRule::Token(10)),
    (b"xoxe-", SuffixRule::Token(10)),
    (b"xapp-", SuffixRule::Token(10)),
    (b"xkeysib-", SuffixRule::Hex(40)),
    (b"xai-", SuffixRule::Token(40)),
    (b"ya29.", SuffixRule::Token(16)),
];

/// The tokens with a common first letter.
#[derive(Clone, Copy)]
struct PrefixRange {
    /// Their range in the list.
    first: usize,
    end: usize,
    /// Their second letters, as bits.
    seconds: u128,
}

const BEGINS: [PrefixRange; 128] = begins();

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const fn begins() -> [PrefixRange; 128] {
    let mut begins = [PrefixRange { first: 0, end: 0, seconds: 0 }; 128];
    let mut at = 0;
    while at < TOKENS.len() {
        let start = TOKENS[at].0;
        let of = &mut begins[start[0] as usize];
        assert!(of.end == 0 || of.end == at, "tokens that begin with the same letter stand together");
        if of.end == 0 {
            of.first = at;
        }
        of.end = at + 1;
        of.seconds |= 1 << start[1];
        at += 1;
    }
    begins
}

/// The end of a token with a known prefix at a position.
pub(super) fn token(bytes: &[u8], at: usize) -> Option<usize> {
    let PrefixRange { first, end, seconds } = *BEGINS.get(usize::from(byte(bytes, at)))?;
    let second = byte(bytes, at + 1);
    if seconds.checked_shr(u32::from(second)).unwrap_or(0) & 1 == 0 {
        return None;
    }
    TOKENS.get(first..end)?.iter().find_map(|(start, rest)| {
        let from = at + start.len();
        if start.get(1) != Some(&second) || !continues(bytes, at, start) {
            return None;
        }
        let wide = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        let count = |is: &dyn Fn(&u8) -> bool, most: usize| {
            let length = bytes.iter().skip(from).take(most).take_while(|byte| is(byte)).count();
            step_count::add(length);
            length
        };
        let has = |length: usize, is: &dyn Fn(&u8) -> bool| part(bytes, from, from + length).iter().any(is);
        let (of, fits): (&dyn Fn(&u8) -> bool, bool) = match *rest {
            SuffixRule::Token(least) => {
                let length = count(&wide, TOKEN_BYTES);
                let odd = |text| !words::are_words(text) && varies(text);
                let digits = has(length, &u8::is_ascii_digit);
                (&wide, length >= least && (digits || odd(part(bytes, from, from + length))))
            }
            SuffixRule::Dotted(least) => {
                let dotted: &dyn Fn(&u8) -> bool =
                    &|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
                let length = count(dotted, TOKEN_BYTES);
                (
                    dotted,
                    length >= least && has(length, &|byte| *byte == b'.') && has(length, &u8::is_ascii_digit),
                )
            }
            SuffixRule::Upper(exact) => {
                let upper: &dyn Fn(&u8) -> bool = &|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit();
                let length = count(upper, exact + 1);
                (upper, length == exact && !wide(&byte(bytes, from + length)))
            }
            SuffixRule::Hex(least) => (&u8::is_ascii_hexdigit, count(&u8::is_ascii_hexdigit, least) == least),
            SuffixRule::Exact(exact) => {
                let length = count(&u8::is_ascii_alphanumeric, exact + 1);
                let odd = has(length, &u8::is_ascii_digit) && has(length, &u8::is_ascii_uppercase);
                (&u8::is_ascii_alphanumeric, length == exact && odd && !wide(&byte(bytes, from + length)))
            }
            SuffixRule::Split(first, second) => {
                let length = count(&u8::is_ascii_alphanumeric, first + 1);
                let hex = part(bytes, from + length + 1, from + length + 1 + second);
                let fits = length == first && byte(bytes, from + length) == b'.' && hex.len() == second;
                (
                    &|byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.',
                    fits && hex.iter().all(u8::is_ascii_hexdigit),
                )
            }
        };
        fits.then(|| from + count(of, usize::MAX))
    })
}

/// Whether a text has many different letters, and is not a mask.
fn varies(text: &[u8]) -> bool {
    let letter = |kinds: u32, byte: &u8| match byte.to_ascii_lowercase() {
        small @ b'a'..=b'z' => kinds | 1 << (small - b'a'),
        _ => kinds,
    };
    text.iter().fold(0, letter).count_ones() >= KINDS
}

/// A key that ends with its data center: `…-us14`.
pub(super) fn names_its_place(text: &[u8]) -> bool {
    let Some((key, place)) = text.split_at_checked(32) else { return false };
    let digits = place.strip_prefix(b"-us").unwrap_or_default();
    key.iter().all(u8::is_ascii_hexdigit)
        && (1..=2).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
}

/// Maximum bytes of a host that are checked for a known suffix.
const HOST_BYTES: usize = 64;

/// URLs whose path is secret.
const HOOKS: [&[u8]; 7] = [
    b"webhook.office.com/webhookb2/",
    b"hooks.slack.com/services/",
    b"hooks.slack.com/workflows/",
    b"hooks.slack.com/triggers/",
    b"discord.com/api/webhooks/",
    b"discordapp.com/api/webhooks/",
    b"api.telegram.org/bot",
];

/// The secret part of a URL, from where its host begins.
pub(super) fn hook(bytes: &[u8], host: usize) -> Option<(usize, usize)> {
    let labels = part(bytes, host, host + HOST_BYTES);
    let length = labels.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b".-".contains(byte));
    let labels = part(labels, 0, length.unwrap_or(labels.len()));
    step_count::add(labels.len());
    let dots = labels.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| host + at + 1);
    let from = std::iter::once(host)
        .chain(dots)
        .find_map(|at| HOOKS.iter().find(|hook| continues(bytes, at, hook)).map(|hook| at + hook.len()))?;
    let is = |byte: &&u8| byte.is_ascii_alphanumeric() || b"/_-:@".contains(byte);
    let length = bytes.iter().skip(from).take_while(is).count();
    (length >= 16).then_some((from, from + length))
}
