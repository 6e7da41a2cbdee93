//! The description of one API request.

use bobbin_definitions::error::Code;
use bobbin_protocols::request::table;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// The schema of a type.
pub(super) type Of = fn(&mut SchemaGenerator) -> Schema;

const JSON: &str = "application/json";

/// Who may ask (docs/http.md, "Who may do what").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Whoever asks.
    Anybody,
    /// Who may read the thread.
    Thread,
    /// Its owner, or an administrator.
    Owner,
    /// Administrators.
    Admin,
    /// Who has the token of a link.
    Link,
}

impl Scope {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Scope::Anybody => "anybody",
            Scope::Thread => "thread",
            Scope::Owner => "owner",
            Scope::Admin => "admin",
            Scope::Link => "link",
        }
    }
}

/// What a request brings.
pub(super) struct Body {
    pub(super) required: bool,
    /// By content type.
    pub(super) content: Vec<(&'static str, Option<Of>)>,
}

/// What it is answered with.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) description: &'static str,
    /// By content type; empty where there is no body.
    pub(super) content: Vec<(&'static str, Option<Of>)>,
}

/// A request. What a refusal looks like is the same for all.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// The names of its query parameters.
    pub(super) parameters: &'static [&'static str],
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) scope: Scope,
    pub(super) summary: &'static str,
    pub(super) description: Option<&'static str>,
    /// Whether it takes an `Idempotency-Key`.
    pub(super) keyed: bool,
    pub(super) body: Option<Body>,
    pub(super) answers: Vec<Answer>,
    /// Those that are worth a client's attention.
    pub(super) errors: &'static [Code],
}

impl Operation {
    /// `line`: the method, and the path with `{names}`.
    pub(super) fn new(id: &'static str, scope: Scope, summary: &'static str) -> Operation {
        let row = table::all().find(|row| row.id == id);
        #[expect(clippy::expect_used, reason = "a tool of the build: the mistake is in its own list")]
        let row = row.expect("each operation describes a route of the table");
        Operation {
            method: row.method,
            path: row.path,
            parameters: row.parameters,
            id,
            tag: "",
            scope,
            summary,
            description: None,
            keyed: false,
            body: None,
            answers: Vec::new(),
            errors: &[],
        }
    }

    pub(super) fn says(mut self, description: &'static str) -> Operation {
        self.description = Some(description);
        self
    }

    pub(super) fn keyed(mut self) -> Operation {
        self.keyed = true;
        self
    }

    pub(super) fn takes<T: JsonSchema>(self) -> Operation {
        self.body(true, vec![(JSON, Some(schema_of::<T>))])
    }

    pub(super) fn may_take<T: JsonSchema>(self) -> Operation {
        self.body(false, vec![(JSON, Some(schema_of::<T>))])
    }

    pub(super) fn body(mut self, required: bool, content: Vec<(&'static str, Option<Of>)>) -> Operation {
        self.body = Some(Body { required, content });
        self
    }

    pub(super) fn gives<T: JsonSchema>(self, status: u16, description: &'static str) -> Operation {
        self.answers(status, description, vec![(JSON, Some(schema_of::<T>))])
    }

    pub(super) fn gives_nothing(self, status: u16, description: &'static str) -> Operation {
        self.answers(status, description, Vec::new())
    }

    pub(super) fn answers(
        mut self,
        status: u16,
        description: &'static str,
        content: Vec<(&'static str, Option<Of>)>,
    ) -> Operation {
        self.answers.push(Answer { status, description, content });
        self
    }

    pub(super) fn fails(mut self, errors: &'static [Code]) -> Operation {
        self.errors = errors;
        self
    }
}

/// What is no text: generators want a schema to know that there is a body.
pub(super) fn bytes(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "string", "format": "binary" })
}

/// The schema of a type, or a reference to it.
pub(super) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
