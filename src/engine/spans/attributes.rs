//! The attributes of spans: names and values of the conventions for generative AI, and our own.

use crate::definitions::budget::Unit;
use crate::definitions::model::Provider;
use crate::definitions::{Catalog, Implementation, Tier};
use crate::engine::calls::call::tier_of_call;
use crate::engine::memory::tools::is_of_memory;
use crate::engine::spans::content::Content;
use crate::engine::spans::facts::{Facts, LogEntry};
use crate::engine::spans::{AttributeValue, Span, SpanKind};
use crate::limits::WINDOW_TOKENS;
use crate::memory::log::PURPOSE as EMBEDDING;
use crate::store::receipts::{Kind, Receipt, ReceiptState};
use crate::store::runs::end::Outcome;
use crate::store::runs::ledger::BudgetScope;

const INPUT: &str = "gen_ai.usage.input_tokens";
const OUTPUT: &str = "gen_ai.usage.output_tokens";
const CACHED: &str = "gen_ai.usage.cache_read.input_tokens";
const REASONING: &str = "gen_ai.usage.reasoning.output_tokens";

/// Attributes of usage that the run sums over its requests.
pub(super) const TOKENS: [&str; 4] = [INPUT, OUTPUT, CACHED, REASONING];

/// Number of times that a limit was reached in a run.
pub(super) const EXCEEDED: &str = "bobbin.budget.exceeded";

/// Adds attributes to spans.
pub(crate) trait Annotator {
    fn run(&self, span: &mut Span, facts: &Facts);

    fn attempt(&self, span: &mut Span, facts: &Facts, attempt: &LogEntry);

    fn search(&self, span: &mut Span, facts: &Facts, search: &LogEntry);

    fn call(&self, span: &mut Span, facts: &Facts, call: &Receipt);

    fn mcp(&self, span: &mut Span, facts: &Facts, call: &Receipt);
}

/// Data for spans besides their rows: current definitions, and the deployment.
pub(crate) struct SpanDetails<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) deployment: &'a dyn Fn(&str) -> Option<String>,
    /// Texts, if the deployment exports them.
    pub(crate) content: Option<Content>,
}

