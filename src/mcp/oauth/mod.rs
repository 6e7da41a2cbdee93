//! Signing in to MCP servers (2026-07-28, authorization): what is asked, and what must hold of the answers. Values in, values out.
//!
//! * Here: what a refusal says, and texts of forms. `discovery`: whom to ask, and what they say of themselves. `grant`: requests
//!   for tokens, and the tokens. `login`: the way through a browser. `registration`: what this client says of itself.

pub(crate) mod discovery;
pub(crate) mod grant;
pub(crate) mod login;
pub(crate) mod registration;

/// What a server says when it wants to know who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// Where it is told who gives tokens for it.
    pub(crate) resource_metadata: Option<String>,
    /// What the token must allow.
    pub(crate) scope: Option<String>,
    /// Why the token was not taken.
    pub(crate) error: Option<String>,
    /// Which token that was, as whoever keeps them counts; no header says so.
    pub(crate) version: i64,
}

impl Challenge {
    /// Whether the token is good, and only allows too little.
    pub(crate) fn wants_more(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// That of a header `WWW-Authenticate` (RFC 9110, 11.6.1), which may hold other schemes, too.
    pub(crate) fn of(header: &str) -> Challenge {
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

/// A value, bare or in quotes, and what follows it.
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

/// Fields as a form has them (`application/x-www-form-urlencoded`), also behind the `?` of an address.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
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

/// Writes a text so that nothing in it has a meaning in an address or a form.
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
