//! `ThreadState` for sandboxed code (spec §12): one function, `call(method, ...args)`, that the harness makes the
//! members of `state` from. Every argument is hostile.

use std::rc::Rc;

use bytes::Bytes;
use futures_util::StreamExt;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::args::Args;
use crate::api::Query;
use crate::code::{BinaryKind, Function, Thrown, Value};
use crate::error::{Error, Result};
use crate::spec::VariableKind;
use crate::thread::attachments;
use crate::thread::body::Body;
use crate::thread::effects::{NewEffect, Repetition};
use crate::thread::files::FileOptions;
use crate::thread::side::Side;
use crate::thread::subagents::RemoteThread;
use crate::thread::thread_state::{NewMessage, ThreadState};

/// The function that reaches a thread. `env`: the values of variables that the definition declares; no others are seen.
pub(super) fn call(state: &ThreadState, env: Map<String, Json>) -> Function {
    let (state, env) = (state.clone(), Rc::new(env));
    Function::new("call", move |args| {
        let (state, env) = (state.clone(), env.clone());
        Box::pin(async move {
            let mut args = Args::new(args);
            let method = args.text("method")?;
            match method.as_str() {
                "env" => declared(&env, &args.text("name")?),
                _ => method_of(&state, &method, args).await,
            }
        })
    })
}

fn declared(env: &Map<String, Json>, name: &str) -> std::result::Result<Value, Thrown> {
    let value = env.get(name).and_then(Json::as_str);
    value.map(Value::from).ok_or_else(|| {
        Thrown::new(format!(
            "env: there is no value for {name}, or the definition does not list it in `variables`."
        ))
    })
}

async fn method_of(state: &ThreadState, method: &str, mut args: Args) -> std::result::Result<Value, Thrown> {
    Ok(match method {
        "getMessages" => {
            let query = args.query()?;
            in_order(state.get_messages(&query)?, &query).into()
        }
        "getMessage" => nullable(state.get_message(&args.text("id")?)?),
        "injectMessage" => {
            let id = state.inject_message(message(args.object("input")?)?).await?;
            nullable(state.get_message(&id)?)
        }
        "queueMessage" => {
            state.queue_message(message(args.object("input")?)?)?;
            Value::Undefined
        }
        "updateMessage" => {
            let (id, updates) = (args.text("id")?, args.object("updates")?);
            let content = updates.get("content").and_then(Json::as_str);
            let content =
                content.ok_or_else(|| Error::field("content", "`updates` must have `content`, a string."))?;
            state.update_message(&id, content).await?;
            nullable(state.get_message(&id)?)
        }
        "deleteMessage" => Value::Bool(state.delete_message(&args.text("id")?)?),
        "getLogs" => state.get_logs(&args.query()?)?.get("logs").cloned().unwrap_or_default().into(),
        "loadModel" => json_of(&state.load_model(&args.text("name")?)?)?,
        "loadPrompt" => json_of(&state.load_prompt(&args.text("name")?)?)?,
        "loadAgent" => json_of(&state.load_agent(&args.text("name")?)?)?,
        "envType" => json_of(&state.env_type(&args.text("name")?).await?)?,
        "setEnv" => {
            let (name, value) = (args.text("name")?, args.text("value")?);
            let mut options =
                Body::of(args.optional_object("options")?.unwrap_or_default()).known(&["type"])?;
            let kind = options.take("type").map(serde_json::from_value::<VariableKind>).transpose();
            let kind = kind.map_err(|_| Error::field("type", "`type` must be “text” or “secret”."))?;
            state.set_env(&name, &value, kind)?;
            Value::Undefined
        }
        "notifyParent" => done(state.notify_parent(&args.text("content")?))?,
        "setStatus" => done(state.set_status(&args.text("status")?))?,
        "queueTool" => {
            let name = args.text("name")?;
            Value::String(state.queue_tool(&name, args.json_object()?)?)
        }
        "invokeTool" => {
            let name = args.text("name")?;
            json_of(&state.invoke_tool(&name, args.json_object()?).await?)?
        }
        "scheduleEffect" => Value::String(state.schedule_effect(effect(&mut args)?)?),
        "getScheduledEffects" => {
            Json::Array(state.get_scheduled_effects(args.optional_text("name")?.as_deref())?).into()
        }
        "removeScheduledEffect" => Value::Bool(state.remove_scheduled_effect(&args.text("id")?)?),
        "emit" => {
            let event = args.text("event")?;
            state.emit(&event, args.optional_json().unwrap_or_default());
            Value::Undefined
        }
        "getValue" => nullable(state.get_value::<Json>(&args.text("key")?)?),
        "setValue" => {
            let key = args.text("key")?;
            let value = args.storable("value")?;
            done(state.set_value(&key, &value))?
        }
        "terminate" => done(state.terminate())?,
        "setContext" => {
            let key = args.text("key")?;
            state.set_context(&key, args.optional_json().unwrap_or_default());
            Value::Undefined
        }
        "stop" => done(execution(state)?.stop())?,
        "forceTurn" => {
            let side = Side::parse(&args.text("side")?);
            let side = side.ok_or_else(|| Error::field("side", "`side` must be “a” or “b”."))?;
            done(execution(state)?.force_turn(side))?
        }
        "getChildThread" => match state.get_child_thread(&args.text("referenceId")?)? {
            Some(thread) => remote(thread).await?,
            None => Value::Null,
        },
        "getParentThread" => match state.get_parent_thread()? {
            Some(thread) => remote(thread).await?,
            None => Value::Null,
        },
        other => return file_method(state, other, args).await,
    })
}

