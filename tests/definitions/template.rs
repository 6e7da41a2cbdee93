//! `{{env NAME}}`, and where its values may come from.

use bobbin::definitions::template::{Error, Piece, check_url, names, parse, render, render_url};

fn deployment(name: &str) -> Option<String> {
    let value = match name {
        "BASE" => "https://api.example.com:8443/v2/",
        "HOST" => "api.example.com",
        "SCHEME" => "https",
        "FILE" => "file:///etc",
        "USER" => "a@b",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

fn thread(name: &str) -> Option<String> {
    let value = match name {
        "BASE" | "HOST" => "evil.example",
        "CITY" => "Köln/?#x y",
        "UP" => "..",
        _ => return None,
    };
    Some(value.to_owned())
}

#[test]
fn a_template_is_text_and_names() {
    assert_eq!(
        parse("a{{env B}}c{{  env   D }}").unwrap(),
        [Piece::Text("a"), Piece::Env("B"), Piece::Text("c"), Piece::Env("D"),]
    );
    assert_eq!(names("{{env A}}/{{env B}}"), ["A", "B"]);
    assert_eq!(parse("plain } text {").unwrap(), [Piece::Text("plain } text {")]);
    for wrong in [
        "{{env A",
        "{{A}}",
        "{{envA}}",
        "{{env }}",
        "{{env A B}}",
        "{{env 1A}}",
        "{{env A-B}}",
        "{{{{env A}}",
    ] {
        assert!(matches!(parse(wrong), Err(Error::Malformed(_))), "{wrong}");
    }
}

#[test]
fn a_name_without_a_value_is_named() {
    assert_eq!(render("Bearer {{env HOST}}", &deployment).unwrap(), "Bearer api.example.com");
    assert_eq!(render("{{env NO}}", &deployment), Err(Error::Unset("NO".into())));
    assert_eq!(Error::Unset("NO".into()).to_string(), "NO is not set");
}

#[test]
fn the_authority_of_a_url_takes_values_from_the_deployment_alone() {
    let cases = [
        ("https://{{env HOST}}/x", "https://api.example.com/x"),
        ("{{env BASE}}/lookup", "https://api.example.com:8443/v2/lookup"),
        ("{{env SCHEME}}://{{env HOST}}:81/x", "https://api.example.com:81/x"),
        (
            "https://a.example/{{env CITY}}/x?q={{env CITY}}",
            "https://a.example/K%C3%B6ln%2F%3F%23x%20y/x?q=K%C3%B6ln%2F%3F%23x%20y",
        ),
        ("https://{{env HOST}}?q={{env CITY}}", "https://api.example.com?q=K%C3%B6ln%2F%3F%23x%20y"),
        ("https://a.example?u=https://{{env HOST}}", "https://a.example?u=https://evil.example"),
    ];
    for (template, expected) in cases {
        assert_eq!(render_url(template, &deployment, &thread).as_deref(), Ok(expected), "{template}");
    }
    let unset = |name: &str| Err(Error::Unset(name.to_owned()));
    assert_eq!(render_url("https://{{env CITY}}/x", &deployment, &thread), unset("CITY"));
    assert_eq!(render_url("{{env EMPTY}}/x", &deployment, &thread), unset("EMPTY"));
    assert_eq!(render_url("https://a.example/{{env FILE}}", &deployment, &thread), unset("FILE"));
    for template in ["{{env FILE}}/x", "https://{{env USER}}/x", "https://a.example/{{env UP}}/x"] {
        assert!(matches!(render_url(template, &deployment, &thread), Err(Error::Malformed(_))), "{template}");
    }
}

#[test]
fn the_template_of_a_url_is_checked_before_anything_is_set() {
    for fine in [
        "https://a.example",
        "HTTP://a.example/x",
        "{{env BASE}}",
        "{{env BASE}}/x",
        "{{env BASE}}/x?u=http://u@b.example",
        "{{env SCHEME}}://{{env HOST}}/x@y",
        "https://{{env HOST}}:8080/{{env X}}",
    ] {
        assert_eq!(check_url(fine), Ok(()), "{fine}");
    }
    for wrong in [
        "",
        "a.example/x",
        "/x",
        "ftp://a.example",
        "https://",
        "https:///x",
        "https://u:p@a.example",
        "https://a b/x",
        "javascript:alert(1)",
        "https://{{HOST}}/x",
        "file://{{env HOST}}",
        "a/{{env X}}",
        "ftp://{{env HOST}}/x",
        "http://{{env HOST}}@a.example/",
        "{{env BASE}}@a.example/",
        "{{env SCHEME}}://{{env USER}}@a.example/",
        "{{env SCHEME}}://",
    ] {
        assert!(matches!(check_url(wrong), Err(Error::Malformed(_))), "{wrong}");
    }
}
