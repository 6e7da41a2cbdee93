//! Which request goes where, route by route.

use super::*;
use bobbin_definitions::definitions::endpoint::RESERVED;

const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

fn of(method: &str, path: &str) -> Result<Route> {
    Route::of(method, &Target::of(&format!("https://host/api/threads/t{path}")))
}

/// A path of each route of a thread; the compiler asks for that of a new one.
fn path(route: &ThreadRoute) -> Option<&'static str> {
    Some(match route {
        ThreadRoute::Create
        | ThreadRoute::CreateFork
        | ThreadRoute::CopyPage
        | ThreadRoute::Envelope
        | ThreadRoute::CameBack
        | ThreadRoute::Member
        | ThreadRoute::Call
        | ThreadRoute::Called(_)
        | ThreadRoute::FileContent(_)
        | ThreadRoute::Endpoint { .. } => return None,
        ThreadRoute::Fork => "/fork",
        ThreadRoute::Get | ThreadRoute::Patch | ThreadRoute::Delete => "",
        ThreadRoute::PostMessage | ThreadRoute::ListMessages => "/messages",
        ThreadRoute::GetMessage(_) | ThreadRoute::PatchMessage(_) | ThreadRoute::DeleteMessage(_) => {
            "/messages/m"
        }
        ThreadRoute::Regenerate(_) => "/messages/m/regenerate",
        ThreadRoute::Stop => "/stop",
        ThreadRoute::Continue => "/continue",
        ThreadRoute::Terminate => "/terminate",
        ThreadRoute::ListLogs => "/logs",
        ThreadRoute::GetLog(_) => "/logs/l",
        ThreadRoute::ListRuns => "/runs",
        ThreadRoute::GetRun(_) => "/runs/r",
        ThreadRoute::ListSubagents => "/subagents",
        ThreadRoute::GetCost => "/cost",
        ThreadRoute::GetBudget | ThreadRoute::PatchBudget => "/budget",
        ThreadRoute::GetContext => "/context",
        ThreadRoute::Summarize => "/context/summarize",
        ThreadRoute::DropSummary => "/context/summary",
        ThreadRoute::GetSpans(_) => "/runs/r/spans",
        ThreadRoute::GetStepRequest(_) => "/steps/m/request",
        ThreadRoute::Diagnostics => "/diagnostics",
        ThreadRoute::GetValues | ThreadRoute::PostValue | ThreadRoute::DeleteValue => "/kv",
        ThreadRoute::Stream => "/stream",
        ThreadRoute::Events => "/events",
        ThreadRoute::ListEffects | ThreadRoute::PostEffect => "/effects",
        ThreadRoute::GetEffect(_) => "/effects/e",
        ThreadRoute::RunEffect(_) => "/effects/e/run",
        ThreadRoute::CancelEffect(_) => "/effects/e/cancel",
        ThreadRoute::ListFiles => "/fs",
        ThreadRoute::GetFile(_)
        | ThreadRoute::HeadFile(_)
        | ThreadRoute::PutFile(_)
        | ThreadRoute::PostFile(_)
        | ThreadRoute::MoveFile(_)
        | ThreadRoute::DeleteFile(_) => "/fs/f",
        ThreadRoute::ListUploads | ThreadRoute::StartUpload => "/uploads",
        ThreadRoute::GetUpload(_) | ThreadRoute::DeleteUpload(_) => "/uploads/u",
        ThreadRoute::PutChunk { .. } => "/uploads/u/0",
        ThreadRoute::CompleteUpload(_) => "/uploads/u/complete",
        ThreadRoute::GetVariables(_) | ThreadRoute::PostVariables(_) => "/variables/v",
        ThreadRoute::ListWaits | ThreadRoute::DecideWaits => "/waits",
        ThreadRoute::GetWait(_) | ThreadRoute::DecideWait(_) => "/waits/w",
        ThreadRoute::ForgetWaits => "/waits/remembered",
        ThreadRoute::Memory { of, .. } => match of {
            MemoryRoute::Get | MemoryRoute::Clear => "/memory/b",
            MemoryRoute::AddDocument | MemoryRoute::ListDocuments => "/memory/b/documents",
            MemoryRoute::GetDocument(_) | MemoryRoute::DeleteDocument(_) => "/memory/b/documents/d",
            MemoryRoute::Search => "/memory/b/search",
            MemoryRoute::Logs => "/memory/b/logs",
        },
    })
}

#[test]
fn the_runtimes_names_never_lead_to_an_endpoint() {
    for name in RESERVED {
        for below in ["", "/x", "/x/y", "/x/y/z"] {
            for method in METHODS {
                let route = of(method, &format!("/{name}{below}"));
                let endpoint = matches!(route, Ok(Route::Thread(_, ThreadRoute::Endpoint { .. })));
                assert!(!endpoint, "{method} /{name}{below}: {route:?}");
                if let Ok(Route::Thread(_, route)) = route {
                    let path = path(&route).unwrap_or_default();
                    assert_eq!(path.split('/').nth(1), Some(name), "{route:?}");
                }
            }
        }
    }
}

#[test]
fn every_route_of_the_runtime_has_a_reserved_name() {
    // One that had none would be an endpoint's: the names are looked at before the routes.
    for text in [
        "",
        "/messages",
        "/messages/m",
        "/messages/m/regenerate",
        "/fork",
        "/stop",
        "/continue",
        "/terminate",
        "/logs",
        "/logs/l",
    ]
    .into_iter()
    .chain([
        "/subagents",
        "/cost",
        "/budget",
        "/context",
        "/context/summarize",
        "/context/summary",
        "/runs",
        "/runs/r",
        "/runs/r/spans",
        "/steps/m/request",
    ])
    .chain(["/diagnostics", "/kv", "/stream", "/events", "/fs", "/fs/f"])
    .chain(["/effects", "/effects/e", "/effects/e/run", "/effects/e/cancel"])
    .chain(["/uploads", "/uploads/u", "/uploads/u/0", "/uploads/u/complete", "/variables/v"])
    .chain(["/waits", "/waits/w", "/waits/remembered"])
    .chain(["/memory/b", "/memory/b/documents", "/memory/b/documents/d", "/memory/b/search"])
    {
        let found: Vec<ThreadRoute> = METHODS
            .into_iter()
            .filter_map(|method| match of(method, text) {
                Ok(Route::Thread(_, route)) if path(&route).is_some() => Some(route),
                _ => None,
            })
            .collect();
        assert!(!found.is_empty(), "{text} is no route of the runtime any more");
        assert!(found.iter().all(|route| path(route) == Some(text)), "{text}: {found:?}");
    }
}

#[test]
fn any_other_path_is_looked_up_in_the_catalog() {
    for method in METHODS {
        let Ok(Route::Thread(_, route)) = of(method, "/reports/a%2Fb/%C3%BC+/c%25") else { panic!() };
        let path = ["reports", "a/b", "ü+", "c%"].map(str::to_owned).to_vec();
        assert_eq!(route, ThreadRoute::Endpoint { method: Method::of(method).unwrap(), path });
    }
    for (method, endpoint) in
        [("POST", true), ("PUT", true), ("GET", false), ("HEAD", false), ("DELETE", false)]
    {
        let route = of(method, "/");
        assert_eq!(
            matches!(route, Ok(Route::Thread(_, ThreadRoute::Endpoint { .. }))),
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
    let route = ThreadRoute::Endpoint { method: Method::Put, path: vec!["a b".into(), String::new()] };
    let json = serde_json::to_string(&route).unwrap();
    assert_eq!(bobbin_definitions::json::from_str::<ThreadRoute>(&json).unwrap(), route, "{json}");
}
