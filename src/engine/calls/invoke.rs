//! Calls that code makes and awaits (spec §6.4). No message is stored; the receipt keeps arguments and
//! result. The key derives from the call in which the code runs. Code that runs again thus gets its earlier
//! results, and a call of unknown outcome is not repeated under another key.

use futures::future::LocalBoxFuture;
use serde_json::{Map, Value};

use crate::definitions::message::{ToolCall, ToolResult, ToolStatus};
use crate::definitions::subagent::{is_tool, undotted};
use crate::definitions::{Callable, Prompt, ReferenceKind, ScrubCounts, ToolEntry, schema};
use crate::engine::calls::call::{Executable, abandon_inner, files_of, interrupted, no_files, off, too_deep};
use crate::engine::calls::tool_call::PreparedCall;
use crate::engine::calls::tool_result::{is_of_files, logged_error};
use crate::engine::definitions::Definitions;
use crate::engine::features::Delegates;
use crate::engine::handle::ThreadHandle;
use crate::engine::handoff;
use crate::engine::subagents::call::SubagentCall;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::request::fields::shallow;
use crate::sdk::calls::CallsApi;
use crate::sdk::messages::NewAttachment;
use crate::sdk::scope::{EntryMode, Scope};
use crate::store::receipts;
use crate::store::receipts::{Kind, NewReceipt, Receipt, ReceiptData, ReceiptState};
use crate::store::state::State;

impl CallsApi for ThreadHandle {
    fn invoke(&self, name: String, args: Value) -> LocalBoxFuture<'static, Result<ToolResult>> {
        let (thread, scope) = (self.thread.clone(), self.scope.clone());
        // A receipt is a row, so it needs the right to write.
        let may = scope.writes("make calls");
        // Keys follow the order in which the calls are made, not the order of their first polls.
        let key = scope.next_key();
        Box::pin(async move {
            may?;
            let result = thread.invoke(&scope, key, &name, args).await?;
            // The mark is for the receipt only.
            Ok(ToolResult { scrubbed: ScrubCounts::default(), ..result })
        })
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// A call that code makes.
struct Invocation<'a> {
    scope: &'a Scope,
    key: &'a str,
    name: &'a str,
    kind: Kind,
    args: &'a Value,
}

impl Invocation<'_> {
    /// The call's receipt. Its id is a seq that no message gets.
    fn receipt(&self, state: &mut State, now: i64) -> NewReceipt<'_> {
        let outer = -self.scope.receipt.unwrap_or(0);
        let id = state.next_seq();
        state.max_seq = state.max_seq.max(id);
        let receipt = NewReceipt::started(id, outer, self.key, self.name, self.kind, now);
        let data = ReceiptData {
            work: self.scope.detached_work(),
            args: Some(self.args.clone()),
            ..ReceiptData::default()
        };
        NewReceipt { data, ..receipt }
    }

    /// Stores the receipt of a call that has its result at once.
    fn insert_ended(&self, state: &mut State, sql: &dyn Sql, result: &ToolResult, now: i64) -> Result<()> {
        state.ensure_not_terminated()?;
        let mut receipt = self.receipt(state, now);
        receipt.data.result = Some(result.clone());
        NewReceipt { state: ReceiptState::Succeeded, ended_us: Some(now), ..receipt }.insert(sql)
    }
}

