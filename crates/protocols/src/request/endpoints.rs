//! The choice of the custom endpoint for a request (spec §26.2). A static segment has priority over a
//! parameter, and a parameter over a catch-all, segment by segment. If the better match leads to no endpoint,
//! the search takes the next one.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_definitions::definitions::endpoint::{EndpointRoute, Method, Segment};

/// The result of a search for a path.
#[derive(Debug, PartialEq, Eq)]
pub enum RouteMatch<'a, T> {
    /// The endpoint, with its parameters by name. The parameter of a catch-all is `*` and keeps its slashes.
    Endpoint(&'a EndpointRoute, &'a T, BTreeMap<String, String>),
    /// The path has endpoints for these methods only.
    OtherMethods(Vec<&'static str>),
    /// The path has no endpoint.
    Nothing,
}

/// Finds the endpoint. The segments of `path` are decoded; an empty path is the thread itself.
pub fn find<'a, T>(
    endpoints: &'a BTreeMap<EndpointRoute, T>,
    method: Method,
    path: &[String],
) -> RouteMatch<'a, T> {
    let answered_by = method.answered_by();
    let fitting = || endpoints.iter().filter(|(route, _)| fits(&route.path, path));
    let best = fitting()
        .filter(|(route, _)| route.method == answered_by)
        .min_by(|(a, _), (b, _)| ranks(&a.path).cmp(ranks(&b.path)));
    if let Some((route, endpoint)) = best {
        return RouteMatch::Endpoint(route, endpoint, params(&route.path, path));
    }
    match methods(endpoints, path) {
        known if known.is_empty() => RouteMatch::Nothing,
        known => RouteMatch::OtherMethods(known),
    }
}

/// The methods of a path's endpoints.
pub fn methods<T>(endpoints: &BTreeMap<EndpointRoute, T>, path: &[String]) -> Vec<&'static str> {
    let fitting = endpoints.keys().filter(|route| fits(&route.path, path));
    let known: BTreeSet<Method> = fitting.map(|route| route.method).collect();
    let head = known.contains(&Method::Get).then_some(Method::Head);
    let known: BTreeSet<Method> = known.into_iter().chain(head).collect();
    known.into_iter().map(Method::as_str).collect()
}

/// The header with the address of a request to an endpoint, in its original form. The router sends it to the
/// object.
pub const ADDRESS: &str = "x-bobbin-address";

/// Whether an endpoint receives a request header. It does not receive credentials or the runtime's internal
/// headers.
pub fn passes_header(name: &str) -> bool {
    !matches!(name, "authorization" | "cookie" | "proxy-authorization" | "x-api-key")
        && !name.starts_with("x-bobbin-")
}

fn fits(pattern: &[Segment], path: &[String]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (Some((Segment::Rest, _)), _) => true,
        (Some((Segment::Static(text), pattern)), Some((segment, path))) => {
            text == segment && fits(pattern, path)
        }
        (Some((Segment::Parameter(_), pattern)), Some((segment, path))) => {
            !segment.is_empty() && fits(pattern, path)
        }
        (None, None) => true,
        _ => false,
    }
}

/// The precision of each segment. Of two matching routes, the smaller one is tried first. A route that ends
/// ranks before a longer one, because only a catch-all can match further.
fn ranks(pattern: &[Segment]) -> impl Iterator<Item = u8> {
    pattern.iter().map(|segment| match segment {
        Segment::Static(_) => 0,
        Segment::Parameter(_) => 1,
        Segment::Rest => 2,
    })
}

