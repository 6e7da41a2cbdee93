//! The costs of a thread and its descendants (`GET …/cost`): sums over the attempts in the log. Each thread
//! requests the sums of its children, so a tree is summed level by level.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::features::Subagents;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::page::Page;
use crate::request::between::to_thread;
use crate::request::{Query, Reply, ThreadRoute};
use crate::store::children::{Child, ChildState};
use crate::store::{children as registry, logs};

/// The usage of requests to models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageTotals {
    /// USD, for requests to models with a known price.
    cost: f64,
    input_tokens: i64,
    cached_tokens: i64,
    output_tokens: i64,
    reasoning_tokens: i64,
    requests: i64,
    /// Answered requests whose cost is unknown.
    unpriced: i64,
    /// Whether the usage of a request is unknown. The sums then contain a budget's estimate, or lack it.
    #[serde(default)]
    estimated: bool,
}

impl AddAssign for UsageTotals {
    fn add_assign(&mut self, more: UsageTotals) {
        self.cost = rounded(self.cost + more.cost);
        self.input_tokens += more.input_tokens;
        self.cached_tokens += more.cached_tokens;
        self.output_tokens += more.output_tokens;
        self.reasoning_tokens += more.reasoning_tokens;
        self.requests += more.requests;
        self.unpriced += more.unpriced;
        self.estimated |= more.estimated;
    }
}

/// A child's response.
#[derive(Deserialize)]
struct CostAnswer {
    own: UsageTotals,
    total: UsageTotals,
    incomplete: Vec<String>,
}

impl Subagents<'_> {
    /// `GET …/cost`.
    pub(crate) async fn get_cost(&self) -> Result<Reply> {
        let (id, own, children) =
            self.read(|state, sql| Ok((state.meta.thread_id.clone(), spent(sql)?, registry::all(sql)?)))?;
        let mut made: Vec<Child> =
            children.into_iter().filter(|child| child.state != ChildState::Pending).collect();
        made.reverse();
        let requests = made.iter().map(|child| to_thread(&child.reference, ThreadRoute::GetCost)).collect();
        let answers = self.ask_all(requests).await;
        let (mut descendants, mut incomplete) = (UsageTotals::default(), Vec::new());
        // The sums include all children, even those that do not fit in the list.
        let mut listed = Page::new(limits::PAGE_MAX);
        for (child, answer) in made.iter().zip(answers) {
            match answer.and_then(parse_reply) {
                Ok(CostAnswer { own, total, incomplete: more }) => {
                    descendants += total;
                    let _full = listed.add(|| {
                        Ok(json!({ "id": child.reference, "agent": child.agent, "own": own, "total": total }))
                    })?;
                    incomplete.extend(more);
                }
                // The child was deleted, or does not exist yet.
                Err(error) if error.code == Code::ThreadNotFound => {}
                Err(_) => incomplete.push(child.reference.clone()),
            }
        }
        let mut total = own;
        total += descendants;
        let has_more = listed.has_more();
        let body = json!({
            "threadId": id, "own": own, "descendants": descendants, "total": total, "children": listed.into_rows(),
            "hasMore": has_more, "incomplete": incomplete,
        });
        Ok(Reply::json(200, &body))
    }

    /// `GET …/subagents` (spec §27.1).
    pub(crate) fn list_subagents(&self, query: &Query) -> Result<Reply> {
        let limit = query.number("limit", limits::PAGE_MAX, limits::PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let mut page = Page::new(limit);
        let total = self.read(|_, sql| registry::list(sql, &mut page, offset, shown))?;
        let has_more = page.has_more();
        let body = json!({ "subagents": page.into_rows(), "total": total, "hasMore": has_more });
        Ok(Reply::json(200, &body))
    }
}

/// A child in its public form.
fn shown(child: &Child) -> Value {
    let facts = &child.facts;
    let mut shown = json!({
        "id": child.reference, "agent_name": child.agent, "title": facts.title, "threadName": facts.name,
        "description": facts.description, "status": child.status, "resumable": facts.resumable,
        "blocking": facts.blocking, "parentCommunication": facts.communication.as_str(),
        "spawnGroupId": facts.group, "created_at": child.created_us / limits::SECOND_US,
    });
    child.add_alias(&mut shown);
    shown
}

fn parse_reply(reply: Reply) -> Result<CostAnswer> {
    let body = reply.body.as_ref().map_or("", |body| body.get());
    crate::json::from_str(body).map_err(Error::internal)
}

/// Dollars rounded to billionths. This drops floating-point noise from the sum.
fn rounded(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9
}

/// The sums over the log.
fn spent(sql: &dyn Sql) -> Result<UsageTotals> {
    let sums = logs::sums(sql)?;
    Ok(sums.map_or(UsageTotals::default(), |sums| UsageTotals {
        cost: rounded(sums.cost),
        input_tokens: sums.input_tokens,
        cached_tokens: sums.cached_tokens,
        output_tokens: sums.output_tokens,
        reasoning_tokens: sums.reasoning_tokens,
        requests: sums.requests,
        unpriced: sums.unpriced,
        estimated: sums.estimated,
    }))
}
