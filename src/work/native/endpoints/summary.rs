//! An overview of a thread.

use serde_json::Value;

use crate::error::Result;
use crate::json;
use crate::limits::SECOND_US;
use crate::request::Query;
use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};

/// `{thread, agent, owner, created_at, terminated, messages, last_message, values, keys}`: its identity, the
/// numbers of messages and values, the newest message, and the first keys. Times are whole seconds since
/// 1970.
pub(super) fn summary(call: &EndpointCall) -> Result<EndpointAnswer> {
    let identity = call.state.identity()?;
    let newest = call.state.get_messages(&Query(vec![("limit".into(), "1".into())]))?;
    let last = newest.pointer("/messages/0").map(|message| {
        json!({ "id": message.get("id"), "role": message.get("role"), "content": message.get("content") })
    });
    let values = call.state.get_values(&Query::default())?;
    let listed = values.get("values").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let keys: Vec<&Value> = listed.iter().filter_map(|value| value.get("key")).collect();
    let body = json!({
        "thread": identity.thread_id,
        "agent": identity.agent_id,
        "owner": identity.user_id,
        "created_at": identity.created_us / SECOND_US,
        "terminated": identity.terminated_us.map(|us| us / SECOND_US),
        "messages": newest.get("total"),
        "last_message": last,
        "values": values.get("total"),
        "keys": keys,
    });
    Ok(EndpointAnswer::json(200, &body))
}