fn params(pattern: &[Segment], path: &[String]) -> BTreeMap<String, String> {
    let mut params = BTreeMap::new();
    for (at, segment) in pattern.iter().enumerate() {
        match segment {
            Segment::Static(_) => {}
            Segment::Parameter(name) => {
                params.insert(name.clone(), path.get(at).cloned().unwrap_or_default());
            }
            Segment::Rest => {
                params.insert("*".to_owned(), path.get(at..).unwrap_or_default().join("/"));
            }
        }
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(routes: &[&str]) -> BTreeMap<EndpointRoute, String> {
        routes.iter().map(|route| (route.parse().unwrap(), (*route).to_owned())).collect()
    }

    fn path(path: &str) -> Vec<String> {
        path.split('/').filter(|_| !path.is_empty()).map(str::to_owned).collect()
    }

    /// The endpoint and its parameters, or the methods of the path, or nothing, as text.
    fn found(routes: &[&str], method: Method, at: &str) -> String {
        match find(&endpoints(routes), method, &path(at)) {
            RouteMatch::Endpoint(_, route, params) => {
                let params = params.iter().map(|(name, value)| format!(" {name}={value}"));
                format!("{route}{}", params.collect::<String>())
            }
            RouteMatch::OtherMethods(methods) => methods.join(", "),
            RouteMatch::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn the_most_precise_route_answers() {
        let routes = [
            "GET /health",
            "POST /import",
            "GET /reports",
            "GET /reports/[*]",
            "GET /reports/[day]",
            "GET /reports/today",
            "GET /reports/[day]/notes",
            "GET /reports/today/all",
            "DELETE /reports/[day]",
            "PUT /files/[*]",
        ];
        for (method, at, expected) in [
            (Method::Get, "health", "GET /health"),
            (Method::Head, "health", "GET /health"),
            (Method::Get, "Health", "nothing"),
            (Method::Get, "health/x", "nothing"),
            (Method::Post, "import", "POST /import"),
            (Method::Get, "import", "POST"),
            (Method::Head, "import", "POST"),
            (Method::Post, "health", "GET, HEAD"),
            (Method::Get, "reports", "GET /reports"),
            (Method::Get, "reports/today", "GET /reports/today"),
            (Method::Get, "reports/monday", "GET /reports/[day] day=monday"),
            (Method::Get, "reports/monday/notes", "GET /reports/[day]/notes day=monday"),
            // The static branch has no notes. The branch of the parameter has.
            (Method::Get, "reports/today/notes", "GET /reports/[day]/notes day=today"),
            (Method::Get, "reports/today/all", "GET /reports/today/all"),
            (Method::Get, "reports/monday/all", "GET /reports/[*] *=monday/all"),
            (Method::Get, "reports/today/a/b/c", "GET /reports/[*] *=today/a/b/c"),
            // Methods select a branch as segments do.
            (Method::Delete, "reports/today", "DELETE /reports/[day] day=today"),
            (Method::Patch, "reports/today", "GET, HEAD, DELETE"),
            (Method::Patch, "reports", "GET, HEAD"),
            // No segments, and empty ones.
            (Method::Put, "files", "PUT /files/[*] *="),
            (Method::Put, "files/a//b/", "PUT /files/[*] *=a//b/"),
            (Method::Get, "reports/", "GET /reports/[*] *="),
            (Method::Get, "", "nothing"),
        ] {
            assert_eq!(found(&routes, method, at), expected, "{method:?} /{at}");
        }
        assert_eq!(found(&["POST /", "GET /[*]"], Method::Post, ""), "POST /");
        assert_eq!(found(&["POST /", "GET /[*]"], Method::Get, ""), "GET /[*] *=");
        assert_eq!(found(&[], Method::Get, "a"), "nothing");
    }

    #[test]
    fn parameters_are_whole_segments_with_whatever_is_in_them() {
        let routes = endpoints(&["GET /a/[b]/[*]"]);
        let path = ["a", "x/y z", "ü", "p/q"].map(str::to_owned);
        let RouteMatch::Endpoint(_, _, params) = find(&routes, Method::Get, &path) else { panic!() };
        assert_eq!(
            (params.get("b").unwrap().as_str(), params.get("*").unwrap().as_str()),
            ("x/y z", "ü/p/q")
        );
    }

    #[test]
    fn credentials_stay_with_the_runtime() {
        let credentials = ["authorization", "cookie", "proxy-authorization", "x-api-key"];
        for name in credentials.into_iter().chain(["x-bobbin-call", "x-bobbin-listen"]) {
            assert!(!passes_header(name), "{name}");
        }
        for name in ["content-type", "idempotency-key", "x-hub-signature-256", "user-agent", "bobbin"] {
            assert!(passes_header(name), "{name}");
        }
    }

    /// The reference implementation: descends the tree of routes, the better branch first, and backtracks.
    fn naive<'a>(routes: &[&'a EndpointRoute], depth: usize, path: &[String]) -> Option<&'a EndpointRoute> {
        let step = |wanted: &dyn Fn(&Segment) -> bool| -> Vec<&'a EndpointRoute> {
            routes.iter().copied().filter(|route| route.path.get(depth).is_some_and(wanted)).collect()
        };
        let Some((segment, rest)) = path.split_first() else {
            let ends = routes.iter().copied().find(|route| route.path.len() == depth);
            return ends.or_else(|| step(&|s| *s == Segment::Rest).first().copied());
        };
        let of_text = step(&|s| matches!(s, Segment::Static(text) if text == segment));
        let of_parameter = step(&|s| matches!(s, Segment::Parameter(_)) && !segment.is_empty());
        let deeper = |branch: Vec<&'a EndpointRoute>| {
            if branch.is_empty() { None } else { naive(&branch, depth + 1, rest) }
        };
        deeper(of_text)
            .or_else(|| deeper(of_parameter))
            .or_else(|| step(&|s| *s == Segment::Rest).first().copied())
    }

    #[test]
    fn the_same_is_found_as_by_going_down_the_tree() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % n
        };
        let (mut endpoint, mut other, mut nothing) = (0, 0, 0);
        for round in 0..4_000 {
            let mut endpoints = BTreeMap::new();
            let mut shapes = BTreeSet::new();
            for _ in 0..below(12) {
                let method = Method::OF_ENDPOINTS[below(3) as usize];
                let length = below(5);
                let mut path: Vec<Segment> = (0..length)
                    .map(|at| match below(5) {
                        0 | 1 => Segment::Parameter(format!("p{at}")),
                        n => Segment::Static(["a", "b", "c"][n as usize - 2].to_owned()),
                    })
                    .collect();
                if below(4) == 0 {
                    path.push(Segment::Rest);
                }
                let route = EndpointRoute { method, path };
                if shapes.insert(route.shape()) {
                    endpoints.insert(route, ());
                }
            }
            for _ in 0..12 {
                let path: Vec<String> =
                    (0..below(6)).map(|_| ["a", "b", "c", "d", ""][below(5) as usize].to_owned()).collect();
                let all: Vec<&EndpointRoute> = endpoints.keys().collect();
                for method in [Method::Get, Method::Head, Method::Post, Method::Put, Method::Patch] {
                    let of = |method: Method| -> Vec<&EndpointRoute> {
                        all.iter().copied().filter(|route| route.method == method).collect()
                    };
                    let expected = naive(&of(method.answered_by()), 0, &path);
                    match find(&endpoints, method, &path) {
                        RouteMatch::Endpoint(route, (), params) => {
                            endpoint += 1;
                            assert_eq!(
                                Some(route),
                                expected,
                                "round {round}: {method:?} {path:?} of {all:?}"
                            );
                            let values: Vec<&str> = params.values().map(String::as_str).collect();
                            assert!(values.iter().all(|value| path.join("/").contains(value)));
                        }
                        RouteMatch::OtherMethods(methods) => {
                            other += 1;
                            assert_eq!(expected, None, "round {round}: {method:?} {path:?} of {all:?}");
                            for method in Method::OF_ENDPOINTS {
                                let there = naive(&of(method), 0, &path).is_some();
                                assert_eq!(methods.contains(&method.as_str()), there, "{path:?} of {all:?}");
                            }
                        }
                        RouteMatch::Nothing => {
                            nothing += 1;
                            assert!(naive(&all, 0, &path).is_none(), "round {round}: {path:?} of {all:?}");
                        }
                    }
                }
            }
        }
        assert!(endpoint > 1_000 && other > 1_000 && nothing > 1_000, "{endpoint} {other} {nothing}");
    }
}
