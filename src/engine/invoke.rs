//! Calls that code makes and waits for (spec §6.4). No message is stored; the receipt keeps arguments and result. Its key
//! follows from the call that the code works in, so that code which is run again gets the results it had, and no call of
//! unknown outcome is made again under another key.

use std::ops::ControlFlow;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value, json};

use crate::engine::call::{Work, files_of, no_files, off, too_deep};
use crate::engine::definitions::Definitions;
use crate::engine::handle::Open;
use crate::engine::handoff;
use crate::engine::subagents::call::Wanted;
use crate::engine::thread::Thread;
use crate::engine::tool_call::{abandon_within, fitting, interrupted, restart};
use crate::engine::tool_result::{is_of_files, logged_error};
use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::limits;
use crate::request::fields::shallow;
use crate::sdk::calls::InvokeDoor;
use crate::sdk::messages::NewAttachment;
use crate::sdk::scope::{Entered, Place, Scope};
use crate::spec::message::{ToolCall, ToolResult, ToolStatus};
use crate::spec::{Callable, Prompt, Sought, ToolEntry, schema};
use crate::store::state::State;
use crate::work::native::tools::execute;

impl InvokeDoor for Open {
    fn invoke(&self, name: String, args: Value) -> LocalBoxFuture<'static, Result<ToolResult>> {
        let (thread, scope) = (self.thread.clone(), self.scope.clone());
        // Keys follow the order in which the calls are made, not that in which they are first polled.
        let key = scope.next_key();
        Box::pin(async move { thread.invoke(&scope, key, &name, args).await })
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// What an earlier life has stored of a call.
struct Earlier {
    id: i64,
    name: String,
    kind: String,
    runs: i64,
    args: Value,
    result: Option<ToolResult>,
}

/// A call to be made.
struct Invoked<'a> {
    scope: &'a Scope,
    key: &'a str,
    name: &'a str,
    kind: &'static str,
    args: &'a Value,
}

impl Invoked<'_> {
    /// Stores its receipt. Its id is a seq that no message gets.
    fn insert(&self, state: &mut State, sql: &dyn Sql, ended: Option<&ToolResult>, now: i64) -> Result<i64> {
        state.must_live()?;
        let id = state.next_seq();
        let mut data = json!({ "args": self.args, "result": ended });
        if let Some(fields) = data.as_object_mut().filter(|_| self.scope.place == Place::Apart) {
            fields.insert("apart".into(), (*self.scope.work).into());
        }
        sql.run(
            "INSERT INTO calls (id, reply, call_id, name, kind, state, runs, started_us, ended_us, data)
             VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)",
            &[
                Param::Int(id),
                Param::Int(-self.scope.receipt.unwrap_or(0)),
                Param::Text(self.key),
                Param::Text(self.name),
                Param::Text(self.kind),
                Param::Text(if ended.is_some() { "succeeded" } else { "started" }),
                Param::Int(now),
                ended.map(|_| now).into(),
                Param::Text(&data.to_string()),
            ],
        )?;
        state.max_seq = state.max_seq.max(id);
        if ended.is_none() {
            state.starts_apart(sql, self.scope.place, id)?;
        }
        Ok(id)
    }
}

