//! `{{env NAME}}` in URLs and headers.
//!
//! In a URL, the scheme, host and port (its *authority*) may take values only from the deployment; a value in the rest
//! may come from anywhere and is percent-encoded, so that it can never change where the request goes.

use std::fmt::Write as _;

/// Why a template gave no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A name has no value. The text tells its name.
    #[error("{0} is not set")]
    Unset(String),
    /// The template, or what it became, is not what it should be.
    #[error("{0}")]
    Malformed(String),
}

/// A piece of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A text as it is.
    Text(&'a str),
    /// The value of a name.
    Env(&'a str),
}

/// Splits a template into its pieces.
pub fn parse(template: &str) -> Result<Vec<Piece<'_>>, Error> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((text, tail)) = rest.split_once("{{") {
        let Some((inside, tail)) = tail.split_once("}}") else {
            return Err(Error::Malformed("`{{` without `}}`".into()));
        };
        let name = inside.trim().strip_prefix("env").filter(|name| name.starts_with(char::is_whitespace));
        let Some(name) = name.map(str::trim).filter(|name| is_name(name)) else {
            return Err(Error::Malformed(format!("`{{{{{inside}}}}}` should be `{{{{env NAME}}}}`")));
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        pieces.push(Piece::Env(name));
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Whether a text can name an env: letters, digits and `_`, not starting with a digit.
pub fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| word(c) && !c.is_ascii_digit()) && name.chars().all(word)
}

/// The names in a template; none when it is malformed.
pub fn names(template: &str) -> Vec<&str> {
    let name = |piece| match piece {
        Piece::Env(name) => Some(name),
        Piece::Text(_) => None,
    };
    parse(template).unwrap_or_default().into_iter().filter_map(name).collect()
}

/// The text of a template (a header, a base URL), its values as `lookup` gives them.
pub fn render(template: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, Error> {
    let mut out = String::new();
    for piece in parse(template)? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Env(name) => out.push_str(&value(name, lookup)?),
        }
    }
    Ok(out)
}

/// The URL of a template. Names in its authority are looked up with `deployment`, the others with `anywhere`.
pub fn render_url(
    template: &str,
    deployment: &dyn Fn(&str) -> Option<String>,
    anywhere: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Error> {
    let pieces = parse(template)?;
    let mut authority_names = authority(&pieces)?;
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Env(name) if authority_names > 0 => {
                authority_names -= 1;
                let value = value(name, deployment)?;
                if value.trim().is_empty() {
                    return Err(Error::Unset(name.to_owned()));
                }
                // `{{env BASE}}/path`, with or without a slash at the end of BASE.
                out.push_str(value.trim().trim_end_matches('/'));
            }
            Piece::Env(name) => push_encoded(&mut out, name, &value(name, anywhere)?)?,
        }
    }
    check_authority(&out)?;
    Ok(out)
}

/// What is wrong with the template of a URL.
pub fn check_url(template: &str) -> Result<(), Error> {
    let pieces = parse(template)?;
    authority(&pieces)?;
    // With a stand-in for every value; a value at the very start brings the scheme along.
    let text = |piece: &Piece<'_>| match *piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Env(_) => "x".to_owned(),
    };
    let url: String = pieces.iter().map(text).collect();
    match (pieces.first(), split_scheme(&url)) {
        (Some(Piece::Env(_)), Some((_, rest))) => check_authority(&format!("https://{rest}")),
        (Some(Piece::Env(_)), None) => check_authority(&format!("https://{url}")),
        _ => check_authority(&url),
    }
}

/// What is before and after `://`, where that ends the scheme.
fn split_scheme(url: &str) -> Option<(&str, &str)> {
    url.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', '#', '\\']))
}

fn value(name: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, Error> {
    lookup(name).ok_or_else(|| Error::Unset(name.to_owned()))
}

/// How many of the template's names stand in its authority.
fn authority(pieces: &[Piece<'_>]) -> Result<usize, Error> {
    const NAME: char = '\0';
    let outline: String = pieces
        .iter()
        .map(|piece| match *piece {
            Piece::Text(text) => text.replace(NAME, " "),
            Piece::Env(_) => NAME.to_string(),
        })
        .collect();
    let (scheme, rest) = match split_scheme(&outline) {
        Some(parts) => parts,
        None if outline.starts_with(NAME) => ("", outline.as_str()),
        _ => {
            return Err(Error::Malformed(format!(
                "`{}` should start with `https://`",
                outline.replace(NAME, "…")
            )));
        }
    };
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    Ok(scheme.matches(NAME).count() + host.matches(NAME).count())
}

/// A URL goes over http or https to a host, without credentials in it.
fn check_authority(url: &str) -> Result<(), Error> {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let rest = ["https://", "http://"].into_iter().find(|scheme| lower.starts_with(scheme));
    let Some(rest) = rest.and_then(|scheme| url.get(scheme.len()..)) else {
        return Err(Error::Malformed(format!("`{url}` should start with `https://`")));
    };
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    match host {
        "" => Err(Error::Malformed(format!("`{url}` names no host"))),
        host if host.contains('@') => {
            Err(Error::Malformed("credentials belong into a header, not the URL".into()))
        }
        host if host.contains(char::is_whitespace) => {
            Err(Error::Malformed(format!("`{host}` is not a host")))
        }
        _ => Ok(()),
    }
}

fn push_encoded(out: &mut String, name: &str, value: &str) -> Result<(), Error> {
    if value == "." || value == ".." {
        return Err(Error::Malformed(format!("{name} may not be `{value}` in a URL")));
    }
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    Ok(())
}
