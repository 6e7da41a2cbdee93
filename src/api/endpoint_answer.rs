//! The response of an endpoint on its way to the client.

use crate::definitions::endpoint::Method;
use crate::env::Redacted;
use crate::request::{Content, RawResponse};
use crate::work::native::endpoint_call::EndpointAnswer;

/// Headers that an endpoint cannot set: those of the connection, those of the runtime's own responses to
/// pages of other origins, and cookies. Cookies are not used in this API, and would reach the pages of every
/// other thread.
const OWN_HEADERS: [&str; 12] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "server",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
];

/// The response in the form in which it is served.
///
/// # Errors
/// A text about an invalid status or header.
pub(super) fn served(answer: Redacted<EndpointAnswer>, method: Method) -> Result<RawResponse, String> {
    let EndpointAnswer { status, headers, body } = answer.inner();
    if !(200..600).contains(&status) {
        return Err(format!("it answered with the status {status}; there are 200 to 599"));
    }
    let mut served = RawResponse::empty(status);
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        if !is_name(&name) {
            return Err(format!("it answered with a header “{name}”, which cannot name one"));
        }
        if !value.chars().all(|c| c == '\t' || (' '..='~').contains(&c)) {
            return Err(format!(
                "the header “{name}” of its answer has a value that is not one line of ASCII"
            ));
        }
        let own = OWN_HEADERS.contains(&name.as_str())
            || name.starts_with("access-control-")
            || name.starts_with("x-bobbin-");
        if !own {
            served.headers.push((name, value));
        }
    }
    for (name, value) in [("cache-control", "no-store"), ("x-content-type-options", "nosniff")] {
        if served.headers.iter().all(|(set, _)| set != name) {
            served = served.header(name, value);
        }
    }
    // These have no body, and the platform rejects one.
    if method != Method::Head && !matches!(status, 204 | 205 | 304) && !body.is_empty() {
        served.content = Content::Bytes(body);
    }
    Ok(served)
}

/// RFC 9110, 5.6.2; in lower case.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Redactor;

    fn served(answer: EndpointAnswer, method: Method) -> Result<RawResponse, String> {
        crate::api::endpoint_answer::served(Redactor::default().shown(answer), method)
    }

    fn answer() -> EndpointAnswer {
        EndpointAnswer::text(200, "hello")
    }

    fn names(answer: EndpointAnswer) -> Vec<String> {
        served(answer, Method::Get).unwrap().headers.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn headers_of_the_connection_and_cookies_are_left_out() {
        let mut all = answer().header("X-Total", "3").header("ETag", "\"1\"").header("Location", "/x");
        for own in OWN_HEADERS.into_iter().chain(["Access-Control-Allow-Origin", "X-Bobbin-Call"]) {
            all = all.header(own, "x");
        }
        let expected =
            ["content-type", "x-total", "etag", "location", "cache-control", "x-content-type-options"];
        assert_eq!(names(all), expected);
        let own = answer().header("Cache-Control", "max-age=60");
        assert_eq!(names(own), ["content-type", "cache-control", "x-content-type-options"]);
    }

    #[test]
    fn what_no_answer_may_have_is_an_error() {
        for (name, value) in [
            ("", "x"),
            ("a b", "x"),
            ("a:", "x"),
            ("ü", "x"),
            ("a\n", "x"),
            ("a", "x\r\ny: z"),
            ("a", "ü"),
            ("a", "\0"),
            ("a", "\u{7f}"),
        ] {
            assert!(served(answer().header(name, value), Method::Get).is_err(), "{name:?} {value:?}");
        }
        assert!(served(answer().header("a", "\tx y~"), Method::Get).is_ok());
        for status in [0, 100, 101, 199, 600, 999] {
            assert!(served(EndpointAnswer { status, ..answer() }, Method::Get).is_err(), "{status}");
        }
    }

    #[test]
    fn a_body_is_left_out_where_there_can_be_none() {
        let has_body = |status, method| {
            let served = served(EndpointAnswer { status, ..answer() }, method).unwrap();
            matches!(served.content, Content::Bytes(_))
        };
        for status in [204, 205, 304] {
            assert!(!has_body(status, Method::Get), "{status}");
        }
        assert!(has_body(200, Method::Get) && has_body(418, Method::Post) && has_body(599, Method::Get));
        assert!(!has_body(200, Method::Head));
    }
}
