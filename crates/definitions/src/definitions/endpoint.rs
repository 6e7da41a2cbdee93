//! Custom endpoints of a thread (spec §26): what runs, and the route that it answers, which follows from the name of the
//! file.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::definitions::tool::Implementation;
use crate::definitions::variable::Variable;

/// The first segments below a thread that belong to the runtime: its routes, and those that are to come. `ThreadRoute::of`
/// looks here before it looks at its own routes, so none of them can be missing.
pub const RESERVED: [&str; 34] = [
    "approvals",
    "attachments",
    "bridge",
    "budget",
    "chat",
    "context",
    "continue",
    "cost",
    "diagnostics",
    "effects",
    "env",
    "events",
    "export",
    "fork",
    "fs",
    "kv",
    "logs",
    "memory",
    "messages",
    "pending-tool-calls",
    "revive",
    "rpc",
    "runs",
    "scratchpad",
    "steps",
    "stop",
    "stream",
    "subagents",
    "terminate",
    "tool-result",
    "trace",
    "uploads",
    "variables",
    "waits",
];

/// A custom endpoint: an implementation for a route below a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Endpoint {
    /// The endpoint's purpose, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The implementation that runs.
    pub run: Implementation,
    /// The time limit of a request, in milliseconds, at most 600,000. After it the request fails. Default:
    /// 60,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The variables that the endpoint needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    Get,
    /// Reads without a body; no endpoint has it, those for GET answer it.
    Head,
    /// Anything else.
    Post,
    /// Puts something in a place.
    Put,
    /// Changes something.
    Patch,
    /// Takes something away.
    Delete,
}

impl Method {
    /// Those that an endpoint may have.
    pub const OF_ENDPOINTS: [Method; 5] =
        [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete];

    /// As it stands in a request: `GET`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    /// The method of that name, as it stands in a request.
    pub fn of(name: &str) -> Option<Method> {
        [Method::Head].into_iter().chain(Method::OF_ENDPOINTS).find(|method| method.as_str() == name)
    }

    /// Whether a request only reads.
    pub const fn reads(self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }

    /// The method of the endpoint that answers.
    #[must_use]
    pub const fn answered_by(self) -> Method {
        match self {
            Method::Head => Method::Get,
            other => other,
        }
    }
}

/// A step of an endpoint's path. What is said more precisely comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// This text.
    Static(String),
    /// Any one segment that is not empty: `[name]`.
    Parameter(String),
    /// Any number of segments, none too: `[*]`. Always the last one.
    Rest,
}

/// What an endpoint answers: `GET /reports/[day]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EndpointRoute {
    /// The method, never HEAD.
    pub method: Method,
    /// The path below the thread; empty for the thread itself.
    pub path: Vec<Segment>,
}

impl EndpointRoute {
    /// The route that a file's name says (spec §26.2). `file` is the path below `agents/api`, with `/`, without `.json`.
    ///
    /// # Errors
    /// Everything that is wrong with the name.
    pub fn of_file(file: &str) -> Result<EndpointRoute, Vec<String>> {
        let mut wrong = Vec::new();
        let (folder, file) = match file.rsplit_once('/') {
            Some((folder, file)) => (Some(folder), file),
            None => (None, file),
        };
        let (stem, method) = match file.rsplit_once('.') {
            Some((stem, suffix)) if !file.ends_with(']') => (stem, of_suffix(suffix, &mut wrong)),
            _ => (file, Method::Get),
        };
        let names = folder.into_iter().flat_map(|folder| folder.split('/'));
        let names = names.chain((stem != "index").then_some(stem));
        let path = names.filter_map(|name| segment(name).map_err(|error| wrong.push(error)).ok()).collect();
        let route = EndpointRoute { method, path };
        wrong.extend(route.wrong());
        if wrong.is_empty() { Ok(route) } else { Err(wrong) }
    }