impl Annotator for SpanDetails<'_> {
    fn run(&self, span: &mut Span, facts: &Facts) {
        let run = &facts.run;
        let title = self.catalog.agents.get(&facts.agent).and_then(|agent| agent.title.clone());
        span.name = format!("invoke_agent {}", facts.agent);
        common(span, facts, "invoke_agent");
        span.text("gen_ai.agent.id", Some(facts.agent.as_str()));
        span.text("gen_ai.agent.name", Some(title.as_deref().unwrap_or(&facts.agent)));
        span.text("gen_ai.agent.version", run.snapshot.as_deref());
        span.text("bobbin.side", Some(run.side.as_str()));
        span.number("bobbin.steps", Some(i64::from(run.step)));
        span.number("bobbin.depth", Some(i64::from(facts.depth)));
        if !facts.recoveries.is_empty() {
            span.number("bobbin.recovery", i64::try_from(facts.recoveries.len()).ok());
        }
        budget(span, facts);
        if let Some(content) = &self.content {
            span.text("gen_ai.input.messages", content.input.as_deref());
            span.text("gen_ai.output.messages", content.replies.get(&run.block).map(String::as_str));
        }
        let Some(end) = &run.end else { return };
        span.text("bobbin.outcome", Some(end.reason.outcome().as_str()));
        span.text("bobbin.reason", Some(end.reason.as_str()));
        if end.reason.outcome() == Outcome::Failed {
            span.fails(end.reason.as_str(), end.message.as_deref());
        }
    }

    fn attempt(&self, span: &mut Span, facts: &Facts, attempt: &LogEntry) {
        let model = attempt.text("model_name").and_then(|name| self.catalog.models.get(name));
        span.kind = SpanKind::Client;
        let embeds = attempt.purpose() == Some(EMBEDDING);
        common(span, facts, if embeds { "embeddings" } else { "chat" });
        span.text("bobbin.purpose", attempt.purpose());
        span.text("gen_ai.data_source.id", attempt.text("memory"));
        span.text("gen_ai.provider.name", model.map(|model| provider(&model.provider)));
        span.text("gen_ai.request.model", attempt.text("model"));
        span.number("gen_ai.request.max_tokens", attempt.number("max_tokens"));
        span.real("gen_ai.request.temperature", attempt.real("temperature"));
        span.real("gen_ai.request.top_p", attempt.real("top_p"));
        span.truth("gen_ai.request.stream", attempt.data.get("stream").and_then(serde_json::Value::as_bool));
        span.text("gen_ai.response.id", attempt.text("response_id"));
        span.text("gen_ai.response.model", attempt.text("response_model"));
        let finish = attempt.text("finish_reason").map(|reason| vec![reason.to_owned()]);
        span.attributes
            .extend(finish.map(|reasons| ("gen_ai.response.finish_reasons", AttributeValue::Texts(reasons))));
        let first = attempt.real("time_to_first_token_ms").map(|ms| ms / 1000.0);
        span.real("gen_ai.response.time_to_first_chunk", first);
        for (name, column) in
            TOKENS.into_iter().zip(["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"])
        {
            span.number(name, attempt.number(column));
        }
        let window = model
            .filter(|_| !embeds)
            .map(|model| model.capabilities.max_context_tokens.unwrap_or(WINDOW_TOKENS));
        let fills = window.and_then(|window| Some(attempt.real("input_tokens")? / window.max(1) as f64));
        span.real("bobbin.context.utilization", fills.filter(|part| *part > 0.0));
        span.real("bobbin.cost_usd", attempt.real("cost_total"));
        span.text("bobbin.model", attempt.text("model_name"));
        span.text("bobbin.prompt", attempt.text("prompt_name").filter(|name| !name.is_empty()));
        span.number("bobbin.attempt", attempt.number("attempt"));
        if let Some((host, port)) =
            model.and_then(|model| model.base_url(self.deployment)).and_then(|url| place(&url))
        {
            span.text("server.address", Some(host));
            span.number("server.port", port);
        }
        if attempt.text("status") == Some("failed") {
            span.fails(attempt.text("error_type").unwrap_or("_OTHER"), attempt.text("error"));
        } else if let (Some(content), Some(reply)) = (&self.content, attempt.reply) {
            span.text("gen_ai.output.messages", content.replies.get(&reply).map(String::as_str));
        }
    }

    fn search(&self, span: &mut Span, facts: &Facts, search: &LogEntry) {
        common(span, facts, "search_memory");
        span.text("gen_ai.data_source.id", search.text("memory"));
        span.number("gen_ai.memory.record.count", search.number("results"));
        span.text("bobbin.search.by", search.text("by"));
        let degraded = search.data.get("degraded").and_then(serde_json::Value::as_bool);
        span.text("bobbin.search.degraded", degraded.filter(|degraded| *degraded).map(|_| "true"));
        if search.text("status") == Some("failed") {
            span.fails("memory.unavailable", search.text("error"));
        }
    }

    fn call(&self, span: &mut Span, facts: &Facts, call: &Receipt) {
        let tool = self.catalog.tools.get(&call.name);
        let operation = if call.kind == Kind::Subagent { "invoke_agent" } else { "execute_tool" };
        span.name = format!("{operation} {}", call.name);
        common(span, facts, operation);
        if call.kind == Kind::Subagent {
            span.kind = SpanKind::Client;
            span.text("gen_ai.agent.name", Some(call.name.as_str()));
        }
        span.text("gen_ai.tool.name", Some(call.name.as_str()));
        span.text("gen_ai.tool.call.id", Some(call.call_id.as_str()));
        let kind = match tool {
            _ if call.kind == Kind::Mcp => "extension",
            Some(tool) if is_of_memory(tool) => "datastore",
            _ => "function",
        };
        span.text("gen_ai.tool.type", Some(kind));
        span.text("gen_ai.tool.description", tool.map(|tool| tool.description.as_str()));
        span.text("bobbin.tool.kind", Some(call.kind.as_str()));
        span.text("bobbin.tier", tier_of_call(self.catalog, call).map(Tier::as_str));
        span.text("bobbin.tool.state", Some(call.state.as_str()));
        span.number("bobbin.tool.runs", Some(call.runs).filter(|runs| *runs > 1));
        // Values of variables are not known here.
        let url = tool.and_then(|tool| match &tool.run {
            Implementation::Http(http) if !http.url.contains("{{") => Some(http.url.as_str()),
            _ => None,
        });
        if let Some((host, port)) = url.and_then(place) {
            span.text("server.address", Some(host));
            span.number("server.port", port);
        }
        if let Some((args, result)) = self.content.as_ref().and_then(|content| content.calls.get(&call.id)) {
            span.text("gen_ai.tool.call.arguments", args.as_deref());
            span.text("gen_ai.tool.call.result", result.as_deref());
        }
        ended(span, call);
    }

    fn mcp(&self, span: &mut Span, facts: &Facts, call: &Receipt) {
        let of = self.catalog.tools.get(&call.name).and_then(|tool| match &tool.run {
            Implementation::Mcp(of) => Some(of),
            _ => None,
        });
        let tool = of.map_or(call.name.as_str(), |of| of.tool.as_str());
        span.name = format!("tools/call {tool}");
        span.kind = SpanKind::Client;
        common(span, facts, "execute_tool");
        span.text("mcp.method.name", Some("tools/call"));
        span.text("gen_ai.tool.name", Some(tool));
        let server = of.and_then(|of| self.catalog.mcp.get(&of.server));
        span.text("bobbin.mcp.server", server.map(|server| server.name.as_str()));
        let url = server.map(|server| server.url.as_str()).filter(|url| !url.contains("{{"));
        if let Some((host, port)) = url.and_then(place) {
            span.text("server.address", Some(host));
            span.number("server.port", port);
        }
        ended(span, call);
    }
}