impl Thread {
    async fn invoke(
        self: &Rc<Self>,
        scope: &Scope,
        key: String,
        name: &str,
        args: Value,
    ) -> Result<ToolResult> {
        self.read(|state, _| state.must_live())?;
        let refused = |text: String| Ok(ToolResult::error(text));
        let found = match self.catalog.named(scope.package.as_deref(), name, Sought::Callable) {
            Ok(found) => found,
            Err(hidden) => return refused(format!("{hidden}.")),
        };
        let name = &*found;
        let callable = self.catalog.callable(name);
        let args = match callable {
            Some(callable) => match callable.check(args) {
                Ok(args) => args,
                Err(problems) => {
                    return refused(format!(
                        "Invalid arguments for \"{name}\": {}",
                        schema::lines(&problems)
                    ));
                }
            },
            // Looked at below.
            None if crate::engine::subagents::wanted::is_tool(name) => args,
            None => return refused(format!("There is no tool \"{name}\".")),
        };
        if let Err(error) = shallow("args", &args) {
            return refused(error.message);
        }
        let bytes = args.to_string().len();
        if bytes > limits::INVOKED_ARGS_BYTES {
            let limit = limits::INVOKED_ARGS_BYTES;
            return refused(format!(
                "The arguments for \"{name}\" have {bytes} bytes as JSON; the limit is {limit}."
            ));
        }
        if scope.depth >= limits::CALL_DEPTH {
            return refused(too_deep(name));
        }
        let Some(definitions) = self.definitions_in(scope)? else {
            return refused("The thread's agent is not among the definitions any more.".to_owned());
        };
        if self.is_off(&definitions, name) {
            return refused(off(&definitions, name));
        }
        let kept = self.redact_json(args.clone());
        // Models read what prompts and agents are given; a tool may need a secret.
        let args = if matches!(callable, Some(Callable::Tool(_))) { args } else { kept.clone() };
        let earlier = match scope.entered {
            Entered::First => None,
            Entered::Again => self.read(|_, sql| earlier(sql, scope, &key))?,
        };
        if let Some(earlier) = &earlier {
            if earlier.name != name || earlier.args != kept {
                let before = &earlier.name;
                return refused(format!(
                    "\"{name}\" cannot be called here: before the process was lost, \"{before}\" was called in its place, \
                     or with other arguments."
                ));
            }
            if let Some(result) = &earlier.result {
                return Ok(result.clone());
            }
        }
        let entry = definitions.prompt.tool(name).cloned().unwrap_or_else(|| ToolEntry::unlisted(name));
        let optional = |prompt: &Prompt| prompt.tools.iter().any(|entry| entry.optional.is_some());
        if optional(definitions.prompt)
            || matches!(callable, Some(Callable::Prompt(prompt)) if optional(prompt))
        {
            self.refresh_env().await?;
        }
        let work = match callable {
            Some(Callable::Tool(tool)) => Work::Tool(tool),
            Some(Callable::Prompt(prompt)) => Work::Prompt(prompt),
            Some(Callable::Agent(..)) => return self.invoke_handoff(scope, &key, name, &kept),
            Some(Callable::Subagent(..)) | None => {
                let call =
                    ToolCall { name: name.to_owned(), arguments: args.to_string(), ..ToolCall::default() };
                let wanted = match self.wanted(&definitions, Some(&entry), &call)? {
                    Some(Ok(wanted)) => wanted,
                    Some(Err(result)) => return Ok(result),
                    None => return refused(format!("There is no tool \"{name}\".")),
                };
                if let Wanted::Create(new) = &wanted {
                    self.ready_child(new.agent).await?;
                }
                let now = self.host.now_us();
                let call =
                    Invoked { scope, key: &key, name, kind: crate::store::receipts::KIND, args: &kept };
                return self.invoke_child(scope, &wanted, |state, sql, result| {
                    call.insert(state, sql, Some(result), now)
                });
            }
        };
        let now = self.host.now_us();
        let call = Invoked { scope, key: &key, name, kind: work.kind(), args: &kept };
        let (id, entered) = match earlier {
            Some(earlier) if !work.repeats(earlier.runs, &earlier.kind) => {
                let result = ToolResult::error(interrupted(name));
                return self.end_invoked(scope, earlier.id, name, result, "indeterminate", true);
            }
            Some(earlier) => {
                self.transition(|state, sql| {
                    state.must_live()?;
                    restart(state, sql, scope.place, earlier.id)
                })?;
                (earlier.id, Entered::Again)
            }
            None => (self.transition(|state, sql| call.insert(state, sql, None, now))?, Entered::First),
        };
        let inside = scope.within(key.clone(), id, entered);
        self.announce_tool_start(name);
        let result = self.work(&inside, &definitions, &entry, work, &key, args).await?;
        if scope.place == Place::Run && self.read(|state, _| Ok(state.active().is_none()))? {
            // It has terminated the thread, and with it the flow that waits for it.
            std::future::pending::<()>().await;
        }
        let result = fitting(name, result);
        self.announce_tool_end(name, result.status);
        let state = if result.status == ToolStatus::Success { "succeeded" } else { "failed" };
        self.end_invoked(scope, id, name, result, state, inside.may_have_invoked())
    }

