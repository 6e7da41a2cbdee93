//! `GET …/context`: what the next request to the thread's model would hold, and how much of the window each part takes.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::engine::context::space::{Parts, Space};
use crate::engine::definitions::Definitions;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::models::{CachedJson, ChatMessage};
use crate::request::Reply;
use crate::spec::Model;
use crate::store::messages::{message_id, page};
use crate::store::runs::Step;
use crate::store::state::State;
use crate::store::window::Window;

/// The messages of a request: those of the turn, and of what was said before.
struct Said {
    turn: usize,
    history: usize,
    messages: usize,
    /// Seq of the first one.
    from: Option<i64>,
    left_out: i64,
}

impl Thread {
    /// `GET …/context`. Hooks are not run: what they would change is not seen here.
    pub(crate) async fn get_context(self: &Rc<Self>) -> Result<Reply> {
        self.ready_env().await?;
        let Some(definitions) = self.definitions()? else {
            let text = "The thread's agent, its prompt or its model is not among the definitions.";
            return Err(
                Error::new(Code::Conflict, text).hint("Deploy it again, or give the thread another agent.")
            );
        };
        let model = self.current_model(&definitions, Step::own(0))?;
        let rendered = definitions.prompt.render(&self.catalog, &|name| self.prompt_env(&definitions, name));
        let rendered = self.as_with_skills(&definitions, model, rendered)?;
        let parts = Parts::of(CachedJson::from(ChatMessage::System(self.redact(rendered))));
        let space = self.space(&definitions, model, &parts)?;
        let body = self.read_mut(|state, sql| {
            let said = said(&definitions, &space, state, sql)?;
            Ok(shown(model, &space, &said, &state.meta.thread_id))
        })?;
        Ok(Reply::json(200, &body))
    }
}

/// What the next request would have of the messages. Nothing is stored, but what was read stays in memory.
fn said(definitions: &Definitions<'_>, space: &Space, state: &mut State, sql: &dyn Sql) -> Result<Said> {
    let prompt = definitions.prompt;
    let run = state.active();
    let beyond = state.undrained.unwrap_or(i64::MAX);
    let (turn_from, short) = run.map_or((beyond, 0), |run| (run.turn_from, run.short_below));
    let cut = if prompt.include_chat { state.meta.window_cut.min(turn_from) } else { turn_from };
    let window = match state.window.take() {
        Some(window) if window.reaches(cut) => window,
        _ => Window::load(sql, cut, turn_from, space.messages)?,
    };
    let from = window.fit(cut, turn_from, i64::MAX, space.messages, definitions.active.role());
    let short_below = window.shorten(short, turn_from, i64::MAX, space.messages);
    let (of_turn, turn) = window.weigh(turn_from.max(from), i64::MAX, short_below);
    let (before, history) = window.weigh(from, turn_from, short_below);
    let first = window.since(from).first().map(|entry| entry.row.seq);
    state.window = Some(window);
    let left_out = page::count_top_level(sql, first.unwrap_or(from))?;
    Ok(Said { turn, history, messages: of_turn + before, from: first, left_out })
}

fn shown(model: &Model, space: &Space, said: &Said, thread: &str) -> Value {
    let counted = |tokens: usize| space.counted(tokens);
    let Space { system, tools, summary, memory, .. } = *space;
    let all = counted(system + tools + summary + memory + said.turn + said.history);
    json!({
        "model": model.name,
        "window": model.capabilities.max_context_tokens.unwrap_or(limits::WINDOW_TOKENS),
        "budget": space.input,
        "factor": (space.factor * 1_000.0).round() / 1_000.0,
        "parts": {
            "system": counted(system), "tools": counted(tools), "summary": counted(summary),
            "memory": counted(memory), "turn": counted(said.turn), "history": counted(said.history),
        },
        "used": (all as f64 / space.input.max(1) as f64 * 1_000.0).round() / 1_000.0,
        "history": {
            "from": said.from.map(|seq| message_id(thread, seq)), "messages": said.messages,
            "left_out": said.left_out,
        },
    })
}