/// The error of a call, if it failed.
fn ended(span: &mut Span, call: &Receipt) {
    match (call.state, call.kind) {
        (ReceiptState::Failed, Kind::Refused) => span.fails("refused", call.error.as_deref()),
        (ReceiptState::Failed, _) => span.fails("tool_error", call.error.as_deref()),
        (ReceiptState::Indeterminate, _) => span.fails("indeterminate", call.error.as_deref()),
        _ => {}
    }
}

/// The budget of a run, its use, and the limits that it reached.
fn budget(span: &mut Span, facts: &Facts) {
    let usd = |micros: i64| micros as f64 / 1_000_000.0;
    if let Some(ledger) = &facts.run.ledger
        && let Some(limit) = ledger.cap(BudgetScope::Run, Unit::Cost)
    {
        span.real("bobbin.budget.limit_usd", Some(usd(limit)));
        span.real("bobbin.budget.spent_usd", Some(usd(ledger.used(facts.run.step).get(Unit::Cost))));
    }
    let count = |event: &str| facts.budgets.iter().filter(|row| row.text("event") == Some(event)).count();
    // A budget question that is denied also ends as exceeded, so the two count as one.
    let reached = count("asked").max(count("exceeded"));
    span.number(EXCEEDED, i64::try_from(reached).ok().filter(|reached| *reached > 0));
    for row in &facts.budgets {
        let told =
            ["event", "scope", "unit"].into_iter().zip(["bobbin.event", "bobbin.scope", "bobbin.unit"]);
        let told =
            told.filter_map(|(field, name)| Some((name, AttributeValue::Text(row.text(field)?.to_owned()))));
        span.event(row.at_us, "bobbin.budget", told.collect());
    }
}

fn common(span: &mut Span, facts: &Facts, operation: &str) {
    span.text("gen_ai.operation.name", Some(operation));
    span.text("gen_ai.conversation.id", Some(facts.thread.as_str()));
    span.text("bobbin.run", Some(facts.run.public_id()));
}

/// The name of a provider in the conventions.
fn provider(provider: &Provider) -> String {
    match provider {
        Provider::Openai | Provider::Anthropic | Provider::WorkersAi => provider.name().to_owned(),
        Provider::Demo | Provider::Registered(_) => format!("bobbin.{}", provider.name()),
    }
}

/// Host and port of a URL.
fn place(url: &str) -> Option<(String, Option<i64>)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host, port.parse().ok())
        }
        _ => (authority, None),
    };
    let usual = if scheme.eq_ignore_ascii_case("http") { 80 } else { 443 };
    (!host.is_empty()).then(|| (host.trim_matches(['[', ']']).to_owned(), port.or(Some(usual))))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_url_has_a_host_and_a_port() {
        for (url, host, port) in [
            ("https://api.example.com/v1", "api.example.com", 443),
            ("http://u:p@localhost:8080/x?y", "localhost", 8080),
            ("http://[::1]:9/", "::1", 9),
        ] {
            assert_eq!(place(url), Some((host.to_owned(), Some(port))), "{url}");
        }
        assert_eq!(place("nowhere"), None);
    }
}
