//! The costs of a thread and its descendants (`GET …/cost`): sums over the attempts in the log. Each thread
//! requests the sums of its children, so a tree is summed level by level.

use serde::Deserialize;

use crate::engine::features::Subagents;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json_text::JsonText;
use crate::limits;
use crate::page::Page;
use crate::protocols::responses::budgets::{ChildCost, Cost, UsageTotals};
use crate::protocols::responses::threads::SubagentPage;
use crate::request::between::to_thread;
use crate::request::{Query, Reply, ThreadRoute};
use crate::store::children::{Child, ChildState};
use crate::store::{children as registry, logs};

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
                    let _full = listed.add_text(|| {
                        JsonText::new(&ChildCost { id: &child.reference, agent: &child.agent, own, total })
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
        let children = listed.into_rows();
        let cost = Cost { thread_id: id, own, descendants, total, children, has_more, incomplete };
        Ok(Reply::json(200, &cost))
    }

    /// `GET …/subagents` (spec §27.1).
    pub(crate) fn list_subagents(&self, query: &Query) -> Result<Reply> {
        let limit = query.number("limit", limits::PAGE_MAX, limits::PAGE_MAX)?;
        let offset = query.number("offset", 0, u32::MAX)?;
        let mut page = Page::new(limit);
        let total = self.read(|_, sql| registry::list(sql, &mut page, offset))?;
        let has_more = page.has_more();
        let (subagents, total) = (page.into_rows(), total as u64);
        Ok(Reply::json(200, &SubagentPage { subagents, total, has_more }))
    }
}

fn parse_reply(reply: Reply) -> Result<CostAnswer> {
    let body = reply.body.as_ref().map_or("", |body| body.get());
    crate::json::from_str(body).map_err(Error::internal)
}

/// The sums over the log.
fn spent(sql: &dyn Sql) -> Result<UsageTotals> {
    let sums = logs::sums(sql)?;
    Ok(sums.map_or(UsageTotals::default(), |sums| UsageTotals {
        cost: UsageTotals::rounded(sums.cost),
        input_tokens: sums.input_tokens,
        cached_tokens: sums.cached_tokens,
        output_tokens: sums.output_tokens,
        reasoning_tokens: sums.reasoning_tokens,
        requests: sums.requests,
        unpriced: sums.unpriced,
        estimated: sums.estimated,
    }))
}