    /// What is wrong with the segments together.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let before_last = self.path.len().saturating_sub(1);
        if self.path.iter().take(before_last).any(|segment| *segment == Segment::Rest) {
            wrong.push("`[*]` takes everything that follows, so it can only be the last segment".to_owned());
        }
        let mut seen = BTreeSet::new();
        for segment in &self.path {
            if let Segment::Parameter(name) = segment
                && !seen.insert(name)
            {
                wrong.push(format!("the parameter `[{name}]` is there twice; give each a name of its own"));
            }
        }
        wrong
    }

    /// The route of the runtime's own that this one would hide, if it would. One that begins with a parameter hides
    /// none: the runtime's come first.
    pub fn hides(&self) -> Option<String> {
        let thread = [Method::Get, Method::Patch, Method::Delete];
        match self.path.first() {
            Some(Segment::Static(first)) if is_reserved(first) => Some(format!("/{first}")),
            None if thread.contains(&self.method) => Some(format!("{} /", self.method.as_str())),
            _ => None,
        }
    }

    /// The route without the names of its parameters: two of the same shape answer the same requests.
    pub fn shape(&self) -> String {
        let nameless = |segment: &Segment| match segment {
            Segment::Parameter(_) => Segment::Parameter(String::new()),
            other => other.clone(),
        };
        EndpointRoute { method: self.method, path: self.path.iter().map(nameless).collect() }.to_string()
    }
}

/// Whether a first segment below a thread belongs to the runtime.
pub fn is_reserved(first: &str) -> bool {
    RESERVED.contains(&first)
}

fn of_suffix(suffix: &str, wrong: &mut Vec<String>) -> Method {
    let method = Method::OF_ENDPOINTS.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(suffix));
    method.unwrap_or_else(|| {
        let hint = match suffix.to_ascii_lowercase().as_str() {
            "head" => "HEAD is answered by the endpoint for GET",
            "options" => "the runtime answers OPTIONS",
            _ => "there are .get, .post, .put, .patch and .delete; a path that has a dot needs one of them after it",
        };
        wrong.push(format!("`.{suffix}` is no method; {hint}"));
        Method::Get
    })
}

fn segment(text: &str) -> Result<Segment, String> {
    if text.is_empty() {
        return Err("a segment of the path is empty".to_owned());
    }
    let Some(name) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        if text.contains(['[', ']', '/']) || text.contains(char::is_control) {
            return Err(format!(
                "`{text}` is no segment: it is a text, or a parameter in brackets that fills it wholly"
            ));
        }
        return Ok(Segment::Static(text.to_owned()));
    };
    if name == "*" {
        return Ok(Segment::Rest);
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || !name.chars().all(word) {
        return Err(format!(
            "`[{name}]` is no parameter: its name has letters, digits, _ and -, and begins with a letter or _"
        ));
    }
    Ok(Segment::Parameter(name.to_owned()))
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Static(text) => f.write_str(text),
            Segment::Parameter(name) => write!(f, "[{name}]"),
            Segment::Rest => f.write_str("[*]"),
        }
    }
}

impl fmt::Display for EndpointRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.method.as_str())?;
        if self.path.is_empty() {
            return f.write_str("/");
        }
        self.path.iter().try_for_each(|segment| write!(f, "/{segment}"))
    }
}

impl FromStr for EndpointRoute {
    type Err = String;

    fn from_str(text: &str) -> Result<EndpointRoute, String> {
        let no_route = || format!("`{text}` is no route of an endpoint");
        let (method, path) = text.split_once(" /").ok_or_else(no_route)?;
        let method = Method::of(method).filter(|method| *method != Method::Head).ok_or_else(no_route)?;
        let names = path.split('/').filter(|_| !path.is_empty());
        let route = EndpointRoute { method, path: names.map(segment).collect::<Result<_, _>>()? };
        match route.wrong().pop() {
            Some(wrong) => Err(wrong),
            None => Ok(route),
        }
    }
}

impl TryFrom<String> for EndpointRoute {
    type Error = String;

    fn try_from(text: String) -> Result<EndpointRoute, String> {
        text.parse()
    }
}

