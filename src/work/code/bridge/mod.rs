//! `ThreadState` for sandboxed code (spec §12): one function, `call(method, ...args)`, from which the harness
//! creates the members of `state`. Every argument is untrusted.
//!
//! * `files`: members for files. `remote_thread`: members of another thread. `options`: parsing of options and inputs.

mod files;
mod options;
pub(crate) mod remote_thread;

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::json;
use crate::request::Query;
use crate::request::fields::Body;
use crate::sandbox::{Exception, Function, Value};
use crate::sdk::ThreadState;
use crate::sdk::messages::MessageUpdate;
use crate::store::side::Side;
use crate::work::code::args::Args;
use crate::work::code::bridge::files::file_method;
use crate::work::code::bridge::options::{effect, env_kind, if_value, message, with_hint};
use crate::work::code::bridge::remote_thread::remote;

/// The function that calls a thread. `env`: the variables that the definition declares; no others are
/// visible.
pub(super) fn call(state: &ThreadState, env: Map<String, Json>) -> Function {
    let (state, env) = (state.clone(), Rc::new(RefCell::new(env)));
    Function::new("call", move |args| {
        let (state, env) = (state.clone(), env.clone());
        Box::pin(async move {
            let mut args = Args::new(args);
            let method = args.text("method")?;
            match method.as_str() {
                "env" => declared(&env.borrow(), &args.text("name")?),
                "instanceEnv" => {
                    let name = args.text("name")?;
                    // The same restriction: only declared names.
                    declared(&env.borrow(), &name)?;
                    Ok(state.instance_env(&name).await?.map_or(Value::Null, Value::String))
                }
                "setEnv" => {
                    let (name, value) = (args.text("name")?, args.text("value")?);
                    state.set_env(&name, &value, env_kind(args.optional_object("options")?)?)?;
                    // The code that set it may read it.
                    env.borrow_mut().insert(name, value.into());
                    Ok(Value::Undefined)
                }
                _ => Ok(method_of(&state, &method, args).await?),
            }
        })
    })
}

fn declared(env: &Map<String, Json>, name: &str) -> Result<Value, Exception> {
    let value = env.get(name).and_then(Json::as_str);
    value.map(Value::from).ok_or_else(|| {
        Exception::new(format!(
            "env: there is no value for {name}, or the definition does not list it in `variables`."
        ))
    })
}

/// Options of getMessages (spec §14.3); the last three are the API's.
const MESSAGES: [&str; 8] =
    ["limit", "offset", "order", "includeSilent", "maxDepth", "before", "after", "ids"];
/// Options of getLogs.
const LOGS: [&str; 3] = ["limit", "offset", "order"];

async fn method_of(state: &ThreadState, method: &str, mut args: Args) -> Result<Value> {
    Ok(match method {
        "getMessages" => {
            let query = args.query(&MESSAGES)?;
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
            state.update_message(&id, MessageUpdate::of(Body::of(updates)).map_err(with_hint)?).await?;
            nullable(state.get_message(&id)?)
        }
        "deleteMessage" => Value::Bool(state.delete_message(&args.text("id")?)?),
        "getLogs" => state.get_logs(&args.query(&LOGS)?)?.get("logs").cloned().unwrap_or_default().into(),
        "loadModel" => json_of(&state.load_model(&args.text("name")?)?)?,
        "loadPrompt" => json_of(&state.load_prompt(&args.text("name")?)?)?,
        "loadAgent" => json_of(&state.load_agent(&args.text("name")?)?)?,
        "envType" => json_of(&state.env_type(&args.text("name")?).await?)?,
        "setEnv" => {
            let (name, value) = (args.text("name")?, args.text("value")?);
            done(state.set_env(&name, &value, env_kind(args.optional_object("options")?)?))?
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
        "trace" => {
            let kind = args.text("kind")?;
            done(state.trace(&kind, args.optional_json().unwrap_or_default()))?
        }
        "progress" => done(state.progress(&args.text("text")?))?,
        "getValue" => nullable(state.get_value::<Json>(&args.text("key")?)?),
        "setValue" => {
            let key = args.text("key")?;
            let value = args.storable("value")?;
            match if_value(args.next())? {
                None => done(state.set_value(&key, &value))?,
                Some(expected) => Value::Bool(state.compare_and_set(&key, &expected, &value)?),
            }
        }
        "terminate" => done(state.terminate())?,
        "setContext" => {
            let key = args.text("key")?;
            state.set_context(&key, args.optional_json().unwrap_or_default());
            Value::Undefined
        }
        "removeContext" => {
            state.remove_context(&args.text("key")?);
            Value::Undefined
        }
        "getContext" => Json::Object(state.whole_context()).into(),
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
        other => return file_method(state, other, args),
    })
}

/// Facts about the thread that the code can use without a call, and the seed of its random numbers.
/// `history`: include the messages of its run, which few files need.
pub(super) fn facts(state: &ThreadState, entropy: Value, history: bool) -> Result<Value> {
    let who = state.identity()?;
    let running = state.execution()?;
    let messages = match &running {
        Some(execution) if history => Some(execution.message_history()?),
        _ => None,
    };
    let execution = running.map(|execution| {
        json!({
            "flowId": execution.flow_id, "currentSide": execution.current_side.as_str(), "stepCount": execution.step_count,
            "sideAStepCount": execution.side_a_step_count, "sideBStepCount": execution.side_b_step_count,
            "stopped": execution.stopped, "stoppedBy": execution.stopped_by.map(Side::as_str),
            "promptPath": execution.prompt_path, "messageHistory": messages,
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

fn execution(state: &ThreadState) -> Result<crate::sdk::run_handle::RunHandle> {
    state
        .execution()?
        .ok_or_else(|| Error::field("execution", "No run is under way here: `state.execution` is null."))
}

/// Puts a page into the requested order: over HTTP it is always chronological (spec §14.3).
fn in_order(mut page: Json, query: &Query) -> Json {
    if query.get("order") != Some("asc")
        && let Some(messages) = page.get_mut("messages").and_then(Json::as_array_mut)
    {
        messages.reverse();
    }
    page
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
