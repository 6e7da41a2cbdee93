//! What listeners are told of calls: that one starts, and that it is done.

use crate::engine::call::Call;
use crate::engine::features::Activity;
use crate::json;
use crate::limits;
use crate::spec::message::ToolStatus;
use crate::store::messages::message_id;

/// A call that listeners are told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    /// The tool.
    pub(crate) name: &'a str,
    /// The model's id of the call; none where code makes it.
    pub(crate) id: Option<&'a str>,
    /// As the model wrote them.
    pub(crate) arguments: Option<&'a str>,
    /// Seq of the message that its result will be.
    pub(crate) seq: Option<i64>,
}

impl<'a> Told<'a> {
    /// A call of a reply.
    pub(crate) fn of(call: &'a Call) -> Told<'a> {
        Told {
            name: &call.call.name,
            id: Some(&call.call.id),
            arguments: Some(&call.call.arguments),
            seq: Some(call.seq),
        }
    }
}

impl Activity<'_> {
    /// A tool starts.
    pub(crate) fn announce_tool_start(&self, call: &Told<'_>) {
        if self.has_listeners() {
            let shown = call.arguments.filter(|text| text.len() <= limits::FRAME_ARGUMENTS_BYTES);
            let shown = shown.map(|text| self.variables().redact(text.to_owned()));
            let result = self.result_of(call);
            self.announce(
                "tool_started",
                json!({ "tool": call.name, "call_id": call.id, "arguments": shown, "message_id": result }),
            );
        }
    }

    /// A tool is done.
    pub(crate) fn announce_tool_end(&self, call: &Told<'_>, status: ToolStatus) {
        if self.has_listeners() {
            let result = self.result_of(call);
            self.announce(
                "tool_completed",
                json!({ "tool": call.name, "status": status, "call_id": call.id, "message_id": result }),
            );
        }
    }

    /// Id of the message that a call's result is stored as.
    fn result_of(&self, call: &Told<'_>) -> Option<String> {
        let seq = call.seq?;
        self.read(|state, _| Ok(message_id(&state.meta.stem, seq))).ok()
    }
}
