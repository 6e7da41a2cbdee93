//! `GET …/steps/:message/request`: the request to the model that wrote a reply. Returns the stored bytes if
//! they were kept. Otherwise the request is rebuilt from the rows before the reply, with today's definitions.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::Api;
use crate::api::step_parts;
use crate::definitions::Model;
use crate::definitions::message::Role;
use crate::engine::attachments::images::ImageAllowance;
use crate::engine::context::history::History;
use crate::engine::context::space::SystemMessages;
use crate::engine::definitions::Definitions;
use crate::engine::summary::message_of;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::models::{CachedJson, ChatMessage, ChatRequest, openai};
use crate::protocols::responses::runs::{RequestSource, StepRequest};
use crate::request::Reply;
use crate::store::messages::{Row, message_seq, not_found};
use crate::store::runs::Run;
use crate::store::side::Side;
use crate::store::state::State;
use crate::store::window::{Author, Entry, HistoryRange, Span, Window};
use crate::store::{bodies, logs, messages as rows, summaries};

/// A reply, and the attempt that wrote it.
struct LoggedReply {
    row: Row,
    /// The prompt of the reply, the name of its model, and its log, as far as they are still known.
    prompt: String,
    model: Option<String>,
    log: Option<i64>,
    at_us: i64,
    /// The first seq that was free when its run began.
    first: i64,
    /// The body, if it was kept whole.
    body: Option<Box<RawValue>>,
}

impl Api<'_> {
    /// `GET …/steps/:message/request`. Hooks are not run, memories are not searched, and images are described
    /// in words.
    pub(super) async fn get_step_request(&self, id: &str) -> Result<Reply> {
        self.variables().ready_env().await?;
        let mut asked = self.read(|state, sql| asked_of(state, sql, id))?;
        let (source, body, messages) = match asked.body.take() {
            Some(body) => (RequestSource::Stored, body, None),
            None => {
                let request = self.rebuilt(&asked)?;
                let body = RawValue::from_string(openai::request::written(&request));
                (RequestSource::Rebuilt, body.map_err(Error::internal)?, Some(request.messages.len() as u64))
            }
        };
        let log = asked.log.map(|log| format!("l_{log}"));
        let model = asked.model.as_deref().unwrap_or_default();
        let factor = self.read(|state, _| Ok(state.meta.calibration.factor(model)))?;
        let read = crate::json::from_str(body.get()).map_err(Error::internal)?;
        let tokens = step_parts::of_request(&read, factor);
        let (prompt, model) = (&*asked.prompt, asked.model.as_deref());
        let body = &*body;
        Ok(Reply::json(200, &StepRequest { message: id, source, prompt, model, log, messages, tokens, body }))
    }

    /// The request, rebuilt from the stored rows.
    fn rebuilt(&self, asked: &LoggedReply) -> Result<ChatRequest> {
        let agent = self.read(|state, _| Ok(state.meta.agent.clone()))?;
        let side = if asked.row.role == Role::User { Side::B } else { Side::A };
        let gone = || {
            let text = format!("The prompt “{}” or its model is not among the definitions.", asked.prompt);
            Error::new(Code::Conflict, text).hint("What it held can only be told from what is deployed.")
        };
        let prompt = self.catalog.prompts.get(&asked.prompt).ok_or_else(gone)?;
        let of_agent = self.definitions_of(&agent, side).or_else(|| self.definitions_of(&agent, Side::A));
        let definitions = Definitions { prompt, ..of_agent.ok_or_else(gone)? };
        let named = asked.model.as_ref().and_then(|name| self.catalog.models.get(name));
        let model = match named {
            Some(model) => model,
            None => self.usable_chain(&prompt.model).into_iter().next().ok_or_else(gone)?,
        };
        let rendered = prompt.render(&self.catalog, &|name| self.variables().prompt_env(&definitions, name));
        let rendered = self.skills().as_with_skills(&definitions, model, rendered)?;
        let system = CachedJson::from(ChatMessage::System(self.variables().redact(rendered)));
        let (summary, covered) = match self.summary_then(&definitions, asked)? {
            Some((summary, upto)) => (Some(summary), upto),
            None => (None, 0),
        };
        let parts = SystemMessages { summary, ..SystemMessages::of(system) };
        let messages = self.said_before(&definitions, model, asked, parts, covered)?;
        self.model_context().request_of(&definitions, model, messages)
    }

    /// The summary that was in use at the time, and the seq of the last message that it covers.
    fn summary_then(
        &self,
        definitions: &Definitions<'_>,
        asked: &LoggedReply,
    ) -> Result<Option<(CachedJson<ChatMessage>, i64)>> {
        self.read(|state, sql| {
            if !definitions.prompt.include_chat || state.meta.summary.is_none() {
                return Ok(None);
            }
            let held = summaries::all(sql)?.into_iter().find(|summary| {
                !summary.stale && summary.created_us < asked.at_us && summary.upto < asked.row.seq
            });
            Ok(held.map(|summary| (message_of(&summary), summary.upto)))
        })
    }

    fn said_before(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        asked: &LoggedReply,
        parts: SystemMessages,
        covered: i64,
    ) -> Result<Vec<CachedJson<ChatMessage>>> {
        let (prompt, below) = (definitions.prompt, asked.row.seq);
        let budget = self.model_context().space(definitions, model, &parts)?.messages;
        self.read(|_, sql| {
            let window =
                Window::load_below(sql, below, HistoryRange::From(1), asked.first.min(below), budget)?;
            let turn_from = window.opening(turn_of(window.since(1), asked));
            let past = match prompt.include_chat {
                true => HistoryRange::From((covered + 1).min(turn_from)),
                false => HistoryRange::Unanswered,
            };
            let span = Span { turn_from, below, covered, own: asked.row.role };
            let cut = window.fit(past, &span, budget);
            let short_below = window.shorten(0, cut, &span, budget);
            let entries = window.since(cut);
            let author = Author::new(model, prompt);
            let history = History { entries, span, short_below, pictured: i64::MAX, prompt, author };
            history.messages(parts, &mut ImageAllowance::default(), sql)
        })
    }
}

