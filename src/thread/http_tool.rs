//! Tools behind a URL (docs/tools.md): one signed POST, its answer bounded in size and time, every failure an error
//! result. Redirects are not followed, and private targets are refused unless the deployment lists them.

use std::rc::Rc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Thread;
use super::host::{Host, NativeCall};
use super::model_call::Watch;
use super::tool_call::{first_bytes, timed_out};
use crate::http::{Body as _, Request, private_target};
use crate::limits;
use crate::signing;
use crate::spec::message::ToolResult;
use crate::spec::{Http, Tool, template};

impl<H: Host> Thread<H> {
    /// Calls it once; nothing here repeats a call.
    pub(super) async fn http_tool(
        self: &Rc<Self>,
        http: &Http,
        tool: &Tool,
        env: &dyn Fn(&str) -> Option<String>,
        call: NativeCall,
    ) -> ToolResult {
        let request = match self.http_request(http, tool, env, &call) {
            Ok(request) => request,
            Err(text) => return ToolResult::error(text),
        };
        let limit_ms = tool.timeout_ms.unwrap_or((limits::HTTP_TOOL_US / 1000) as u64);
        let limit_ms = limit_ms.min(limits::HTTP_TOOL_MAX_MS);
        let deadline = self.host.now_us() + i64::try_from(limit_ms).unwrap_or(i64::MAX / 2000) * 1000;
        self.live.outgoing.set(self.live.outgoing.get() + 1);
        let answer = Watch::new(&self.host, deadline).within(self.exchange(&tool.name, request)).await;
        answer.unwrap_or_else(|| timed_out(&tool.name, limit_ms))
    }

    fn http_request(
        &self,
        http: &Http,
        tool: &Tool,
        env: &dyn Fn(&str) -> Option<String>,
        call: &NativeCall,
    ) -> Result<Request, String> {
        let name = &tool.name;
        let deployment = |variable: &str| self.deployment(variable);
        let unset = |error: template::Error| format!("\"{name}\" is not set up: {error}");
        let url = template::render_url(&http.url, &deployment, env).map_err(unset)?;
        let allowed = self.host.var("BOBBIN_ALLOW_PRIVATE_HOSTS").unwrap_or_default();
        if let Some(host) = private_target(&url, &allowed) {
            return Err(format!(
                "\"{name}\" points to the private address {host}, which is not allowed here."
            ));
        }
        let body = json!({
            "threadId": call.thread_id, "agentId": call.agent_id, "name": name, "args": call.args,
            "callId": call.call_id, "idempotencyKey": call.idempotency_key, "options": call.options,
        })
        .to_string();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (trace, span) = call.random.split_at(8);
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("idempotency-key".to_owned(), call.idempotency_key.clone()),
            (
                "traceparent".to_owned(),
                format!("00-{}{}-{}-01", hex(trace), hex(&call.now_us.to_be_bytes()), hex(span)),
            ),
        ];
        if let Some(secret) = self.host.var("BOBBIN_SIGNING_SECRET") {
            let signature = signing::sign(&secret, call.now_us / limits::SECOND_US, body.as_bytes());
            headers.push(("x-bobbin-signature".to_owned(), signature));
        }
        for (header, value) in &http.headers {
            let value = template::render(value, env).map_err(unset)?;
            let header = header.to_ascii_lowercase();
            headers.retain(|(other, _)| *other != header);
            headers.push((header, value));
        }
        Ok(Request { method: "POST", url, headers, body: Some(Bytes::from(body)) })
    }

    async fn exchange(&self, name: &str, request: Request) -> ToolResult {
        let mut response = match self.host.fetch(request).await {
            Ok(response) => response,
            Err(error) => return ToolResult::error(format!("\"{name}\" could not be reached: {error}")),
        };
        let mut body = Vec::new();
        while let Some(chunk) = response.body.next().await {
            match chunk {
                Ok(chunk) if body.len() + chunk.len() <= limits::HTTP_TOOL_BYTES => {
                    body.extend_from_slice(&chunk)
                }
                Ok(_) => {
                    return ToolResult::error(format!(
                        "The answer of \"{name}\" is over {} bytes, the limit.",
                        limits::HTTP_TOOL_BYTES
                    ));
                }
                Err(error) => {
                    return ToolResult::error(format!("The answer of \"{name}\" broke off: {error}"));
                }
            }
        }
        let text = String::from_utf8_lossy(&body);
        match response.status {
            200..300 => understood(&text),
            300..400 => ToolResult::error(format!(
                "http {} from {name}: a redirect, which is not followed",
                response.status
            )),
            status => {
                let said = first_bytes(&text, limits::HTTP_TOOL_ERROR_BYTES);
                ToolResult::error(format!("http {status} from {name}: {said}"))
            }
        }
    }
}

/// A tool result, if the answer is one; any other answer is the result's text.
fn understood(text: &str) -> ToolResult {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) if is_result(&fields) => serde_json::from_value(Value::Object(fields))
            .unwrap_or_else(|error| {
                ToolResult::error(format!("The tool gave a result that cannot be read: {error}"))
            }),
        Ok(Value::String(text)) => ToolResult::success(text),
        _ => ToolResult::success(text),
    }
}

fn is_result(fields: &serde_json::Map<String, Value>) -> bool {
    matches!(fields.get("status").and_then(Value::as_str), Some("success" | "error"))
}
