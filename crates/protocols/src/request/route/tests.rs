//! Which request goes where, route by route.

use super::*;
use crate::request::table;
use bobbin_definitions::definitions::endpoint::RESERVED;

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

fn of(method: &str, path: &str) -> Result<Route> {
    let target = Target::of(&format!("https://host/api/threads/t{path}"));
    Route::of(method, &target).map(|matched| matched.route)
}

/// The path of a row, with a segment for each name.
fn sample(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>().join("/")
}

#[test]
fn every_row_is_found_by_its_method_and_path() {
    for row in table::all() {
        let found = Route::of(row.method, &Target::of(&format!("https://host{}", sample(row.path))));
        let found = found.unwrap_or_else(|error| panic!("{} {}: {error}", row.method, row.path));
        let known = match &found.route {
            Route::Thread(_, of) => Some(of.parameters()),
            Route::Stream(_, of) => of.parameters(),
            _ => found.parameters,
        };
        assert_eq!(known, Some(row.parameters), "{} {}", row.method, row.path);
    }
    let mut names: Vec<&str> = table::all().map(|row| row.id).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn every_route_of_a_thread_has_a_reserved_name_and_none_leads_to_an_endpoint() {
    for row in table::all() {
        let Some(below) = row.path.strip_prefix("/api/threads/{threadId}/") else { continue };
        let name = below.split('/').next().unwrap();
        // Without a reserved name it would be an endpoint's: the names are compared before the rows.
        assert!(RESERVED.contains(&name), "{}", row.path);
    }
    for name in RESERVED {
        for below in ["", "/x", "/x/y", "/x/y/z"] {
            for method in METHODS {
                let route = of(method, &format!("/{name}{below}"));
                let endpoint = matches!(route, Ok(Route::Stream(_, StreamRoute::Endpoint { .. })));
                assert!(!endpoint, "{method} /{name}{below}: {route:?}");
            }
        }
    }
}

#[test]
fn requests_between_objects_have_no_row() {
    let called = || ThreadRoute::Called("m".into());
    for route in [ThreadRoute::Create, ThreadRoute::Envelope, ThreadRoute::Call, called()] {
        assert!(route.parameters().is_empty(), "{route:?}");
    }
    assert!(called().reads() && !ThreadRoute::Envelope.reads());
}

#[test]
fn a_known_path_with_another_method_names_its_methods() {
    for (method, path, allowed) in [
        ("POST", "/waits/remembered", "DELETE"),
        ("PUT", "/messages/m", "GET, PATCH, DELETE"),
        ("OPTIONS", "/fs/a/b", "GET, HEAD, POST, PUT, PATCH, DELETE"),
        ("GET", "/uploads/u/complete", "POST"),
        ("DELETE", "/uploads/u/0", "PUT"),
    ] {
        let error = of(method, path).unwrap_err();
        assert_eq!(error.code, Code::MethodNotAllowed, "{method} {path}");
        assert_eq!(error.hint.as_deref(), Some(format!("Allowed: {allowed}.").as_str()), "{method} {path}");
    }
    let healthz =
        |method| Route::of(method, &Target::of("https://host/healthz")).map(|matched| matched.route);
    assert_eq!(healthz("HEAD"), Ok(Route::Open(OpenRoute::Health)));
    assert_eq!(healthz("POST").unwrap_err().hint.as_deref(), Some("Allowed: GET."));
    // The owners' list is no thread.
    let owners = Route::of("DELETE", &Target::of("https://host/api/threads/owners"));
    assert_eq!(owners.unwrap_err().code, Code::MethodNotAllowed);
    // The object refuses it after it has checked the caller.
    assert!(of("GET", "/memory/b/logs").is_ok());
    assert_eq!(of("POST", "/memory/b/logs").unwrap_err().hint.as_deref(), Some("Allowed: GET."));
    for path in ["/memory", "/memory/b/nowhere", "/messages/m/nowhere", "/effects/e/nowhere"] {
        assert_eq!(of("GET", path).unwrap_err().code, Code::NotFound, "{path}");
    }
}

#[test]
fn any_other_path_is_looked_up_in_the_catalog() {
    for method in METHODS {
        let Ok(Route::Stream(_, route)) = of(method, "/reports/a%2Fb/%C3%BC+/c%25") else { panic!() };
        let path = ["reports", "a/b", "ü+", "c%"].map(str::to_owned).to_vec();
        assert_eq!(route, StreamRoute::Endpoint { method: Method::of(method).unwrap(), path });
    }
    for (method, endpoint) in
        [("POST", true), ("PUT", true), ("GET", false), ("HEAD", false), ("DELETE", false)]
    {
        let route = of(method, "/");
        assert_eq!(
            matches!(route, Ok(Route::Stream(_, StreamRoute::Endpoint { .. }))),
            endpoint,
            "{route:?}"
        );
    }
    for method in ["OPTIONS", "TRACE", "get", ""] {
        assert_eq!(of(method, "/reports").unwrap_err().code, Code::MethodNotAllowed, "{method}");
    }
    // Escaped or not, a name of the runtime's is one.
    assert_eq!(of("GET", "/%6dessages"), Ok(Route::Thread("t".into(), ThreadRoute::ListMessages)));
    assert_eq!(of("GET", "/fs%2Fx").map(|_| ()), Ok(()));
}

#[test]
fn what_was_an_item_never_becomes_the_thread() {
    let refused = |method: &str, path: &str| {
        let error = of(method, path).expect_err(path);
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidField, Some("path")), "{path}");
    };
    for segment in ["..", ".", "%2e%2e", "%2E.", ".%2e", "%2e"] {
        refused("DELETE", &format!("/messages/{segment}"));
        refused("PUT", &format!("/fs/a/{segment}/b"));
        refused("GET", &format!("/reports/{segment}"));
    }
    // What a client or a proxy makes of them before this is reached.
    refused("DELETE", "/");
    refused("DELETE", "/fs/a/");
    refused("POST", "/messages/");
    assert_eq!(of("GET", "/messages/"), Ok(Route::Thread("t".into(), ThreadRoute::ListMessages)));
    assert_eq!(of("DELETE", ""), Ok(Route::Thread("t".into(), ThreadRoute::Delete)));
    assert!(of("GET", "/messages/...").is_ok() && of("GET", "/fs/..a").is_ok());
}

#[test]
fn an_endpoints_route_survives_the_way_to_an_object() {
    let route = StreamRoute::Endpoint { method: Method::Put, path: vec!["a b".into(), String::new()] };
    let json = serde_json::to_string(&route).unwrap();
    assert_eq!(bobbin_definitions::json::from_str::<StreamRoute>(&json).unwrap(), route, "{json}");
}
