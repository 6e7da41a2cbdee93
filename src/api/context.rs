//! `GET …/context`: the content of the next request to the thread's model, the share of the window that each
//! part takes, and the current summary.

use crate::api::Api;
use crate::definitions::Model;
use crate::engine::context::space::Space;
use crate::engine::context::{next_span, window_from};
use crate::engine::definitions::Definitions;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::protocols::responses::context::{Context, ContextHistory, ContextParts};
use crate::request::{Query, Reply};
use crate::store::messages::{message_id, page};
use crate::store::state::State;
use crate::store::summaries;

/// The messages of a request: those of the turn, and those before it.
struct MessageSizes {
    turn: usize,
    history: usize,
    messages: usize,
    /// Seq of the first one.
    from: Option<i64>,
    left_out: i64,
}

impl Api<'_> {
    /// `GET …/context`. Hooks are not run, so their changes are missing.
    pub(super) async fn get_context(&self, query: &Query) -> Result<Reply> {
        let history = query.flag("history")?;
        self.variables().ready_env().await?;
        let definitions = self.definitions_now()?;
        let (model, _, space) = self.model_context().next_parts(&definitions)?;
        self.read_mut(|state, sql| {
            let said = said(&definitions, &space, state, sql)?;
            let (thread, current) = (&state.meta.stem, state.meta.summary.as_ref());
            let made = current.is_some_and(|current| current.epoch > 0);
            let holds = match current.filter(|current| current.upto > 0) {
                Some(current) => summaries::find(sql, current.epoch)?,
                None => None,
            };
            let all = if history && made { summaries::all(sql)? } else { Vec::new() };
            let body = Context {
                summary: holds.as_ref().map(|summary| summary.response(thread)),
                summaries: history.then(|| all.iter().map(|summary| summary.response(thread)).collect()),
                ..shown(model, &space, &said, thread)
            };
            Ok(Reply::json(200, &body))
        })
    }
}

/// The messages of the next request. Nothing is stored, but rows that were read stay in memory.
fn said(
    definitions: &Definitions<'_>,
    space: &Space,
    state: &mut State,
    sql: &dyn Sql,
) -> Result<MessageSizes> {
    let (past, span, short) = next_span(definitions, state);
    let window = window_from(state, sql, past, &span, space.messages)?;
    let from = window.fit(past, &span, space.messages);
    let short_below = window.shorten(short, from, &span, space.messages);
    let [(before, history), (of_turn, turn)] = window.weigh(from, &span, short_below);
    let first = span.sent(window.since(from)).next().map(|entry| entry.row.seq);
    state.window = Some(window);
    let left_out = page::count_top_level(sql, first.unwrap_or(from))?;
    Ok(MessageSizes { turn, history, messages: of_turn + before, from: first, left_out })
}

/// The context without summaries.
fn shown<'a>(model: &'a Model, space: &Space, said: &MessageSizes, thread: &str) -> Context<'a> {
    let counted = |tokens: usize| space.counted(tokens);
    let Space { system, tools, summary, memory, .. } = *space;
    let all = counted(system + tools + summary + memory + said.turn + said.history);
    Context {
        model: &model.name,
        window: model.capabilities.max_context_tokens.unwrap_or(limits::WINDOW_TOKENS),
        budget: space.input,
        factor: (space.factor * 1_000.0).round() / 1_000.0,
        parts: ContextParts {
            system: counted(system),
            tools: counted(tools),
            summary: counted(summary),
            memory: counted(memory),
            turn: counted(said.turn),
            history: counted(said.history),
        },
        used: (all as f64 / space.input.max(1) as f64 * 1_000.0).round() / 1_000.0,
        history: ContextHistory {
            from: said.from.map(|seq| message_id(thread, seq)),
            messages: said.messages as u64,
            left_out: said.left_out,
        },
        summary: None,
        summaries: None,
    }
}
