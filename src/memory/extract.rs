//! The searchable text of a document.

use crate::error::{Code, Error, Result};
use crate::text::first_bytes;

/// Supported media types.
const TYPES: [&str; 6] =
    ["text/plain", "text/markdown", "text/html", "text/csv", "application/json", "application/xhtml+xml"];

/// Elements whose content is not text.
const SILENT: [&str; 5] = ["script", "style", "template", "noscript", "svg"];

/// Bytes of a name between `&` and `;`.
const ENTITY_BYTES: usize = 8;

/// Inline elements.
const INLINE: [&str; 16] = [
    "a", "abbr", "b", "bdi", "cite", "code", "em", "i", "kbd", "mark", "q", "small", "span", "strong", "sub",
    "sup",
];

/// The text in a document of a media type; the default is plain text.
///
/// # Errors
/// `unsupported_media_type`.
pub(crate) fn text_of(mime: Option<&str>, content: String) -> Result<String> {
    let essence =
        mime.unwrap_or("text/plain").split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !TYPES.contains(&essence.as_str()) {
        let taken = TYPES.join(", ");
        return Err(Error::new(
            Code::UnsupportedMediaType,
            format!("A memory does not take documents of the type {essence}."),
        )
        .at("mimeType")
        .hint(format!("It takes {taken}. Send the text of anything else.")));
    }
    Ok(if essence.contains("html") { of_html(&content) } else { content })
}

/// The text of a page: tags are removed, headings become `#` lines.
fn of_html(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        push_text(&mut out, rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some((tag, after)) = rest.get(1..).unwrap_or_default().split_once('>') else { break };
        rest = after;
        let closes = tag.starts_with('/');
        let name = tag.trim_start_matches('/').split(|c: char| c.is_whitespace() || c == '/').next();
        let name = name.unwrap_or_default().to_ascii_lowercase();
        if !closes && SILENT.contains(&name.as_str()) {
            rest = after_element(rest, &name);
            continue;
        }
        if !INLINE.contains(&name.as_str()) {
            break_line(
                &mut out,
                if matches!(name.as_str(), "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6") { 2 } else { 1 },
            );
        }
        let level = name.strip_prefix('h').and_then(|level| level.parse::<usize>().ok());
        if let Some(level) = level.filter(|level| !closes && (1..=6).contains(level)) {
            out.push_str(&"#".repeat(level));
            out.push(' ');
        }
    }
    push_text(&mut out, rest.strip_prefix('<').map_or(rest, |_| ""));
    out.trim().to_owned()
}

/// The rest after the end of an element whose content is skipped.
fn after_element<'h>(html: &'h str, name: &str) -> &'h str {
    let mut rest = html;
    while let Some((before, end)) = rest.split_once("</") {
        work::add(before.len());
        rest = end;
        if end.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            return end.split_once('>').map_or("", |(_, after)| after);
        }
    }
    ""
}

/// Ends the output with this number of line breaks.
fn break_line(out: &mut String, lines: usize) {
    while out.ends_with(' ') {
        out.pop();
    }
    if out.is_empty() {
        return;
    }
    let there = out.len() - out.trim_end_matches('\n').len();
    out.extend(std::iter::repeat_n('\n', lines.saturating_sub(there)));
}

/// Appends text between tags: collapses spaces, decodes entities.
fn push_text(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let entity = rest.strip_prefix('&').and_then(|after| {
            let most = first_bytes(after, ENTITY_BYTES + 1);
            work::add(most.len());
            let (name, _) = most.split_once(';')?;
            Some((letter_of(name)?, after.get(name.len() + 1..)?))
        });
        let (letter, behind) = entity.unwrap_or((letter, rest.get(letter.len_utf8()..).unwrap_or_default()));
        rest = behind;
        match letter.is_whitespace() {
            true if out.is_empty() || out.ends_with([' ', '\n']) => {}
            true => out.push(' '),
            false => out.push(letter),
        }
    }
}

fn letter_of(entity: &str) -> Option<char> {
    let number = entity.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    });
    match entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "ndash" => Some('–'),
        "mdash" => Some('—'),
        "hellip" => Some('…'),
        _ => char::from_u32(number?),
    }
}

/// Counts steps, in tests only.
mod work {
    #[cfg(test)]
    thread_local! {
        pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[inline]
    pub(super) fn add(_steps: usize) {
        #[cfg(test)]
        STEPS.with(|all| all.set(all.get() + _steps));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_page_the_text_and_its_headings_remain() {
        let html = "<!doctype html><html><head><title>Shop</title><style>p{}</style></head><body>\
            <h1>Returns</h1>\n<p>Within <b>thirty</b>   days &amp; with&nbsp;a receipt&#33;</p>\
            <SCRIPT>if (a < b) alert(1)</SCRIPT><!-- no --><ul><li>one<li>two</ul>caf&#xe9; &unknown; 1 < 2</body>";
        let text = text_of(Some("text/html; charset=utf-8"), html.to_owned()).unwrap();
        assert_eq!(
            text,
            "Shop\n\n# Returns\n\nWithin thirty days & with a receipt!\n\none\ntwo\ncafé &unknown; 1"
        );
    }

    #[test]
    fn what_is_no_text_is_refused_by_name() {
        let plain = text_of(None, "a <b> c".to_owned()).unwrap();
        assert_eq!(plain, "a <b> c");
        let error = text_of(Some("application/pdf"), String::new()).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::UnsupportedMediaType, Some("mimeType")));
    }

    #[test]
    fn a_page_is_gone_over_once_whatever_it_is_full_of() {
        for piece in
            ["&", "&a;", "<script>x</script>", "<STYLE></style>", "<svg></sv></svg", "<", "<!--", "<p>"]
        {
            let steps = |pieces: usize| {
                let done = || work::STEPS.with(std::cell::Cell::get);
                let before = done();
                drop(of_html(&piece.repeat(pieces)));
                done() - before
            };
            let (some, much) = (steps(100), steps(1_000));
            assert!(much <= 11 * some + 64, "{piece}: {some}, {much}");
        }
    }
}
