//! Diagnostics of a run. The requirements are checked when the run begins, without a request and without a
//! statement. Later problems are added where they occur. A strict run ends if a requirement is missing; other
//! runs continue (docs/runs.md).

use crate::definitions::budget::{Unit, Unpriced};
use crate::definitions::hook::Hook;
use crate::definitions::subagent::is_tool;
use crate::definitions::{Callable, Implementation, McpTool, Model, Strictness, Tool, ToolEntry};
use crate::engine::definitions::Definitions;
use crate::engine::features::Diagnosis;
use crate::error::Result;
use crate::host::Sql;
use crate::store::memory::refusals::Refusal;
use crate::store::meta;
use crate::store::runs::diagnostics::{Diagnostic, Kind};
use crate::store::runs::end::{Outcome, Reason};
use crate::store::runs::ledger::{BudgetScope, Ledger};
use crate::store::runs::{Phase, Run};
use crate::store::state::State;
use crate::work;

/// The diagnostic for an entry that a memory refused.
fn refusal_diagnostic(refusal: &Refusal, now: i64) -> Diagnostic {
    let Refusal { memory, code, n, text } = refusal;
    let text = match n {
        1 => text.clone(),
        n => format!("{n} times, the last one: {text}"),
    };
    Diagnostic::warning(Kind::Adapter, code, ("memory", memory), text, now)
}

/// The problems found by the check of a run.
struct Findings {
    now: i64,
    found: Vec<Diagnostic>,
}

impl Findings {
    fn add(&mut self, kind: Kind, code: &str, subject: (&str, &str), message: String) {
        self.found.push(Diagnostic::warning(kind, code, subject, message, self.now));
    }

    fn lacks(&mut self, code: &str, subject: (&str, &str), message: String) {
        self.add(Kind::Requirement, code, subject, message);
    }
}

