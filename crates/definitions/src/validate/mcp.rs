//! MCP servers, and entries of prompts for a server's tools. The compiler checks the lists of servers when it
//! reads them.

use serde_json::Value;

use crate::definitions::mcp::{DEFAULT, McpAuth, McpChoice, McpList, McpServer, is_loopback};
use crate::definitions::package::SEPARATOR;
use crate::definitions::prompt::{Prompt, ToolEntry};
use crate::definitions::references::Kind;
use crate::definitions::template;
use crate::definitions::tool::{Implementation, Tool};
use crate::limits::HTTP_TOOL_MAX_MS;
use crate::names::{hint, wrong_server};
use crate::validate::{Check, Subject};

/// Prefix of a reference to a tool of a model's provider (spec §4).
const OF_PROVIDER: &str = "provider:";

/// Headers that the protocol or the platform sets.
const OWN_HEADERS: [&str; 15] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "origin",
    "traceparent",
    "transfer-encoding",
    "tracestate",
];

impl Check<'_> {
    pub(super) fn servers(&mut self) {
        for (name, server) in &self.catalog.mcp {
            let at = Subject { kind: Kind::Mcp, name };
            self.server_name(at);
            self.address(at, "url", &server.url);
            self.headers(at, "headers", &server.headers, &OWN_HEADERS);
            for header in
                server.headers.keys().filter(|name| name.to_ascii_lowercase().starts_with("mcp-param-"))
            {
                self.error(at, format!("headers.{header}"), "the runtime sets this header itself");
            }
            if server.timeout_ms.is_some_and(|ms| ms == 0 || ms > HTTP_TOOL_MAX_MS) {
                self.error(at, "timeoutMs", format!("must be from 1 to {HTTP_TOOL_MAX_MS} (ten minutes)"));
            }
            self.variables(at, &server.variables);
            self.policy(at, &server.retry);
            for (tool, approval) in &server.approval {
                let is_it = |known: &&Tool| matches!(&known.run, Implementation::Mcp(of) if of.server == *name && of.tool == *tool);
                let args = self.catalog.tools.values().find(is_it).and_then(|tool| tool.args.as_ref());
                let args = args.filter(|_| tool != DEFAULT);
                self.approval(at, &format!("approval.{tool}"), approval, args);
            }
            let scrub =
                server.scrub.iter().flat_map(|scrub| scrub.problems(Some(&self.catalog.settings.scrub)));
            for (inner, message) in scrub.collect::<Vec<_>>() {
                self.error(at, format!("scrub.{inner}"), message);
            }
            if let Some(McpChoice::Allow(names)) = &server.tools
                && names.is_empty()
            {
                self.error(at, "tools.allow", "allows none of its tools: leave it out to have all of them");
            }
            if let Some(auth) = &server.auth {
                self.auth(at, server, auth);
            }
            for (tool, arguments) in &server.provide {
                for (argument, value) in arguments {
                    self.provided(at, &format!("provide.{tool}.{argument}"), value);
                }
            }
            self.undeclared(at, server);
        }
    }

    fn server_name(&mut self, at: Subject<'_>) {
        let packages = &self.catalog.packages;
        let own = match packages.of(at.name) {
            Some(_) => at.name.split_once(SEPARATOR).map_or(at.name, |(_, own)| own),
            None => at.name,
        };
        if let Some(wrong) = wrong_server(own) {
            self.error(at, "name", wrong);
        }
        if packages.0.contains_key(at.name) {
            let text = format!("\"{own}\" is the id of a package: names of its tools would be the package's");
            self.error(at, "name", text);
        }
    }

    /// Checks a URL that receives values of variables.
    fn address(&mut self, at: Subject<'_>, field: &str, url: &str) {
        self.url(at, field, url);
        if url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://")) && !is_loopback(url) {
            self.error(at, field, "must be https; only a server on this machine can be http, in development");
        }
    }

    fn auth(&mut self, at: Subject<'_>, server: &McpServer, auth: &McpAuth) {
        if let Some(header) = server.headers.keys().find(|name| name.eq_ignore_ascii_case("authorization")) {
            self.error(at, format!("headers.{header}"), "`auth` sets this header");
        }
        let (id, secret, issuer) = match auth {
            McpAuth::Oauth { client_id, client_secret, issuer, .. } => {
                if client_secret.is_some() && client_id.is_none() {
                    self.error(at, "auth.clientId", "missing: `clientSecret` belongs to one");
                }
                (client_id.as_ref(), client_secret.as_ref(), issuer)
            }
            McpAuth::ClientCredentials { client_id, client_secret, issuer, .. } => {
                (Some(client_id), Some(client_secret), issuer)
            }
        };
        for (field, text) in [("auth.clientId", id), ("auth.clientSecret", secret)] {
            if let Some(text) = text {
                self.template(at, field, text);
                if text.trim().is_empty() {
                    self.error(at, field, "is empty");
                }
            }
        }
        if secret.is_some_and(|secret| template::names(secret).is_empty()) {
            self.error(
                at,
                "auth.clientSecret",
                "no secret stands in a file: name a variable, as `{{env NAME}}`",
            );
        }
        if let Some(issuer) = issuer {
            self.address(at, "auth.issuer", issuer);
        }
    }

    fn provided(&mut self, at: Subject<'_>, field: &str, value: &Value) {
        match value {
            Value::String(text) => self.template(at, field, text),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.provided(at, &format!("{field}[{index}]"), item);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.provided(at, &format!("{field}.{name}"), value);
                }
            }
            _ => {}
        }
    }

    /// Reports names that are used but not declared in `variables`: nobody would be asked for their values.
    fn undeclared(&mut self, at: Subject<'_>, server: &McpServer) {
        let known: Vec<&str> = server.variables.iter().map(|variable| variable.name.as_str()).collect();
        for (field, name) in server.named_values() {
            if !known.contains(&name) {
                let hint = hint(name, &known);
                self.error(at, field, format!("\"{name}\" is not among its `variables`{hint}"));
            }
        }
    }

    /// Whether an entry is for tools of a server, or of a provider; also checks it.
    pub(super) fn of_server(&mut self, at: Subject<'_>, field: &str, entry: &ToolEntry) -> bool {
        let Some(name) = entry.mcp() else {
            if entry.tools.is_some() {
                let text = "is for tools of an MCP server: `{ \"mcp\": NAME, \"tools\": [...] }`";
                self.error(at, format!("{field}.tools"), text);
            }
            if let Some(tool) = entry.name.strip_prefix(OF_PROVIDER) {
                let text = format!(
                    "\"{tool}\" would be a tool that the model's provider runs itself, unseen by approvals, budgets and crashes of this runtime: \
                     none is. The same can be had of an MCP server (`mcp/NAME.json`), or of a tool of your own (`run.http`)"
                );
                self.error(at, field, text);
                return true;
            }
            if entry.name.is_empty() {
                self.error(at, format!("{field}.name"), "required but missing");
                return true;
            }
            return false;
        };
        self.reference(at, field, Kind::Mcp, name);
        let Some(server) = self.catalog.mcp.get(name) else { return true };
        for (index, tool) in entry.tools.iter().flatten().enumerate() {
            if !server.offers(tool) {
                let text = format!("\"{tool}\" is not among the tools that the server's file allows");
                self.error(at, format!("{field}.tools[{index}]"), text);
            }
        }
        let others = ToolEntry {
            env: entry.env.clone(),
            tools: entry.tools.clone(),
            ..ToolEntry::unlisted(&entry.name)
        };
        if others != *entry {
            self.error(at, field, "tools of an MCP server take `env` and `tools`, and nothing beside them");
        }
        true
    }

    /// Whether a prompt may offer a tool whose server is listed at the first step of a run.
    pub(super) fn offers_live(&self, prompt: &Prompt, tool: &str) -> bool {
        prompt.tools.iter().any(|entry| {
            let server = entry.mcp().and_then(|name| self.catalog.mcp.get(name));
            server.is_some_and(|server| {
                let named = entry.tools.as_ref();
                (server.list == McpList::Live || server.pinned.is_none())
                    && server.own_name(tool).is_some()
                    && named.is_none_or(|names| names.iter().any(|own| server.may_be_called(own, tool)))
            })
        })
    }
}
