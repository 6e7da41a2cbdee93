//! `POST /threads`: allocates a new id, claims it in the owner's directory if the request has an
//! `Idempotency-Key`, and forwards the request to the new thread's object.

use bobbin::access::{Action, Caller};
use bobbin::directory::DirectoryCall;
use bobbin::request::directory_call::name_of;
use bobbin::request::{Query, ThreadRequest, ThreadRoute, thread_id};
use bobbin::{Code, Error, Result};
use serde_json::{Map, Value};

use crate::bindings::{Env, random};
use crate::remote::ObjectResponse;
use crate::router::{call_directory, call_thread};

/// Creates a thread, or finds the one that the same request created before, or the one with the key in the
/// body.
pub(crate) async fn create(
    env: &Env,
    caller: Caller,
    idempotency_key: Option<String>,
    body: String,
) -> Result<ObjectResponse> {
    let New { owner, id, body } = New::of(&caller, body)?;
    caller.may(&Action::CreateThread { user_id: owner.as_deref() }, None)?;
    let id = id.unwrap_or_else(|| thread_id::from_random(random()));
    let id = match &idempotency_key {
        None => id,
        Some(key) => match claim(env, owner.as_deref(), key, &body, id).await? {
            Ok(id) => id,
            Err(refused) => return Ok(refused),
        },
    };
    make(env, caller, id, body).await
}

/// Creates or finds the thread of this id, which only this caller can have derived.
pub(crate) async fn create_as(env: &Env, caller: Caller, id: String, body: String) -> Result<ObjectResponse> {
    let New { owner, body, .. } = New::of(&caller, body)?;
    caller.may(&Action::CreateThread { user_id: owner.as_deref() }, None)?;
    make(env, caller, id, body).await
}

async fn make(env: &Env, caller: Caller, id: String, body: String) -> Result<ObjectResponse> {
    let request = ThreadRequest {
        thread_id: id.clone(),
        life: None,
        caller,
        route: ThreadRoute::Create,
        query: Query::default(),
        idempotency_key: None,
        headers: Vec::new(),
        body: String::new(),
    };
    call_thread(env, &id, &request, &body).await
}

/// The fields of a request for a thread that are needed to find the object.
struct New {
    owner: Option<String>,
    /// The id derived from its key, if it has one.
    id: Option<String>,
    body: String,
}

impl New {
    /// A caller that is itself an owner may leave out its name, which is then added to the body here.
    fn of(caller: &Caller, body: String) -> Result<New> {
        let mut fields: Map<String, Value> = bobbin::json::from_str(&body)
            .map_err(|error| Error::new(Code::BadJson, format!("The body is no JSON object: {error}.")))?;
        let named = match fields.get("user_id") {
            Some(Value::String(id)) => Some(id.clone()),
            None | Some(Value::Null) => None,
            Some(_) => return Err(Error::field("user_id", "`user_id` must be text.")),
        };
        let owner = named.clone().or_else(|| caller.owner().map(str::to_owned));
        let key = match fields.get("key") {
            Some(Value::String(key)) => Some(key.as_str()),
            None | Some(Value::Null) => None,
            Some(_) => return Err(Error::field("key", "`key` must be text.")),
        };
        key.map_or(Ok(()), thread_id::check_key)?;
        let id = key.map(|key| thread_id::of_key(owner.as_deref(), key));
        let body = match (&named, &owner) {
            (None, Some(owner)) => {
                fields.insert("user_id".into(), owner.as_str().into());
                Value::Object(fields).to_string()
            }
            _ => body,
        };
        Ok(New { owner, id, body })
    }
}

/// The id to create under this key, or the directory's refusal.
async fn claim(
    env: &Env,
    owner: Option<&str>,
    key: &str,
    body: &str,
    id: String,
) -> Result<std::result::Result<String, ObjectResponse>> {
    let call = DirectoryCall::claim(key, body, id);
    let answer = call_directory(env, &name_of(owner), &call).await?;
    if answer.status != 200 {
        return Ok(Err(answer));
    }
    let body: Value =
        bobbin::json::from_str(&answer.body.as_string().unwrap_or_default()).map_err(Error::internal)?;
    let claimed = body.get("threadId").and_then(Value::as_str);
    claimed
        .map(|id| Ok(id.to_owned()))
        .ok_or_else(|| Error::internal("the directory answered a claim without an id"))
}