impl Diagnosis<'_> {
    /// Checks the requirements of a run that begins. Returns why it ends, if it is strict and lacks
    /// something.
    pub(super) fn run_diagnostics(&self, definitions: &Definitions<'_>) -> Result<Option<String>> {
        let (begins, strict, env_known) = self.read(|state, _| {
            let run = state.active().filter(|run| run.step == 0 && run.phase == Phase::Start);
            let strict = run.is_some_and(|run| self.is_strict(definitions, run, None));
            Ok((run.is_some(), strict, state.env.is_some() || state.meta.env == 0))
        })?;
        if !begins {
            return Ok(None);
        }
        let mut findings = Findings { now: self.host.now_us(), found: Vec::new() };
        self.check_models(definitions, &mut findings);
        self.check_model_prices(definitions, &mut findings)?;
        self.check_memories(definitions, &mut findings);
        // Values that are not loaded yet are loaded for strict runs only.
        self.look_at_tools(definitions, strict || env_known, &mut findings);
        self.check_hooks(definitions, strict || env_known, &mut findings);
        // Other runs note missing skills at the model request, with a row of the log.
        if strict {
            self.check_skills(definitions, &mut findings)?;
        }
        let Findings { found, .. } = findings;
        let known = self.read(|state, _| Ok(state.active().map_or(0, |run| run.diagnostics.len())))?;
        if found.is_empty() && known == 0 {
            return Ok(None);
        }
        // The row is written when the first step opens, or at the end of the run.
        self.read_mut(|state, _| {
            let run = state.active_mut()?;
            run.diagnostics.forget_requirements();
            for entry in found {
                run.diagnostics.add(entry);
            }
            Ok(if strict { ends(run) } else { None })
        })
    }

    /// The outcome of a step. In a strict run that lacks something the run fails, unless it has failed
    /// already.
    pub(super) fn held_strictly(
        &self,
        definitions: &Definitions<'_>,
        state: &mut State,
        ended: Option<(Reason, Option<String>)>,
    ) -> Result<Option<(Reason, Option<String>)>> {
        let run = state.active_mut()?;
        if run.diagnostics.len() == 0 || !self.is_strict(definitions, run, Some(run.block)) {
            return Ok(ended);
        }
        if ended.as_ref().is_some_and(|(reason, _)| reason.outcome() != Outcome::Completed) {
            return Ok(ended);
        }
        Ok(ends(run).map(|text| (Reason::StrictDiagnostics, Some(text))).or(ended))
    }

    /// Whether a run is strict: by the settings, its agent, or a message below this seq that it has taken in.
    fn is_strict(&self, definitions: &Definitions<'_>, run: &Run, below: Option<i64>) -> bool {
        self.catalog.settings.diagnostics == Strictness::Strict
            || definitions.agent.diagnostics == Strictness::Strict
            || run.diagnostics.is_strict(below)
    }

    /// Adds the work that was given up between runs to a new run's diagnostics. It is reported once.
    pub(super) fn with_given_up(&self, state: &mut State, sql: &dyn Sql, mut run: Run) -> Result<Run> {
        let spans = std::mem::take(&mut state.meta.dropped);
        if spans > 0 {
            meta::set_dropped(sql, 0)?;
            let text = format!("The collector was not told of {spans} spans of earlier runs.");
            let now = self.host.now_us();
            run.diagnostics.add(Diagnostic::warning(
                Kind::Adapter,
                "export.dropped",
                ("job", "export"),
                text,
                now,
            ));
        }
        for refusal in self.memories().take_refusals(state, sql)? {
            run.diagnostics.add(refusal_diagnostic(&refusal, self.host.now_us()));
        }
        if let Some(entry) = self.summarizer().paused_summaries(state, sql)? {
            run.diagnostics.add(entry);
        }
        Ok(run)
    }

    /// Adds a problem to the active run, if there is one. It is stored with the next write of the run's row.
    pub(super) fn note(&self, entry: Diagnostic) -> Result<()> {
        self.read_mut(|state, _| {
            if let Ok(run) = state.active_mut() {
                run.diagnostics.add(entry);
            }
            Ok(())
        })
    }

    /// Notes that the model called a tool that its prompt does not list.
    pub(super) fn note_unlisted(&self, definitions: &Definitions<'_>, name: &str) -> Result<()> {
        let text =
            format!("The model called \"{name}\", which \"{}\" does not list.", definitions.prompt.name);
        self.note(Diagnostic::warning(
            Kind::Pipeline,
            "tool.unlisted",
            ("tool", name),
            text,
            self.host.now_us(),
        ))
    }

    fn check_models(&self, definitions: &Definitions<'_>, findings: &mut Findings) {
        let used = definitions.chain.first();
        for model in self.catalog.model_chain(&definitions.prompt.model) {
            self.check_model(model, used.map(|model| model.name.as_str()), findings);
        }
    }

    /// Notes models without a price, if the cost of the run is limited by its own budget or by an allocated
    /// one.
    fn check_model_prices(&self, definitions: &Definitions<'_>, findings: &mut Findings) -> Result<()> {
        let limited = |ledger: &Ledger| {
            let scopes = [BudgetScope::Run, BudgetScope::Thread, BudgetScope::Parent];
            scopes.into_iter().any(|scope| ledger.cap(scope, Unit::Cost).is_some())
        };
        let limited = self
            .read(|state, _| Ok(state.active().and_then(|run| run.ledger.as_deref()).is_some_and(limited)))?;
        if !limited || self.catalog.unpriced(definitions.agent) == Unpriced::Ignore {
            return Ok(());
        }
        for model in self.catalog.model_chain(&definitions.prompt.model) {
            if model.input_price.is_none() && model.output_price.is_none() {
                let text =
                    format!("The model \"{}\" has no price: what it costs is not limited.", model.name);
                findings.lacks("model.unpriced", ("model", &model.name), text);
            }
        }
        Ok(())
    }

    /// Notes memories that cannot be searched by meaning.
    fn check_memories(&self, definitions: &Definitions<'_>, findings: &mut Findings) {
        for entry in &definitions.prompt.memory {
            let memory = self.catalog.memories.get(&entry.name);
            let name = memory.and_then(|memory| memory.embedding.as_deref());
            let Some(model) = name.and_then(|name| self.catalog.models.get(name)) else { continue };
            if let Some(lack) = crate::models::lacks(model, &|name: &str| self.variables().deployment(name)) {
                let text = format!(
                    "The memory \"{}\" is searched by its words alone: the model \"{}\" cannot be asked: {lack}.",
                    entry.name, model.name
                );
                findings.lacks("embedding.unusable", ("memory", &entry.name), text);
            }
        }
    }

    /// Notes skills that the model does not receive, or that do not exist.
    fn check_skills(&self, definitions: &Definitions<'_>, findings: &mut Findings) -> Result<()> {
        let Some(model) = definitions.chain.first() else { return Ok(()) };
        for (code, skill, message) in self.skills().lacking_skills(definitions, model)? {
            findings.add(Kind::Contract, code, ("about", &skill), message);
        }
        Ok(())
    }

    fn check_model(&self, model: &Model, used: Option<&str>, findings: &mut Findings) {
        let Some(lack) = crate::models::lacks(model, &|name: &str| self.variables().deployment(name)) else {
            return;
        };
        let instead = match used {
            Some(used) if used != model.name => format!("; \"{used}\" is used"),
            _ => String::new(),
        };
        let text = format!("The model \"{}\" cannot be asked: {lack}{instead}.", model.name);
        findings.lacks("model.unusable", ("model", &model.name), text);
    }

    fn look_at_tools(&self, definitions: &Definitions<'_>, values: bool, findings: &mut Findings) {
        if values && let Some(name) = self.variables().agent_lacks(definitions) {
            let text = format!("The agent \"{}\" needs a value for {name}.", definitions.agent.name);
            findings.lacks("variable.missing", ("variable", &name), text);
        }
        for entry in &definitions.prompt.tools {
            match self.catalog.callable(&entry.name) {
                None if is_tool(&entry.name) => {}
                None if entry.mcp().is_some() => self.check_tool_list(entry, findings),
                None => {
                    let text = format!("\"{}\" is listed, and is not among the definitions.", entry.name);
                    findings.lacks("tool.missing", ("tool", &entry.name), text);
                }
                Some(Callable::Tool(tool)) => {
                    self.check_tool(definitions, entry, tool, values, findings);
                }
                Some(Callable::Prompt(prompt)) => {
                    let chain = self.usable_chain(&prompt.model);
                    if let Some(model) = chain.first() {
                        self.check_model(model, None, findings);
                    }
                }
                Some(Callable::Agent(..) | Callable::Subagent(..)) => {}
            }
        }
        self.check_stop_tool(definitions, findings);
    }

    fn check_tool(
        &self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        tool: &Tool,
        values: bool,
        findings: &mut Findings,
    ) {
        match &tool.run {
            Implementation::Native(native) if !self.natives.has_tool(native) => {
                let text = format!(
                    "\"{}\" runs the native \"{native}\", which this Worker does not have.",
                    tool.name
                );
                findings.lacks("tool.missing", ("tool", &tool.name), text);
            }
            Implementation::Code(_) if !self.sandbox.is_bound() => {
                findings.lacks("binding.missing", ("binding", "ISOLATE"), unbound(&tool.name));
            }
            Implementation::Mcp(of) => self.check_server(of, findings),
            _ => {}
        }
        if values
            && !tool.variables.is_empty()
            && let Some(text) = self.variables().lacking(definitions, entry, tool)
        {
            findings.lacks("variable.missing", ("tool", &tool.name), text);
        }
    }

    /// Notes a server that did not list its tools.
    fn check_tool_list(&self, entry: &ToolEntry, findings: &mut Findings) {
        let Some(server) = entry.mcp() else { return };
        let why = self.mcp().why_no_list(server).unwrap_or_else(|| "nobody has asked it".to_owned());
        let text = format!("The tools of the MCP server \"{server}\" are not known: {why}");
        findings.lacks("mcp.unreachable", ("mcp", server), text);
    }

    /// Notes a server that this deployment must not reach. A URL with variables is known only at the request.
    fn check_server(&self, of: &McpTool, findings: &mut Findings) {
        let found = self.catalog.mcp.get(&of.server).filter(|server| !server.url.contains("{{"));
        let Some(server) = found else { return };
        if let Err(text) = work::mcp::url(server, &*self.host, &|_| None, &|_| None) {
            findings.lacks("mcp.unreachable", ("mcp", &server.name), text);
        }
    }

    /// Notes a stop tool that is switched off, which never ends the turn.
    fn check_stop_tool(&self, definitions: &Definitions<'_>, findings: &mut Findings) {
        let Some(name) = &definitions.side.stop_tool else { return };
        let Some(entry) = definitions.prompt.tool(name).filter(|entry| entry.optional.is_some()) else {
            return;
        };
        if !self.subagents().is_on(definitions, entry) {
            let text = format!("The stop tool \"{name}\" is switched off by its `optional`.");
            findings.add(Kind::Recipe, "stop_tool.off", ("tool", name), text);
        }
    }

    fn check_hooks(&self, definitions: &Definitions<'_>, values: bool, findings: &mut Findings) {
        for hook in self.catalog.hooks_of(definitions.agent, definitions.prompt) {
            self.check_hook(definitions, hook, values, findings);
        }
        if definitions.prompt.hooks.is_empty() {
            return;
        }
        let unscheduled = |id: &&String| !definitions.prompt.hooks.contains(id);
        for id in definitions.agent.hooks.iter().filter(unscheduled) {
            let prompt = &definitions.prompt.name;
            let text = format!(
                "The hook \"{id}\" of the agent does not run: the prompt \"{prompt}\" lists its own."
            );
            let entry =
                Diagnostic::warning(Kind::Pipeline, "hook.unscheduled", ("hook", id), text, findings.now);
            findings.found.push(entry.info());
        }
    }

    fn check_hook(&self, definitions: &Definitions<'_>, hook: &Hook, values: bool, findings: &mut Findings) {
        match &hook.run {
            Implementation::Native(native) if !self.natives.has_hook(native) => {
                let text = format!(
                    "The hook \"{}\" runs the native \"{native}\", which this Worker does not have.",
                    hook.id
                );
                findings.lacks("hook.missing", ("hook", &hook.id), text);
            }
            Implementation::Code(_) if !self.sandbox.is_bound() => {
                findings.lacks("binding.missing", ("binding", "ISOLATE"), unbound(&hook.id));
            }
            _ => {}
        }
        if values
            && !hook.variables.is_empty()
            && let Some(why) = self.variables().hook_lacks(definitions, hook)
        {
            let text = format!("The hook \"{}\": {why}.", hook.id);
            findings.lacks("variable.missing", ("hook", &hook.id), text);
        }
    }
}

fn unbound(name: &str) -> String {
    format!("\"{name}\" is code, and the Worker that runs code is not bound as ISOLATE.")
}

/// The text with which a strict run ends, with everything that it lacks.
fn ends(run: &mut Run) -> Option<String> {
    let lacking = run.diagnostics.enforce();
    (!lacking.is_empty()).then(|| format!("The run is strict and ends here. {}", lacking.join(" ")))
}