impl Thread {
    async fn invoke(&self, scope: &Scope, key: String, name: &str, args: Value) -> Result<ToolResult> {
        self.read(|state, _| state.ensure_not_terminated())?;
        let name = undotted(name);
        let found = match self.catalog.named(scope.package.as_deref(), name, ReferenceKind::Callable) {
            Ok(found) => found,
            Err(hidden) => return Ok(ToolResult::error(format!("{hidden}."))),
        };
        let name = &*found;
        let callable = self.catalog.callable(name);
        let args = match checked(scope, callable, name, args) {
            Ok(args) => args,
            Err(text) => return Ok(ToolResult::error(text)),
        };
        let Some(definitions) = self.definitions_in(scope)? else {
            let text = "The thread's agent is not among the definitions any more.";
            return Ok(ToolResult::error(text));
        };
        if self.is_off(&definitions, name) {
            return Ok(ToolResult::error(off(&definitions, name)));
        }
        if callable.is_some() && !self.delegates().permits(name)? {
            return Ok(ToolResult::error(Delegates::not_permitted(name)));
        }
        let kept = self.variables().redact_json(args.clone());
        // Models read the arguments of prompts and agents; a tool may need a secret.
        let args = if matches!(callable, Some(Callable::Tool(_))) { args } else { kept.clone() };
        let earlier = match scope.entered {
            EntryMode::First => None,
            EntryMode::Again => self.read(|_, sql| receipts::by_key(sql, scope.receipt, &key))?,
        };
        if let Some(result) = earlier.as_ref().and_then(|earlier| result_of(earlier, name, &kept)) {
            return Ok(result);
        }
        let entry = definitions.prompt.tool(name).cloned().unwrap_or_else(|| ToolEntry::unlisted(name));
        let optional = |prompt: &Prompt| prompt.tools.iter().any(|entry| entry.optional.is_some());
        let inner = matches!(callable, Some(Callable::Prompt(prompt)) if optional(prompt));
        if inner || optional(definitions.prompt) {
            self.variables().refresh_env().await?;
        }
        let call = Invocation { scope, key: &key, name, kind: Kind::Subagent, args: &kept };
        match callable {
            Some(Callable::Tool(tool)) => {
                self.invoke_executable(&definitions, &entry, Executable::Tool(tool), call, args, earlier)
                    .await
            }
            Some(Callable::Prompt(prompt)) => {
                self.invoke_executable(&definitions, &entry, Executable::Prompt(prompt), call, args, earlier)
                    .await
            }
            Some(Callable::Agent(..)) => self.invoke_handoff(scope, &key, name, &kept),
            Some(Callable::Subagent(..)) | None => {
                self.invoke_subagent(&definitions, &entry, call, &args).await
            }
        }
    }

    /// Runs a tool or a prompt, unless an earlier call of it may have taken effect.
    async fn invoke_executable(
        &self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        executable: Executable<'_>,
        call: Invocation<'_>,
        args: Value,
        earlier: Option<Receipt>,
    ) -> Result<ToolResult> {
        let call = Invocation { kind: executable.kind(), ..call };
        let Invocation { scope, key, name, .. } = call;
        if let Some(earlier) = earlier.as_ref().filter(|earlier| !executable.repeats(earlier)) {
            let result = ToolResult::error(interrupted(name));
            return self.end_invoked(scope, earlier.id, name, result, ReceiptState::Indeterminate, true);
        }
        if earlier.is_none()
            && let Some(result) = self.waits().refusal_to_wait(definitions, executable, &args)?
        {
            return Ok(result);
        }
        if earlier.is_none()
            && let Some(result) = self.budgets().count_call(scope.is_detached())?
        {
            return Ok(result);
        }
        let now = self.host.now_us();
        let earlier = earlier.map(|earlier| earlier.id);
        let (id, entered) = self.open_receipt(scope, earlier, |state| call.receipt(state, now))?;
        let prepared = PreparedCall {
            scope,
            definitions,
            entry,
            executable,
            key: key.to_owned(),
            call_id: key,
            name,
            args,
            session: None,
            approved: false,
            told: None,
        };
        let (result, has_invoked) = self.perform(prepared, id, entered).await?;
        let state = ReceiptState::ended(result.status);
        self.end_invoked(scope, id, name, result, state, has_invoked)
    }

    /// Creates a subagent, or sends it a message.
    async fn invoke_subagent(
        &self,
        definitions: &Definitions<'_>,
        entry: &ToolEntry,
        call: Invocation<'_>,
        args: &Value,
    ) -> Result<ToolResult> {
        let asked =
            ToolCall { name: call.name.to_owned(), arguments: args.to_string(), ..ToolCall::default() };
        let subagents = self.subagents();
        let wanted = match subagents.wanted(definitions, Some(entry), &asked)? {
            Some(Ok(wanted)) => wanted,
            Some(Err(result)) => return Ok(result),
            None => return Ok(ToolResult::error(no_tool(call.name))),
        };
        if let SubagentCall::Create(new) = &wanted {
            self.descendants().ready_child(new.agent).await?;
        }
        if let Some(result) = self.budgets().count_call(call.scope.is_detached())? {
            return Ok(result);
        }
        let now = self.host.now_us();
        self.subagents().invoke_child(call.scope, &wanted, |state, sql, result| {
            call.insert_ended(state, sql, result, now)
        })
    }

    /// Queues the hand-off, which takes effect after the step.
    fn invoke_handoff(&self, scope: &Scope, key: &str, name: &str, args: &Value) -> Result<ToolResult> {
        if scope.is_detached() {
            let text = format!("\"{name}\" cannot wait here; queue it instead.");
            return Ok(ToolResult { error_code: Some("would_wait".into()), ..ToolResult::error(text) });
        }
        let now = self.host.now_us();
        let result = ToolResult::success(handoff::result_text(name));
        let call = Invocation { scope, key, name, kind: Kind::Queued, args };
        let row = self.transition(|state, sql| {
            call.insert_ended(state, sql, &result, now)?;
            self.queue_call(state, sql, name, args.to_string(), Map::new(), now)
        })?;
        self.broadcast_message(&row)?;
        Ok(result)
    }