/// Its files (spec §16.2).
async fn file_method(
    state: &ThreadState,
    method: &str,
    mut args: Args,
) -> std::result::Result<Value, Thrown> {
    Ok(match method {
        "writeFile" => {
            let (path, data, mime) = (args.text("path")?, args.bytes("data")?, args.text("mimeType")?);
            let options = args.optional_object("options")?;
            json_of(&state.write_file(&path, data, &mime, file_options(options)?)?)?
        }
        "readFile" => buffer(state.read_file(&args.text("path")?)?),
        "readFileChunks" => match state.read_file_stream(&args.text("path")?)? {
            Some(chunks) => chunk_reader(chunks),
            None => Value::Null,
        },
        "statFile" => json_of(&state.stat_file(&args.text("path")?)?)?,
        "readdirFile" => json!({ "entries": state.readdir_file(&args.text("path")?)? }).into(),
        "unlinkFile" => done(state.unlink_file(&args.text("path")?))?,
        "mkdirFile" => json_of(&state.mkdir_file(&args.text("path")?)?)?,
        "rmdirFile" => done(state.rmdir_file(&args.text("path")?))?,
        "moveFile" | "renameFile" => json_of(&state.move_file(&args.text("from")?, &args.text("to")?)?)?,
        "getFileStats" => json_of(&state.get_file_stats()?)?,
        "grepFiles" => json_of(&state.grep_files(&args.text("pattern")?)?)?,
        "findFiles" => json!({ "paths": state.find_files(&args.text("pattern")?)? }).into(),
        "getFileThumbnail" => buffer(state.get_file_thumbnail(&args.text("path")?)?),
        other => return Err(Thrown::new(format!("There is no state.{other}()."))),
    })
}

/// What the code may know of its thread at once, without asking; and the beginning of its random numbers.
pub(super) fn facts(state: &ThreadState, entropy: Value) -> Result<Value> {
    let who = state.identity()?;
    let execution = state.execution()?.map(|execution| {
        json!({
            "flowId": execution.flow_id, "currentSide": execution.current_side.as_str(), "stepCount": execution.step_count,
            "sideAStepCount": execution.side_a_step_count, "sideBStepCount": execution.side_b_step_count,
            "stopped": execution.stopped, "promptPath": execution.prompt_path,
        })
    });
    let mut facts: Value = json!({
        "threadId": who.thread_id, "agentId": who.agent_id, "userId": who.user_id, "createdAt": who.created_us,
        "terminated": who.terminated_us, "children": state.children()?, "arguments": state.arguments()?,
        "execution": execution, "context": state.whole_context(),
        "names": { "models": state.get_model_names(), "prompts": state.get_prompt_names(),
            "agents": state.get_agent_names() },
    })
    .into();
    if let Value::Object(fields) = &mut facts {
        fields.push(("entropy".to_owned(), entropy));
    }
    Ok(facts)
}

fn execution(state: &ThreadState) -> Result<crate::thread::Execution> {
    state
        .execution()?
        .ok_or_else(|| Error::field("execution", "No run is under way here: `state.execution` is null."))
}

fn message(fields: Map<String, Json>) -> Result<NewMessage> {
    let mut body = Body::of(fields).known(&["role", "content", "silent", "metadata", "attachments"])?;
    let role = body.take("role").ok_or_else(|| Error::missing("role"))?;
    let role = serde_json::from_value(role)
        .map_err(|_| Error::field("role", "`role` must be user, assistant or system."))?;
    let attachments = attachments::parse(&mut body)?;
    Ok(NewMessage {
        role,
        content: body.string("content")?.unwrap_or_default(),
        silent: body.flag("silent")?,
        metadata: body.object("metadata")?.unwrap_or_default(),
        attachments,
    })
}

