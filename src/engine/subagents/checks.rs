//! Checks before a call creates or messages a child. A failed check is an error result that tells the model
//! what to do.

use crate::definitions::message::ToolResult;
use crate::engine::features::Subagents;
use crate::engine::subagents::call::NewChild;
use crate::engine::subagents::envelope::{Content, EnvelopeBody};
use crate::engine::subagents::shown::listed;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::store::children::{Child, ChildState};
use crate::store::log_record::Event;
use crate::store::runs::Parking;
use crate::store::state::State;

pub(super) fn refused(text: impl Into<String>) -> ToolResult {
    ToolResult::error(text)
}

/// Refuses to wait where the run cannot be parked.
pub(super) fn may_wait(
    waits: bool,
    receipt: Option<i64>,
    parking: Parking,
    name: &str,
) -> Result<(), ToolResult> {
    if !waits || (receipt.is_some() && parking == Parking::Possible) {
        return Ok(());
    }
    let text = format!("\"{name}\" cannot be waited for here; queue it instead (queueTool).");
    Err(ToolResult { error_code: Some("would_wait".into()), ..refused(text) })
}

impl Subagents<'_> {
    /// Checks the limits on depth and number of children, and the content of the first message.
    pub(super) fn room_for(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        new: &NewChild<'_>,
    ) -> Result<Result<(), ToolResult>> {
        let name = &new.agent.name;
        let depth = state.meta.parent.as_ref().map_or(0, |parent| parent.depth);
        if depth >= limits::SUBAGENT_DEPTH {
            let most = limits::SUBAGENT_DEPTH;
            return Ok(Err(refused(format!(
                "\"{name}\" was not created: subagents within subagents go {most} deep at most. Do the work here."
            ))));
        }
        let open = state.open_children(sql)?;
        let alike = |child: &&Child| child.agent == *name && child.state.exists() && !child.is_worker();
        let own: Vec<&Child> = open.iter().filter(alike).collect();
        if let Some(most) = new.most().filter(|most| own.len() >= *most as usize) {
            let known: Vec<String> = own.iter().take(50).map(|child| listed(child)).collect();
            return Ok(Err(refused(format!(
                "\"{name}\" was not created: {most} of it are active, which is the limit. Use subagent_message to write to \
                 one of them: {}.",
                known.join("; ")
            ))));
        }
        if state.meta.children >= limits::CHILDREN && !self.end_stopped_child(state, sql)? {
            let most = limits::CHILDREN;
            return Ok(Err(refused(format!(
                "\"{name}\" was not created: {most} subagents are active, the most that a thread has."
            ))));
        }
        Ok(self.check_content(sql, &new.words)?.map_or(Ok(()), Err))
    }

    /// Terminates the oldest child that a person stopped and that no call can resume, to make room. Returns
    /// whether there was one.
    fn end_stopped_child(&self, state: &mut State, sql: &dyn Sql) -> Result<bool> {
        let Some(mut child) = state.open_children(sql)?.iter().find(|child| child.rests_for_good()).cloned()
        else {
            return Ok(false);
        };
        self.send_to_child(state, sql, &mut child, EnvelopeBody::Terminate)?;
        child.state = ChildState::Terminated;
        "terminated".clone_into(&mut child.status);
        let text =
            format!("The subagent {} was stopped, and ended to make room for another.", listed(&child));
        Event::subagent("terminated", &child, state.active(), Some(&text)).insert(sql, self.host.now_us())?;
        state.update_child(sql, child)?;
        Ok(true)
    }

    /// Checks the text and files of an envelope.
    pub(super) fn check_content(&self, sql: &dyn Sql, words: &Content) -> Result<Option<ToolResult>> {
        let mut missing = Vec::new();
        for path in &words.files {
            if !matches!(crate::engine::files::attach::stat(sql, "attachments", path), Ok(Some(_))) {
                missing.push(path.as_str());
            }
        }
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Ok(Some(refused(format!("Nothing was sent: these files do not exist here: {missing}."))));
        }
        if words.files.len() > limits::ATTACHMENTS {
            let (count, most) = (words.files.len(), limits::ATTACHMENTS);
            return Ok(Some(refused(format!(
                "Nothing was sent: {count} attachments are too many; the limit is {most}."
            ))));
        }
        let bytes = serde_json::to_string(words).map_err(Error::internal)?.len();
        if bytes > limits::ENVELOPE_BYTES / 2 {
            let most = limits::ENVELOPE_BYTES / 2;
            return Ok(Some(refused(format!(
                "Nothing was sent: the message has {bytes} bytes as JSON; the limit is {most}. Put it into a file and attach that."
            ))));
        }
        Ok(None)
    }
}
