//! Function tools.

use std::collections::BTreeMap;

use crate::definitions::references::Kind;
use crate::definitions::schema;
use crate::definitions::tier::may_repeat;
use crate::definitions::tool::{Http, Implementation, Tier, is_header_name};
use crate::limits::HTTP_TOOL_MAX_MS;
use crate::names::{hint, taken, wrong_callable};
use crate::validate::{Check, Subject};

/// Headers that the runtime or the platform sets.
const OWN_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "traceparent",
    "transfer-encoding",
    "x-bobbin-signature",
];

impl Check<'_> {
    pub(super) fn tools(&mut self) {
        for (name, tool) in &self.catalog.tools {
            let at = Subject { kind: Kind::Tool, name };
            // Added by the runtime, without a file.
            let added = !self.sources.has(Kind::Tool, name)
                && matches!(&tool.run, Implementation::Native(native) if native == name);
            if added && taken(name).is_some() {
                continue;
            }
            // Defined by its server's file, or by the server.
            if let Implementation::Mcp(of) = &tool.run {
                self.reference(at, "run.mcp.server", Kind::Mcp, &of.server);
                continue;
            }
            if let Some(wrong) = wrong_callable(name) {
                self.error(at, "name", wrong);
            }
            if tool.description.trim().is_empty() {
                self.error(at, "description", "empty: a model cannot know when to use the tool");
            }
            if let Some(args) = &tool.args {
                self.schema(at, "args", args);
            }
            self.run(at, &tool.run, &self.natives.tools, tool.timeout_ms);
            self.policy(at, &tool.retry);
            if !tool.retry.is_empty() && !may_repeat(tool) {
                let text = "only a call that may safely be made again is retried: declare the tool `idempotent` if it is";
                self.error(at, "retry", text);
            }
            if tool.tier == Some(Tier::ReadOnly) && tool.idempotent == Some(false) {
                let text = "a call that changes nothing can always be made again: leave this out, or give the tool another `tier`";
                self.error(at, "idempotent", text);
            }
            self.variables(at, &tool.variables);
            if let Some(approval) = &tool.approval {
                self.approval(at, "approval", approval, tool.args.as_ref());
            }
            let scrub =
                tool.scrub.iter().flat_map(|scrub| scrub.problems(Some(&self.catalog.settings.scrub)));
            for (inner, message) in scrub.collect::<Vec<_>>() {
                self.error(at, format!("scrub.{inner}"), message);
            }
        }
    }

    /// Checks an implementation. `natives`: the names that it may use.
    pub(super) fn run(
        &mut self,
        at: Subject<'_>,
        run: &Implementation,
        natives: &[&str],
        timeout_ms: Option<u64>,
    ) {
        match run {
            Implementation::Native(native) => self.native(at, native, natives),
            Implementation::Http(http) => self.http(at, http),
            Implementation::Code(code) => self.code(at, code),
            Implementation::Client(client) if at.kind == Kind::Tool => {
                self.seconds(at, "run.client.expiresAfterSeconds", client.expires_after_seconds);
            }
            Implementation::Mcp(_) => {
                let text = "tools of MCP servers are made of the server's own list: see docs/mcp.md";
                self.error(at, "run.mcp", text);
            }
            Implementation::Client(_) => {
                self.error(
                    at,
                    "run.client",
                    "only a tool can be carried out by the client: nobody answers this one",
                );
            }
        }
        if timeout_ms.is_some_and(|ms| ms == 0 || ms > HTTP_TOOL_MAX_MS) {
            self.error(at, "timeoutMs", format!("must be from 1 to {HTTP_TOOL_MAX_MS} (ten minutes)"));
        }
    }

    pub(super) fn schema(&mut self, at: Subject<'_>, field: &str, schema: &serde_json::Value) {
        for problem in schema::check(schema) {
            let field =
                if problem.path.is_empty() { field.to_owned() } else { format!("{field}.{}", problem.path) };
            self.error(at, field, problem.message);
        }
    }

    /// An unknown native is only a warning, because a crate that embeds the Worker may register it.
    fn native(&mut self, at: Subject<'_>, native: &str, natives: &[&str]) {
        if self.natives.complete && !natives.contains(&native) {
            let hint = hint(native, natives);
            self.warning(at, "run.native", format!("this build has no native \"{native}\"{hint}"));
        }
    }

    fn http(&mut self, at: Subject<'_>, http: &Http) {
        self.url(at, "run.http.url", &http.url);
        self.headers(at, "run.http.headers", &http.headers, &OWN_HEADERS);
    }

    /// Checks headers of requests. `own`: those that the runtime sets.
    pub(super) fn headers(
        &mut self,
        at: Subject<'_>,
        within: &str,
        headers: &BTreeMap<String, String>,
        own: &[&str],
    ) {
        for (header, value) in headers {
            let field = format!("{within}.{header}");
            if own.contains(&header.to_ascii_lowercase().as_str()) {
                self.error(at, &field, "the runtime sets this header itself");
            } else if !is_header_name(header) {
                self.error(at, &field, format!("\"{header}\" cannot name a header"));
            }
            if value.contains(['\r', '\n', '\0']) {
                self.error(at, &field, "a header is a single line");
            }
            self.template(at, &field, value);
        }
    }
}