/// `scheduleEffect(name, args, options)`: a delay in milliseconds, or `{ delay?, every? | cron? }`.
fn effect(args: &mut Args) -> Result<NewEffect> {
    let (name, given) = (args.text("name")?, args.json_object()?);
    let once =
        |delay_ms| NewEffect { name: name.clone(), args: given.clone(), delay_ms, repeats: Repetition::Once };
    match args.optional_json() {
        None => Ok(once(Some(0))),
        Some(Json::Number(ms)) => Ok(once(ms.as_f64().map(|ms| ms as i64))),
        Some(Json::Object(fields)) => {
            let mut body = Body::of(fields).known(&["delay", "every", "cron"])?;
            let repeats = match (body.whole("every")?, body.string("cron")?) {
                (Some(_), Some(_)) => return Err(Error::field("cron", "Give `every` or `cron`, not both.")),
                (Some(ms), None) => Repetition::Every(ms),
                (None, Some(text)) => Repetition::Cron(text),
                (None, None) => Repetition::Once,
            };
            Ok(NewEffect { repeats, ..once(body.whole("delay")?) })
        }
        Some(_) => Err(Error::field("delay", "`delay` must be a number of milliseconds.")),
    }
}

fn file_options(fields: Option<Map<String, Json>>) -> Result<FileOptions> {
    let mut body = Body::of(fields.unwrap_or_default()).known(&["width", "height", "metadata"])?;
    let pixels = |number: Option<i64>| number.and_then(|pixels| u32::try_from(pixels).ok());
    Ok(FileOptions {
        width: pixels(body.whole("width")?),
        height: pixels(body.whole("height")?),
        metadata: body.object("metadata")?,
        ..FileOptions::default()
    })
}

/// A function that gives the next chunk of a file, and `null` after the last.
fn chunk_reader(
    chunks: futures_util::stream::LocalBoxStream<'static, Result<crate::thread::FileChunk>>,
) -> Value {
    let chunks = Rc::new(futures_util::lock::Mutex::new(chunks));
    Value::Function(Function::new("next", move |_| {
        let chunks = chunks.clone();
        Box::pin(async move {
            let Some(chunk) = chunks.lock().await.next().await else { return Ok(Value::Null) };
            let chunk = chunk?;
            Ok(Value::Object(vec![
                ("data".to_owned(), Value::Binary(BinaryKind::Uint8Array, chunk.data)),
                ("index".to_owned(), Value::Number(chunk.index as f64)),
                ("totalChunks".to_owned(), Value::Number(chunk.total_chunks as f64)),
                ("isLast".to_owned(), Value::Bool(chunk.is_last)),
            ]))
        })
    }))
}

/// Another thread of the family, for code.
async fn remote(thread: RemoteThread) -> std::result::Result<Value, Thrown> {
    let who = thread.identity().await?;
    let call = Function::new("call", move |args| {
        let thread = thread.clone();
        Box::pin(async move {
            let mut args = Args::new(args);
            let method = args.text("method")?;
            remote_method(&thread, &method, args).await
        })
    });
    let facts = json!({ "threadId": who.thread_id, "agentId": who.agent_id, "userId": who.user_id,
        "createdAt": who.created_us, "terminated": who.terminated_us });
    Ok(Value::Object(vec![("facts".to_owned(), facts.into()), ("call".to_owned(), call.into())]))
}

/// A page in the order that was asked for: over HTTP it is always that of time (spec §14.3).
fn in_order(mut page: Json, query: &Query) -> Json {
    if query.get("order") != Some("asc")
        && let Some(messages) = page.get_mut("messages").and_then(Json::as_array_mut)
    {
        messages.reverse();
    }
    page
}

async fn remote_method(
    thread: &RemoteThread,
    method: &str,
    mut args: Args,
) -> std::result::Result<Value, Thrown> {
    Ok(match method {
        "getMessages" => {
            let query = args.query()?;
            in_order(thread.get_messages(&query).await?, &query).into()
        }
        "queueMessage" => {
            thread.queue_message(message(args.object("input")?)?).await?;
            Value::Undefined
        }
        "injectMessage" => Value::String(thread.inject_message(message(args.object("input")?)?).await?),
        "getValue" => nullable(thread.get_value::<Json>(&args.text("key")?).await?),
        "setValue" => {
            let key = args.text("key")?;
            let value = args.storable("value")?;
            done(thread.set_value(&key, &value).await)?
        }
        "readFile" => buffer(thread.read_file(&args.text("path")?).await?),
        "terminate" => done(thread.terminate().await)?,
        other => return Err(Thrown::new(format!("Another thread has no {other}() from here."))),
    })
}

fn json_of<T: Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value).map(Value::from).map_err(Error::internal)
}

fn nullable(value: Option<Json>) -> Value {
    value.map_or(Value::Null, Value::from)
}

fn done(result: Result<()>) -> Result<Value> {
    result.map(|()| Value::Undefined)
}

fn buffer(bytes: Option<Bytes>) -> Value {
    bytes.map_or(Value::Null, |bytes| Value::Binary(BinaryKind::ArrayBuffer, bytes))
}