/// Finds the reply and the facts about its request.
fn asked_of(state: &State, sql: &dyn Sql, id: &str) -> Result<LoggedReply> {
    let seq = message_seq(&state.meta.stem, id)?;
    let row = rows::find(sql, seq)?.ok_or_else(|| not_found(id))?;
    let metadata: Value =
        row.metadata.as_deref().and_then(|text| crate::json::from_str(text).ok()).unwrap_or_default();
    let prompt = metadata.get("prompt").and_then(Value::as_str).filter(|_| row.is_reply());
    let prompt = prompt
        .ok_or_else(|| {
            Error::new(Code::NotFound, format!("“{id}” is no reply of a model: nothing was asked for it."))
        })?
        .to_owned();
    let mut asked =
        LoggedReply { at_us: row.created_us, first: seq, prompt, row, model: None, log: None, body: None };
    for (_, log) in logs::times_of(sql, "[]", &json!([seq]).to_string())? {
        let Some(entry) = logs::find(sql, log)?.filter(|entry| entry.kind == logs::ATTEMPT) else { continue };
        let (run, at_us) = (entry.run, entry.at_us);
        let fields = entry.fields();
        // Entries of subprompts, and of requests that wrote no reply, are skipped.
        if fields.contains_key("parent_call") || fields.contains_key("purpose") {
            continue;
        }
        asked.model = fields.get("model_name").and_then(Value::as_str).map(str::to_owned);
        (asked.log, asked.at_us) = (Some(log), at_us);
        if let Some(run) = run.map(|run| Run::find(sql, run)).transpose()?.flatten() {
            asked.first = run.first;
        }
    }
    if let Some(log) = asked.log {
        let kept = bodies::of_log(sql, log)?.into_iter().find(|(kind, _)| kind == "request");
        // A body that was too long was cut and is no longer JSON.
        asked.body = kept.and_then(|(_, text)| RawValue::from_string(text?).ok());
    }
    Ok(asked)
}

/// Seq of the first message of the reply's turn: the message that opened it, all that joined later, and its
/// exchange with its tools.
fn turn_of(entries: &[Entry], asked: &LoggedReply) -> i64 {
    let own = asked.row.role;
    let mut turn = asked.row.seq;
    for entry in entries.iter().rev() {
        let row = &entry.row;
        // The reply that ended the other side's turn opens this one.
        if row.is_reply() && row.role != own {
            return row.seq;
        }
        let in_run = row.seq >= asked.first;
        if !in_run && (row.role == own || row.role == Role::Tool) {
            break;
        }
        turn = row.seq;
    }
    turn
}
