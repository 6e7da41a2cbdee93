//! Signing in to MCP servers (2026-07-28, authorization): requests, and checks of the responses. This module
//! does no I/O.
//!
//! * Here: challenges, and encoding of forms. `discovery`: finding authorization servers, and their metadata.
//!   `grant`: requests for tokens, and the tokens. `login`: the sign-in in a browser. `registration`: this
//!   client's metadata.

pub mod discovery;
pub mod grant;
pub mod login;
pub mod registration;

/// A server's demand for authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The URL of its resource metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the token needs.
    pub scope: Option<String>,
    /// The reason why the token was refused.
    pub error: Option<String>,
    /// The version of the refused token, set by the caller; it is not in the header.
    pub version: i64,
}

impl Challenge {
    /// Whether the token is valid, and only lacks scopes.
    pub fn wants_more(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// Parses a `WWW-Authenticate` header (RFC 9110, 11.6.1), which may contain other schemes, too.
    pub fn of(header: &str) -> Challenge {
        let mut challenge = Challenge::default();
        let mut rest = header;
        let mut bearer = false;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if word.is_empty() {
                return challenge;
            }
            let after = after.trim_start_matches([' ', '\t']);
            let Some(value) = after.strip_prefix('=') else {
                bearer = word.eq_ignore_ascii_case("bearer");
                rest = after;
                continue;
            };
            let (value, after) = parameter(value.trim_start_matches([' ', '\t']));
            rest = after;
            let field = match word.to_ascii_lowercase().as_str() {
                "resource_metadata" => &mut challenge.resource_metadata,
                "scope" => &mut challenge.scope,
                "error" => &mut challenge.error,
                _ => continue,
            };
            if bearer && !value.is_empty() {
                field.get_or_insert(value);
            }
        }
    }
}

/// Parses a value, bare or quoted; returns it and the rest.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

/// Encodes fields as a form (`application/x-www-form-urlencoded`), also for the query of a URL.
pub fn form(fields: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(name);
        out.push('=');
        escape(value, &mut out);
    }
    out
}

/// Percent-encodes a text.
fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                out.push('%');
                for digit in [byte >> 4, byte & 15] {
                    out.extend(
                        char::from_digit(u32::from(digit), 16).map(|digit| digit.to_ascii_uppercase()),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_among_other_schemes() {
        let told = |header: &str| {
            let Challenge { resource_metadata, scope, error, .. } = Challenge::of(header);
            [resource_metadata, scope, error].map(Option::unwrap_or_default).join("|")
        };
        for (header, expected) in [
            (
                r#"Bearer resource_metadata="https://a.example/m", scope="read write""#,
                "https://a.example/m|read write|",
            ),
            (r#"bearer  error = insufficient_scope , scope=read"#, "|read|insufficient_scope"),
            (r#"Basic realm="x, scope=\"no\"", Bearer scope="a\"b\\c""#, r#"|a"b\c|"#),
            (r#"Bearer, DPoP scope="other""#, "||"),
            ("Bearer", "||"),
            ("Bearer scope=\"open", "|open|"),
            ("= , ==", "||"),
            ("", "||"),
        ] {
            assert_eq!(told(header), expected, "{header}");
        }
    }

    #[test]
    fn nothing_in_a_form_has_a_meaning() {
        assert_eq!(form(&[("a", "x&b=1"), ("c", "ü +/%")]), "a=x%26b%3D1&c=%C3%BC%20%2B%2F%25");
    }
}