    /// Whether this tool runs model-written code and the prompt does not list it. Only such a tool must be
    /// listed.
    pub(in crate::engine) fn is_off(&self, definitions: &Definitions<'_>, name: &str) -> bool {
        definitions.prompt.tool(name).is_none()
            && self
                .catalog
                .tools
                .get(name)
                .is_some_and(|tool| crate::definitions::execute_code::runs(&tool.run))
    }

    /// The definitions for a call made by code: the current agent, and the prompt that led to the code.
    pub(in crate::engine) fn definitions_in(&self, scope: &Scope) -> Result<Option<Definitions<'_>>> {
        let prompt = scope.path.last().and_then(|name| self.catalog.prompts.get(name));
        Ok(self.definitions()?.map(|found| Definitions { prompt: prompt.unwrap_or(found.prompt), ..found }))
    }

    /// Stores the result in the receipt, and its files as files of the thread; the caller receives their
    /// paths.
    fn end_invoked(
        &self,
        scope: &Scope,
        id: i64,
        name: &str,
        mut result: ToolResult,
        state: ReceiptState,
        has_invoked: bool,
    ) -> Result<ToolResult> {
        let files = match files_of(name, &mut result) {
            Ok(files) => files,
            Err(failed) => {
                result = failed;
                Vec::new()
            }
        };
        for (mime, size) in files.iter().filter_map(NewAttachment::content) {
            self.files().make_index(mime, size)?;
        }
        let kept = match self.keep_invoked(scope, id, result.clone(), &files, state, has_invoked) {
            Err(error) if !files.is_empty() && is_of_files(&error) => {
                self.keep_invoked(scope, id, no_files(name, &error), &[], ReceiptState::Failed, has_invoked)
            }
            kept => kept,
        }?;
        if kept.status == ToolStatus::Error {
            self.report_tool_failure(name, id, &kept)?;
        }
        Ok(kept)
    }

    fn keep_invoked(
        &self,
        scope: &Scope,
        id: i64,
        mut result: ToolResult,
        files: &[NewAttachment],
        state: ReceiptState,
        has_invoked: bool,
    ) -> Result<ToolResult> {
        let now = self.host.now_us();
        let failed = result.status == ToolStatus::Error && state == ReceiptState::Succeeded;
        let state = if failed { ReceiptState::Failed } else { state };
        let error = (result.status == ToolStatus::Error).then(|| logged_error(&result.text(), &result));
        self.transition(|state_now, sql| {
            let stored =
                crate::engine::attachments::store::store(state_now, sql, files, || self.host.random(), now)?;
            result.attachments = crate::engine::attachments::store::kept(&stored)?;
            if has_invoked {
                abandon_inner(sql, &scope.origin, id, 0, now)?;
            }
            self.mcp().post_mcp(state_now, sql)?;
            receipts::close_with(sql, id, state, error.as_deref(), &result, now)
        })?;
        Ok(result)
    }
}

fn no_tool(name: &str) -> String {
    format!("There is no tool \"{name}\".")
}

/// The checked arguments of a call, or the reason why it is not allowed.
fn checked(scope: &Scope, callable: Option<Callable<'_>>, name: &str, args: Value) -> Result<Value, String> {
    let args = match callable {
        Some(callable) => callable
            .check(args)
            .map_err(|problems| format!("Invalid arguments for \"{name}\": {}", schema::lines(&problems)))?,
        // Checked with the subagents.
        None if is_tool(name) => args,
        None => return Err(no_tool(name)),
    };
    shallow("args", &args).map_err(|error| error.into_message())?;
    let bytes = args.to_string().len();
    if bytes > limits::INVOKED_ARGS_BYTES {
        let limit = limits::INVOKED_ARGS_BYTES;
        return Err(format!(
            "The arguments for \"{name}\" have {bytes} bytes as JSON; the limit is {limit}."
        ));
    }
    if scope.depth >= limits::CALL_DEPTH {
        return Err(too_deep(name));
    }
    Ok(args)
}

/// The result of an earlier call under this key; an error if it was another call.
fn result_of(earlier: &Receipt, name: &str, args: &Value) -> Option<ToolResult> {
    if earlier.name != name || earlier.data.args.as_ref().unwrap_or(&Value::Null) != args {
        let before = &earlier.name;
        return Some(ToolResult::error(format!(
            "\"{name}\" cannot be called here: before the process was lost, \"{before}\" was called in its place, \
             or with other arguments."
        )));
    }
    earlier.data.result.clone()
}
