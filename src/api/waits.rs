//! The routes of waits: a thread's questions to people, and their answers (docs/approvals.md).

use std::ops::ControlFlow;

use serde::Deserialize;
use serde_json::Value;

use crate::api::Api;
use crate::engine::waits::decide::{Decider, DecisionRequest};
use crate::engine::waits::lookup::{no_wait, wait_number};
use crate::error::{Code, Error, Result};
use crate::json_text::JsonText;
use crate::limits::{self, PAGE_DEFAULT, PAGE_MAX};
use crate::page::Page;
use crate::protocols::responses::Success;
use crate::protocols::responses::waits::{OneWait, Wait, WaitDecided, WaitPage, WaitsDecided};
use crate::request::between::to_thread;
use crate::request::fields::{Body, DECISION};
use crate::request::{FINGERPRINT, Query, Reply, ThreadRequest, ThreadRoute};
use crate::store::idempotency::Key;
use crate::store::waits;
use crate::store::waits::WaitState;

impl Api<'_> {
    /// `GET …/waits`: open waits, or all, newest first; with `descendants=true` also those of descendants.
    pub(super) async fn list_waits(&self, request: &ThreadRequest) -> Result<Reply> {
        let query = &request.query;
        let limit = query.number("limit", PAGE_DEFAULT, PAGE_MAX)?;
        let all = match query.get("state") {
            None | Some("" | "open") => false,
            Some("all") => true,
            Some(other) => {
                return Err(Error::field("state", format!("`state` is open or all, not “{other}”.")));
            }
        };
        let descendants = query.flag("descendants")?;
        let before = match query.get("cursor").filter(|cursor| !cursor.is_empty()) {
            None => i64::MAX >> 10,
            Some(cursor) => self
                .read(|state, _| wait_number(&state.meta.stem, cursor))
                .map_err(|_| Error::field("cursor", "`cursor` is that of the page before."))?,
        };
        let mut page = Page::new(limit);
        let mut last = None;
        self.read(|state, sql| {
            if state.meta.wait_next == 1 {
                return Ok(());
            }
            waits::list(sql, before, &mut |wait| {
                if !all && wait.state != WaitState::Open {
                    return Ok(ControlFlow::Continue(()));
                }
                let id = wait.public_id(&state.meta.stem);
                let flow = page.add_text(|| JsonText::new(&wait.shown(state)))?;
                if flow.is_continue() {
                    last = Some(id);
                }
                Ok(flow)
            })
        })?;
        let cursor = last.filter(|_| page.has_more());
        let mut found: Vec<JsonText<Wait<'static>>> = page.into_rows();
        if descendants && before == i64::MAX >> 10 {
            found.extend(self.waits_below(all).await?);
        }
        Ok(Reply::json(200, &WaitPage { waits: found, cursor }))
    }

    /// Waits of all descendants.
    async fn waits_below(&self, all: bool) -> Result<Vec<JsonText<Wait<'static>>>> {
        let references: Vec<String> = self.read_mut(|state, sql| {
            Ok(state
                .open_children(sql)?
                .iter()
                .filter(|child| child.state.exists())
                .map(|child| child.reference.clone())
                .collect())
        })?;
        let state = if all { "all" } else { "open" };
        let query =
            Query([("descendants", "true"), ("state", state)].map(|(n, v)| (n.into(), v.into())).to_vec());
        let request =
            |id: &String| ThreadRequest { query: query.clone(), ..to_thread(id, ThreadRoute::ListWaits) };
        let mut found = Vec::new();
        for answer in self.subagents().ask_all(references.iter().map(request).collect()).await {
            match answer {
                Ok(reply) => {
                    let body = reply.body.as_ref().map_or("{}", |body| body.get());
                    let below: ChildWaits = crate::json::from_str(body).map_err(Error::internal)?;
                    found.extend(below.waits);
                }
                // The child is being created, or was deleted.
                Err(error) if error.code == Code::ThreadNotFound => {}
                Err(error) => return Err(error),
            }
        }
        // Up to the limit of one response.
        let mut page = Page::new(PAGE_MAX);
        for wait in found {
            if page.add_text(|| Ok(wait))?.is_break() {
                break;
            }
        }
        Ok(page.into_rows())
    }

    /// `GET …/waits/:id`.
    pub(super) fn get_wait(&self, id: &str) -> Result<Reply> {
        self.read(|state, sql| {
            let number = wait_number(&state.meta.stem, id)?;
            let wait = self.waits().found_wait(state, sql, number)?;
            Ok(Reply::json(200, &OneWait { wait: wait.shown(state) }))
        })
    }

    /// `POST …/waits/:id`: a decision.
    pub(super) fn decide_wait(&self, request: &ThreadRequest, id: &str) -> Result<Reply> {
        let thread = self.read(|state, _| Ok(state.meta.stem.clone()))?;
        let body = Body::parse(&request.body)?.known(DECISION)?;
        let wanted = DecisionRequest::parse(body, &thread, Some(wait_number(&thread, id)?))?;
        let key = Key::of(request, &format!("waits/{id}"))?;
        let shown = self.waits().decide(&[wanted], &decider(request), key.as_ref())?;
        let wait = shown.into_iter().next().ok_or_else(no_wait)?;
        let state = self.read(|state, _| Ok(state.status()))?;
        Ok(Reply::json(200, &WaitDecided { wait, state }))
    }

    /// `POST …/waits`: several decisions, all or none.
    pub(super) fn decide_waits(&self, request: &ThreadRequest) -> Result<Reply> {
        let thread = self.read(|state, _| Ok(state.meta.stem.clone()))?;
        let mut body = Body::parse(&request.body)?.known(&["decisions"])?;
        let decisions = body.take("decisions").ok_or_else(|| Error::missing("decisions"))?;
        let Value::Array(decisions) = decisions else {
            return Err(Error::field("decisions", "`decisions` is a list of objects."));
        };
        if decisions.is_empty() || decisions.len() > limits::WAITS_PER_DECISION {
            let most = limits::WAITS_PER_DECISION;
            return Err(Error::field("decisions", format!("`decisions` has 1 to {most} of them.")));
        }
        let mut wanted: Vec<DecisionRequest> = Vec::with_capacity(decisions.len());
        for (index, decision) in decisions.into_iter().enumerate() {
            let at = |error: Error| {
                let field = error.field.as_deref().map_or(String::new(), |field| format!(".{field}"));
                error.at(format!("decisions[{index}]{field}"))
            };
            let Value::Object(fields) = decision else {
                return Err(at(Error::new(Code::InvalidField, "A decision is an object.")));
            };
            let body = Body::of(fields).known(DECISION).map_err(at)?;
            let one = match DecisionRequest::parse(body, &thread, None) {
                // A wait of another thread: nothing is decided, as if one of the waits was already decided.
                Err(error) if error.code == Code::NotFound => {
                    return Err(at(Error::new(
                        Code::Conflict,
                        "There is no such wait in this thread; nothing was changed.",
                    )));
                }
                other => other.map_err(at)?,
            };
            if wanted.iter().any(|other| other.is_about(&one)) {
                return Err(at(Error::new(Code::InvalidField, "This wait is decided twice here.")));
            }
            wanted.push(one);
        }
        let key = Key::of(request, "waits")?;
        let shown = self.waits().decide(&wanted, &decider(request), key.as_ref()).map_err(|mut error| {
            if error.code == Code::NotFound {
                error.code = Code::Conflict;
            }
            error
        })?;
        Ok(Reply::json(200, &WaitsDecided { waits: shown }))
    }

    /// `DELETE …/waits/remembered`.
    pub(super) fn forget_waits(&self) -> Result<Reply> {
        self.transition(|state, sql| match state.meta.wait_next {
            1 => Ok(()),
            _ => waits::forget_remembered(sql),
        })?;
        Ok(Reply::json(200, &Success::OK))
    }
}

/// The response of a child.
#[derive(Deserialize)]
struct ChildWaits {
    waits: Vec<JsonText<Wait<'static>>>,
}

fn decider(request: &ThreadRequest) -> Decider<'_> {
    Decider { caller: &request.caller, fingerprint: request.header(FINGERPRINT) }
}
