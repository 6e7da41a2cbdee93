//! Rows of the table of routes, and the search in them.

use bobbin_definitions::error::{Code, Error, Result};

use crate::request::BodyRule;

/// A route: a method, a path, and everything that holds for its requests.
pub struct Row<R: 'static> {
    /// `GET`, `POST`, …
    pub method: &'static str,
    /// From the root. `{name}` stands for one segment, and [`REST`] at the end for one or more.
    pub path: &'static str,
    /// Its name in the description of the API (`operationId`).
    pub id: &'static str,
    /// The query parameters that it knows. Others are refused, because they would otherwise be ignored
    /// silently.
    pub parameters: &'static [&'static str],
    /// What it accepts as its body.
    pub body: BodyRule,
    make: fn(&mut Ids) -> R,
}

/// The last part of a path that takes all remaining segments.
const REST: &str = "{path}";

/// The segments that stand for the names in a path, in order.
pub struct Ids(std::vec::IntoIter<String>);

impl Ids {
    /// The next segment; empty in the example of a row.
    pub(super) fn take(&mut self) -> String {
        self.0.next().unwrap_or_default()
    }
}

impl<R> Row<R> {
    const fn new(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        make: fn(&mut Ids) -> R,
    ) -> Row<R> {
        Row { method, path, id, parameters: &[], body: BodyRule::Ignored, make }
    }

    pub(super) const fn get(path: &'static str, id: &'static str, make: fn(&mut Ids) -> R) -> Row<R> {
        Row::new("GET", path, id, make)
    }

    pub(super) const fn head(path: &'static str, id: &'static str, make: fn(&mut Ids) -> R) -> Row<R> {
        Row::new("HEAD", path, id, make)
    }

    pub(super) const fn post(path: &'static str, id: &'static str, make: fn(&mut Ids) -> R) -> Row<R> {
        Row::new("POST", path, id, make)
    }

    pub(super) const fn put(path: &'static str, id: &'static str, make: fn(&mut Ids) -> R) -> Row<R> {
        Row::new("PUT", path, id, make)
    }

    pub(super) const fn patch(path: &'static str, id: &'static str, make: fn(&mut Ids) -> R) -> Row<R> {
        Row::new("PATCH", path, id, make)
    }

    pub(super) const fn delete(path: &'static str, id: &'static str, make: fn(&mut Ids) -> R) -> Row<R> {
        Row::new("DELETE", path, id, make)
    }

    /// Names the query parameters.
    pub(super) const fn query(self, parameters: &'static [&'static str]) -> Row<R> {
        Row { parameters, ..self }
    }

    /// Sets the rule for bodies.
    pub(super) const fn body(self, body: BodyRule) -> Row<R> {
        Row { body, ..self }
    }

    /// Whether a request only reads, by its method.
    pub(super) fn reads(&self) -> bool {
        matches!(self.method, "GET" | "HEAD")
    }

    /// The route with empty names, to compare kinds.
    pub(super) fn example(&self) -> R {
        (self.make)(&mut Ids(Vec::new().into_iter()))
    }

    fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.path.trim_start_matches('/').split('/')
    }

    fn matches(&self, segments: &[&str]) -> bool {
        let mut given = segments.iter();
        for part in self.parts() {
            match given.next() {
                Some(_) if part == REST => return true,
                Some(segment) if part.starts_with('{') || part == *segment => {}
                _ => return false,
            }
        }
        given.next().is_none()
    }

    fn route(&self, segments: &[&str]) -> R {
        let mut ids = Vec::new();
        for (part, at) in self.parts().zip(0..) {
            let rest = segments.get(at..).unwrap_or_default();
            match part {
                REST => ids.push(rest.join("/")),
                name if name.starts_with('{') => ids.extend(rest.first().map(|id| (*id).to_owned())),
                _ => {}
            }
        }
        (self.make)(&mut Ids(ids.into_iter()))
    }
}

/// The route of a request; `None` if no row has its path. The first path that matches counts: one without
/// names comes before one with names.
///
/// # Errors
/// `method_not_allowed`, with the methods of the path as hint.
pub(super) fn find<R>(
    rows: &'static [Row<R>],
    method: &str,
    segments: &[&str],
) -> Result<Option<(R, &'static Row<R>)>> {
    let Some(first) = rows.iter().find(|row| row.matches(segments)) else { return Ok(None) };
    let mut same = rows.iter().filter(|row| row.path == first.path);
    match same.clone().find(|row| row.method == method) {
        Some(row) => Ok(Some((row.route(segments), row))),
        None => {
            let allowed: Vec<&str> = same.by_ref().map(|row| row.method).collect();
            Err(not_allowed(method, &allowed.join(", ")))
        }
    }
}

/// The error for a method that a path does not have.
pub fn not_allowed(method: &str, allowed: &str) -> Error {
    Error::new(Code::MethodNotAllowed, format!("{method} is not possible here."))
        .hint(format!("Allowed: {allowed}."))
}
