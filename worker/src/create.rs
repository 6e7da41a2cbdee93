//! `POST /threads`: a new id, claimed in the owner's directory when the request has an `Idempotency-Key`, and the
//! request handed on to the new thread's object.

use bobbin::access::{Action, Caller};
use bobbin::directory::DirectoryCall;
use bobbin::request::directory_call::name_of;
use bobbin::request::{Query, ThreadRequest, ThreadRoute, thread_id};
use bobbin::{Code, Error, Result};
use serde_json::{Map, Value};

use crate::bindings::{Env, random};
use crate::remote::Answer;
use crate::router::{call_directory, call_thread};

/// Creates a thread, or finds the one that the same request created before.
pub(crate) async fn create(env: &Env, caller: Caller, key: Option<String>, body: String) -> Result<Answer> {
    let (owner, body) = owner_of(&caller, body)?;
    caller.may(&Action::CreateThread { user_id: owner.as_deref() }, None)?;
    let id = thread_id::from_random(random());
    let id = match &key {
        None => id,
        Some(key) => match claim(env, owner.as_deref(), key, &body, id).await? {
            Ok(id) => id,
            Err(refused) => return Ok(refused),
        },
    };
    let request = ThreadRequest {
        thread_id: id.clone(),
        caller,
        route: ThreadRoute::Create,
        query: Query::default(),
        idempotency_key: None,
        headers: Vec::new(),
        body: String::new(),
    };
    call_thread(env, &id, &request, &body).await
}

/// The owner that the body names, and the body. A caller that is itself an owner need not name itself.
fn owner_of(caller: &Caller, body: String) -> Result<(Option<String>, String)> {
    let mut fields: Map<String, Value> = serde_json::from_str(&body)
        .map_err(|error| Error::new(Code::BadJson, format!("The body is no JSON object: {error}.")))?;
    match (fields.get("user_id"), caller.owner()) {
        (Some(Value::String(id)), _) => Ok((Some(id.clone()), body)),
        (None | Some(Value::Null), None) => Ok((None, body)),
        (None | Some(Value::Null), Some(owner)) => {
            fields.insert("user_id".into(), owner.into());
            Ok((Some(owner.to_owned()), Value::Object(fields).to_string()))
        }
        (Some(_), _) => Err(Error::field("user_id", "`user_id` must be text.")),
    }
}

/// The id to create under this key, or the directory's refusal.
async fn claim(
    env: &Env,
    owner: Option<&str>,
    key: &str,
    body: &str,
    id: String,
) -> Result<std::result::Result<String, Answer>> {
    let call = DirectoryCall::claim(key, body, id);
    let answer = call_directory(env, &name_of(owner), &call).await?;
    if answer.status != 200 {
        return Ok(Err(answer));
    }
    let body: Value =
        serde_json::from_str(&answer.body.as_string().unwrap_or_default()).map_err(Error::internal)?;
    let claimed = body.get("threadId").and_then(Value::as_str);
    claimed
        .map(|id| Ok(id.to_owned()))
        .ok_or_else(|| Error::internal("the directory answered a claim without an id"))
}
