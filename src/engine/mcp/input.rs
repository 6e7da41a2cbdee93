//! Input that a server requests from people during a call (`input_required`), with the state that the server
//! receives with the answers. The wait is in `waits::input`.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::engine::features::McpClient;
use crate::engine::mcp::sealed_text::SealedText;
use crate::engine::waits::input::InputCall;
use crate::error::{Error, Result};
use crate::mcp_client::elicit::InputRequired;
use crate::store::receipts::ServerCallState;

impl McpClient<'_> {
    /// The people's answers to a server, and the state that the server wants back.
    pub(super) fn answered_input(&self, at: &ServerCallState) -> Result<(Option<Value>, Option<String>)> {
        let answers = self.waits().input_answers(at)?;
        let sealed = at.state.clone().and_then(|sealed| crate::json::from_value::<SealedText>(sealed).ok());
        let back = match sealed {
            Some(sealed) => {
                self.read(|state, _| Ok(self.unsealed(&state.meta.thread_id, "state", sealed)))?
            }
            None => None,
        };
        Ok(((!answers.is_empty()).then_some(Value::Object(answers)), back))
    }

    /// Parks the run until people have answered a server. Returns only where the run cannot be parked, with the
    /// model's error result.
    pub(super) async fn park_for_server_input(
        &self,
        at: InputCall<'_>,
        required: InputRequired,
        call_state: ServerCallState,
    ) -> Result<ToolResult> {
        let thread = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
        let sealed = |text: String| serde_json::to_value(self.sealed(&thread, "state", &text));
        let state = required.state.map(sealed).transpose().map_err(Error::internal)?;
        self.waits().park_for_input(at, required.asked, ServerCallState { state, ..call_state }).await
    }
}
