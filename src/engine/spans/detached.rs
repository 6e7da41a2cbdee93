//! The span of detached work: an effect, an endpoint, a job.

use crate::engine::spans::{Span, SpanKind, SpanLink, Subject};
use crate::store::detached_work::{WorkKind, WorkRecord};
use crate::trace::{Trace, span_id};

/// The error type of failed work, for counts of failures.
const FAILED: &str = "failed";

/// The span of work that has ended, with its trace. `stem`: the part that all span ids of the thread share.
pub(crate) fn span(thread: &str, stem: &str, work: &WorkRecord) -> Option<(Trace, Span)> {
    let (began_us, ended_us) = (work.began_us?, work.ended_us?);
    let trace = Trace::parse(&work.data.trace)?;
    let kind = work.kind.as_str();
    let id = span_id(stem, kind, &work.id);
    let data = &work.data;
    let name = match work.kind {
        WorkKind::Endpoint => data.name.clone(),
        WorkKind::Effect | WorkKind::Job => format!("{kind} {}", data.name),
    };
    let mut span = Span::new(Subject::DetachedWork, id, name, began_us, ended_us);
    span.parent = trace.parent().map(str::to_owned);
    span.text("gen_ai.conversation.id", Some(thread));
    match work.kind {
        WorkKind::Effect => {
            span.text("bobbin.effect", Some(data.shown.as_str()));
            span.text("bobbin.effect.name", Some(data.name.as_str()));
            span.number("bobbin.effect.occurrence", data.occurrence);
            span.text("bobbin.effect.status", data.outcome.as_deref());
        }
        WorkKind::Endpoint => {
            span.kind = SpanKind::Server;
            let route = data.name.split_once(' ');
            span.text("http.request.method", route.map(|(method, _)| method));
            span.text("http.route", route.map(|(_, path)| path));
            span.number("http.response.status_code", data.status.map(i64::from));
            span.text("bobbin.endpoint", Some(data.shown.as_str()));
        }
        WorkKind::Job => {
            let (kind, memory) = data.name.split_once(' ').unzip();
            span.text("bobbin.job", Some(kind.unwrap_or(&data.name)));
            span.text("bobbin.job.outcome", data.outcome.as_deref());
            span.text("gen_ai.data_source.id", memory);
        }
    }
    span.number("bobbin.attempts", data.attempts.map(i64::from));
    if let Some(error) = &data.error {
        span.fails(FAILED, Some(error));
    }
    span.links = data
        .links
        .iter()
        .filter_map(|link| Some(SpanLink { trace: Trace::parse(&link.to)?, run: link.run }))
        .collect();
    Some((trace, span))
}
