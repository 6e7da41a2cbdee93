//! A related thread, for code: it has the members of `state`, which are executed there. One API request
//! carries the call, by name. The thread executes it like a call of its own code.
//!
//! A thread's values (spec §18.1), its variables, and its run stay private.

use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::json;
use crate::limits;
use crate::sandbox::backlog::reserve;
use crate::sandbox::{Function, Value};
use crate::sdk::ThreadState;
use crate::sdk::relations::RemoteThread;
use crate::sdk::remote_call::{MemberCall, WireValue};
use crate::sdk::scope::read_only;
use crate::work::code::args::Args;
use crate::work::code::bridge::files::buffer;
use crate::work::code::bridge::options::{message, plain_file_options};
use crate::work::code::bridge::{MESSAGES, done, in_order, method_of};

/// Members that another thread may call, besides those with their own request.
const MEMBERS: [&str; 27] = [
    "getMessage",
    "updateMessage",
    "deleteMessage",
    "getLogs",
    "envType",
    "setEnv",
    "notifyParent",
    "setStatus",
    "queueTool",
    "invokeTool",
    "scheduleEffect",
    "getScheduledEffects",
    "removeScheduledEffect",
    "emit",
    "writeFile",
    "statFile",
    "readdirFile",
    "unlinkFile",
    "mkdirFile",
    "rmdirFile",
    "moveFile",
    "renameFile",
    "getFileStats",
    "grepFiles",
    "findFiles",
    "getFileThumbnail",
    "about",
];

/// The reason why a member is not available remotely.
fn refused(method: &str) -> Error {
    let why = match method {
        "getValue" | "setValue" => {
            "the values of a thread are its own: let it tell them, with a message or a tool".to_owned()
        }
        "env" | "instanceEnv" => "the values of variables are the thread's own".to_owned(),
        "runCode" => "run code in the thread that you are in".to_owned(),
        "stop" | "forceTurn" | "trace" | "progress" | "setContext" | "getContext" | "removeContext" => {
            "a run belongs to the thread that it is in".to_owned()
        }
        "readFileStream" | "readFileChunks" => "readFile() gives the whole file".to_owned(),
        _ => "there is no such member".to_owned(),
    };
    Error::field("method", format!("{method}() does not reach another thread: {why}."))
}

/// Executes a call from a related thread.
pub(crate) async fn answer(state: &ThreadState, asked: MemberCall) -> Result<Json> {
    let MemberCall { method, args, package: _, only_reads: _ } = asked;
    if !MEMBERS.contains(&method.as_str()) {
        return Err(refused(&method));
    }
    let args = args.into_iter().map(WireValue::value).collect::<Result<Vec<Value>>>()?;
    let value = match method.as_str() {
        "about" => about(state)?.into(),
        _ => method_of(state, &method, Args::new(args)).await?,
    };
    if let Some(what) = state.calls_api().scope().refused() {
        return Err(read_only(what));
    }
    serde_json::to_value(WireValue::of(value)?).map_err(Error::internal)
}

/// The properties of `state`.
fn about(state: &ThreadState) -> Result<Json> {
    let parent = state.get_parent_thread()?.map(|parent| parent.id().to_owned());
    Ok(json!({ "children": state.children()?, "arguments": state.arguments()?, "parent": parent }))
}

/// A related thread, as input for the harness.
pub(super) async fn remote(thread: RemoteThread) -> Result<Value> {
    let who = thread.identity().await?;
    let Json::Object(about) = thread.member("about", Vec::new()).await? else {
        return Err(Error::internal("the thread says nothing of itself"));
    };
    let mut facts = json!({ "threadId": who.thread_id, "agentId": who.agent_id, "userId": who.user_id,
        "createdAt": who.created_us, "terminated": who.terminated_us });
    for name in ["children", "arguments"] {
        if let (Some(facts), Some(value)) = (facts.as_object_mut(), about.get(name)) {
            facts.insert(name.to_owned(), value.clone());
        }
    }
    let call = {
        let about = std::rc::Rc::new(about);
        Function::new("call", move |args| {
            let (thread, about) = (thread.clone(), about.clone());
            Box::pin(async move {
                let mut args = Args::new(args);
                let method = args.text("method")?;
                Ok(remote_method(&thread, &about, &method, args).await?)
            })
        })
    };
    Ok(Value::Object(vec![("facts".to_owned(), facts.into()), ("call".to_owned(), call.into())]))
}

async fn remote_method(
    thread: &RemoteThread,
    about: &Map<String, Json>,
    method: &str,
    mut args: Args,
) -> Result<Value> {
    Ok(match method {
        "getMessages" => {
            let query = args.query(&MESSAGES)?;
            in_order(thread.get_messages(&query).await?, &query).into()
        }
        "queueMessage" => {
            thread.queue_message(message(args.object("input")?)?).await?;
            Value::Undefined
        }
        "injectMessage" => {
            let id = thread.inject_message(message(args.object("input")?)?).await?;
            thread.member("getMessage", vec![id.into()]).await?.into()
        }
        "readFile" => {
            // The size is not known in advance.
            reserve(limits::FILE_WHOLE_BYTES).await;
            buffer(thread.read_file(&args.text("path")?).await?)
        }
        "terminate" => done(thread.terminate().await)?,
        "getChildThread" => {
            let reference = args.text("referenceId")?;
            let children = about.get("children").and_then(Json::as_array);
            let is_child = children.is_some_and(|children| {
                children
                    .iter()
                    .any(|child| child.get("reference").and_then(Json::as_str) == Some(&*reference))
            });
            if !is_child {
                return Ok(Value::Null);
            }
            Box::pin(remote(thread.relative(&reference))).await?
        }
        "getParentThread" => match about.get("parent").and_then(Json::as_str) {
            Some(parent) => Box::pin(remote(thread.relative(parent))).await?,
            None => Value::Null,
        },
        "writeFile" => {
            let mut given = args.all();
            if let Some(options) = given.get_mut(3) {
                *options = plain_file_options(std::mem::replace(options, Value::Undefined));
            }
            called(thread, method, given).await?
        }
        "scheduleEffect" => {
            // Refused here, because JSON would lose it in transit.
            let mut given = vec![args.next(), args.storable_object("args")?.into()];
            given.extend(args.all());
            called(thread, method, given).await?
        }
        _ if MEMBERS.contains(&method) => called(thread, method, args.all()).await?,
        other => return Err(refused(other)),
    })
}

async fn called(thread: &RemoteThread, method: &str, args: Vec<Value>) -> Result<Value> {
    let args = args.into_iter().map(WireValue::of).collect::<Result<Vec<WireValue>>>()?;
    thread.call(method, args).await?.value()
}