    /// An agent takes over after the step, in which its call is queued.
    fn invoke_handoff(&self, scope: &Scope, key: &str, name: &str, args: &Value) -> Result<ToolResult> {
        if scope.place == Place::Apart {
            let text = format!("\"{name}\" cannot wait here; queue it instead.");
            return Ok(ToolResult { error_code: Some("would_wait".into()), ..ToolResult::error(text) });
        }
        let now = self.host.now_us();
        let result = ToolResult::success(handoff::told(name));
        let call = Invoked { scope, key, name, kind: "queued", args };
        let row = self.transition(|state, sql| {
            call.insert(state, sql, Some(&result), now)?;
            self.queue_call(state, sql, name, args.to_string(), Map::new(), now)
        })?;
        self.broadcast_message(&row)?;
        Ok(result)
    }

    /// Whether this runs code of a model's where the prompt does not list it: that alone is never called unlisted.
    pub(crate) fn is_off(&self, definitions: &Definitions<'_>, name: &str) -> bool {
        definitions.prompt.tool(name).is_none()
            && self.catalog.tools.get(name).is_some_and(|tool| execute::runs(&tool.run))
    }

    /// What a call runs on that code makes: the agent of today, and the prompt that led to the code.
    pub(crate) fn definitions_in(&self, scope: &Scope) -> Result<Option<Definitions<'_>>> {
        let prompt = scope.path.last().and_then(|name| self.catalog.prompts.get(name));
        Ok(self.definitions()?.map(|found| Definitions { prompt: prompt.unwrap_or(found.prompt), ..found }))
    }

    /// Stores the result in the receipt, and its files as files of the thread: whoever called finds their paths.
    fn end_invoked(
        &self,
        scope: &Scope,
        id: i64,
        name: &str,
        mut result: ToolResult,
        state: &'static str,
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
            self.make_index(mime, size)?;
        }
        let kept = match self.keep_invoked(scope, id, result.clone(), &files, state, has_invoked) {
            Err(error) if !files.is_empty() && is_of_files(&error) => {
                self.keep_invoked(scope, id, no_files(name, &error), &[], "failed", has_invoked)
            }
            kept => kept,
        }?;
        if kept.status == ToolStatus::Error {
            self.tell_of_tool(name, id, &kept)?;
        }
        Ok(kept)
    }

    fn keep_invoked(
        &self,
        scope: &Scope,
        id: i64,
        mut result: ToolResult,
        files: &[NewAttachment],
        state: &'static str,
        has_invoked: bool,
    ) -> Result<ToolResult> {
        let now = self.host.now_us();
        let state = if result.status == ToolStatus::Error && state == "succeeded" { "failed" } else { state };
        let error = (result.status == ToolStatus::Error).then(|| logged_error(&result.text(), &result));
        self.transition(|state_now, sql| {
            let stored = crate::engine::attachments::store::store(state_now, sql, files, || self.host.random(), now)?;
            result.attachments = crate::engine::attachments::store::kept(&stored)?;
            let kept = serde_json::to_string(&result).map_err(Error::internal)?;
            if has_invoked {
                abandon_within(sql, scope.place, id, now)?;
            }
            sql.run(
                "UPDATE calls SET state = ?, ended_us = ?, error = ?, data = json_set(data, '$.result', json(?)) WHERE id = ?",
                &[Param::Text(state), Param::Int(now), error.as_ref().into(), Param::Text(&kept), Param::Int(id)],
            )
        })?;
        Ok(result)
    }
}

fn earlier(sql: &dyn Sql, scope: &Scope, key: &str) -> Result<Option<Earlier>> {
    let mut found = None;
    sql.each(
        "SELECT id, name, kind, runs, json_extract(data, '$.args'), json_extract(data, '$.result') FROM calls
         WHERE id > ? AND reply <= 0 AND call_id = ?",
        &[Param::Int(scope.receipt.unwrap_or(0)), Param::Text(key)],
        &mut |cells| {
            if let [id, name, kind, runs, args, result] = cells {
                let json = |cell: &Cell| cell.text().and_then(|text| serde_json::from_str(text).ok());
                found = Some(Earlier {
                    id: id.int().unwrap_or_default(),
                    name: name.text().unwrap_or_default().to_owned(),
                    kind: kind.text().unwrap_or_default().to_owned(),
                    runs: runs.int().unwrap_or_default(),
                    args: json(args).unwrap_or_default(),
                    result: result.text().and_then(|text| serde_json::from_str(text).ok()),
                });
            }
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(found)
}