impl From<EndpointRoute> for String {
    fn from(route: EndpointRoute) -> String {
        route.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_says_its_route() {
        for (file, route) in [
            ("health", "GET /health"),
            ("health.get", "GET /health"),
            ("import.post", "POST /import"),
            ("import.POST", "POST /import"),
            ("import.Put", "PUT /import"),
            ("a.patch", "PATCH /a"),
            ("a.delete", "DELETE /a"),
            ("index", "GET /"),
            ("index.post", "POST /"),
            ("reports/index", "GET /reports"),
            ("reports/index.delete", "DELETE /reports"),
            ("reports/[day]", "GET /reports/[day]"),
            ("reports/[day].post", "POST /reports/[day]"),
            ("reports/[*]", "GET /reports/[*]"),
            ("[*].put", "PUT /[*]"),
            ("[a]/[b]/c", "GET /[a]/[b]/c"),
            ("v1.2/health", "GET /v1.2/health"),
            ("a b/ü", "GET /a b/ü"),
            ("Index", "GET /Index"),
            ("index/index", "GET /index"),
        ] {
            let parsed = EndpointRoute::of_file(file).unwrap();
            assert_eq!(parsed.to_string(), route, "{file}");
            assert_eq!(route.parse(), Ok(parsed), "{file}");
        }
    }

    #[test]
    fn everything_that_is_wrong_with_a_name_is_told() {
        for (file, told) in [
            ("a.pots", vec!["`.pots` is no method; there are"]),
            ("a.head", vec!["`.head` is no method; HEAD is answered by the endpoint for GET"]),
            ("a.options", vec!["the runtime answers OPTIONS"]),
            ("sitemap.xml", vec!["`.xml` is no method"]),
            ("sitemap.xml.get", vec![]),
            ("[*]/a", vec!["`[*]` takes everything"]),
            ("[*]/[*]", vec!["`[*]` takes everything"]),
            ("[a]/b/[a]", vec!["`[a]` is there twice"]),
            ("[a]/[a]/[a]", vec!["twice", "twice"]),
            ("[]", vec!["`[]` is no parameter"]),
            ("[1a]", vec!["`[1a]` is no parameter"]),
            ("[a.b]", vec!["`[a.b]` is no parameter"]),
            ("[a b].post", vec!["`[a b]` is no parameter"]),
            ("[...a]", vec!["`[...a]` is no parameter"]),
            ("x[a]", vec!["`x[a]` is no segment"]),
            ("[a", vec!["`[a` is no segment"]),
            ("a//b", vec!["empty"]),
            ("/a", vec!["empty"]),
            ("a/", vec!["empty"]),
            ("", vec!["empty"]),
            (".post", vec!["empty"]),
            ("a\u{7}", vec!["is no segment"]),
            ("[*]/[a]/[a]/x[y].pst", vec!["`.pst`", "`x[y]`", "`[*]`", "`[a]`"]),
        ] {
            let wrong = EndpointRoute::of_file(file).err().unwrap_or_default();
            assert_eq!(wrong.len(), told.len(), "{file}: {wrong:?}");
            for (wrong, told) in wrong.iter().zip(told) {
                assert!(wrong.contains(told), "{file}: {wrong}");
            }
        }
    }

    #[test]
    fn what_is_no_route_is_refused() {
        for text in
            ["", "GET", "GET a", "HEAD /a", "get /a", "GET //a", "GET /a/", "GET /[*]/a", "GET /[a]/[a]"]
        {
            assert!(text.parse::<EndpointRoute>().is_err(), "{text}");
        }
    }

    #[test]
    fn shapes_are_routes_without_the_names_of_parameters() {
        let shape = |text: &str| text.parse::<EndpointRoute>().unwrap().shape();
        assert_eq!(shape("GET /a/[b]/c"), shape("GET /a/[x]/c"));
        assert_ne!(shape("GET /a/[b]/c"), shape("POST /a/[b]/c"));
        assert_ne!(shape("GET /a/[b]"), shape("GET /a/[*]"));
    }

    #[test]
    fn only_a_static_segment_hides_a_route_of_the_runtime() {
        let hides = |text: &str| text.parse::<EndpointRoute>().unwrap().hides();
        for text in
            ["GET /[a]", "GET /[*]", "PUT /", "POST /", "GET /[a]/messages", "GET /a/messages", "GET /Kv"]
        {
            assert_eq!(hides(text), None, "{text}");
        }
        for method in ["GET", "PATCH", "DELETE"] {
            assert_eq!(hides(&format!("{method} /")), Some(format!("{method} /")));
        }
        for name in RESERVED {
            assert_eq!(hides(&format!("PUT /{name}/x")), Some(format!("/{name}")));
        }
    }
}
