//! Requests to one memory, in a thread or in its own object, and their responses (docs/memory.md).

use crate::definitions::MemoryScope;
use crate::error::{Code, Error, Result};
use crate::json_text::JsonText;
use crate::limits;
use crate::memory::MemoryStore;
use crate::memory::documents::{NewDocument, check_tags};
use crate::memory::extract::text_of;
use crate::memory::search::{Hit, Mode, SearchQuery, SearchResults, check_query};
use crate::page::Page;
use crate::protocols::responses::logs::LogEntry;
use crate::protocols::responses::memories::{MemoryFound, MemoryLogs, OneDocument};
use crate::request::fields::Body;
use crate::request::thread_id::from_random;
use crate::request::{MemoryRoute, Query, Reply};
use crate::store::logs;
use crate::work::timeout::Deadline;

/// The fields of a document.
const DOCUMENT: &[&str] = &["key", "title", "text", "path", "mimeType", "url", "tags", "metadata"];

/// The fields of a search.
const SEARCH: &[&str] = &["query", "topK", "tags", "mode"];

/// Prefixes of keys that requests cannot choose.
const OWN: [&str; 5] = ["doc_", "file:", "message:", "note-", "request:"];

/// A request to a memory.
pub(crate) struct MemoryRequest<'a> {
    pub(crate) route: &'a MemoryRoute,
    pub(crate) query: &'a Query,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) body: &'a str,
    /// Content and media type of the file in `path`.
    pub(crate) file: Option<(String, String)>,
    /// Most requests for the query's vector; `None` follows the policy.
    pub(crate) requests: Option<u32>,
}

/// The query in the body of a search.
pub(crate) fn question_of(body: &str) -> Result<String> {
    Ok(Body::parse(body)?.known(SEARCH)?.string("query")?.unwrap_or_default())
}

/// The `path` in the body of a new document.
pub(crate) fn path_of(body: &str) -> Result<Option<String>> {
    Body::parse(body)?.known(DOCUMENT)?.string("path")
}

/// Refuses an invalid body, or one with fields that the route does not know.
///
/// # Errors
/// `bad_json`, `invalid_field`.
pub fn check_body(route: &MemoryRoute, body: &str) -> Result<()> {
    let known = match route {
        MemoryRoute::AddDocument => DOCUMENT,
        MemoryRoute::Search => SEARCH,
        _ => return Ok(()),
    };
    Body::parse(body)?.known(known).map(|_| ())
}

/// Responds to a request.
pub(crate) async fn answer(memory_store: &MemoryStore<'_>, request: MemoryRequest<'_>) -> Result<Reply> {
    match request.route {
        MemoryRoute::Get => Ok(Reply::json(200, &memory_store.describe()?)),
        MemoryRoute::Clear => memory_store.clear().map(|()| Reply::empty(204)),
        MemoryRoute::AddDocument => {
            let document = document_of(memory_store, request)?;
            Ok(Reply::json(202, &OneDocument { document: memory_store.add(document)?.response() }))
        }
        MemoryRoute::ListDocuments => Ok(Reply::json(200, &memory_store.list(request.query)?)),
        MemoryRoute::Logs => Ok(Reply::json(200, &logged(memory_store, request.query)?)),
        MemoryRoute::GetDocument(id) => {
            Ok(Reply::json(200, &OneDocument { document: memory_store.document(id)?.response() }))
        }
        MemoryRoute::DeleteDocument(id) => memory_store.delete(id).map(|()| Reply::empty(204)),
        MemoryRoute::Search => {
            let wanted = wanted_of(request.body, memory_store.memory.retrieval.top_k)?;
            let found = search(memory_store, SearchQuery { requests: request.requests, ..wanted }).await?;
            let body = MemoryFound {
                results: found.hits.iter().map(Hit::response).collect(),
                degraded: found.degraded,
                error: found.error.as_ref().map(|error| format!("embedding_failed: {error}")),
            };
            Ok(Reply::json(200, &body))
        }
    }
}

/// Searches, without vectors if the query's vector does not arrive in time.
async fn search(memory_store: &MemoryStore<'_>, wanted: SearchQuery) -> Result<SearchResults> {
    let mut watch = Deadline::for_ms(memory_store.memory_host.host(), limits::MEMORY_SEARCH_MS);
    let found = match watch.within(memory_store.search(&wanted)).await {
        Some(found) => found?,
        None => {
            let found = memory_store.search(&SearchQuery { mode: Mode::Text, ..wanted }).await?;
            let error = format!("the model gave no vector within {} s", limits::MEMORY_SEARCH_MS / 1000);
            SearchResults { degraded: true, error: Some(error), ..found }
        }
    };
    memory_store.log_requests()?;
    Ok(found)
}

/// Requests of a shared memory to its model, newest first. Those of a thread's own memory are in the thread's
/// log.
fn logged(memory_store: &MemoryStore<'_>, query: &Query) -> Result<MemoryLogs> {
    let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
    let before = match query.get("cursor").filter(|cursor| !cursor.is_empty()) {
        None => i64::MAX >> 11,
        Some(cursor) => logs::parse_id(cursor).ok_or_else(|| {
            Error::new(Code::BadCursor, format!("`cursor` is none of this list: “{cursor}”.")).at("cursor")
        })?,
    };
    if memory_store.memory.scope == MemoryScope::Thread {
        let text = "The requests of a thread's own memory are in the thread's log.";
        return Err(Error::new(Code::NotFound, text).hint("GET /api/threads/:id/logs"));
    }
    let mut page = Page::new(limit);
    let mut last = None;
    if logs::is_there(memory_store.sql()) {
        logs::page(memory_store.sql(), before, |entry| {
            let id = entry.public_id();
            let flow = page.add_text(|| JsonText::new(&LogEntry(entry.fields())))?;
            if flow.is_continue() {
                last = Some(id);
            }
            Ok(flow)
        })?;
    }
    let cursor = last.filter(|_| page.has_more());
    Ok(MemoryLogs { logs: page.into_rows(), cursor })
}

fn document_of(memory_store: &MemoryStore<'_>, request: MemoryRequest<'_>) -> Result<NewDocument> {
    let mut body = Body::parse(request.body)?.known(DOCUMENT)?;
    let path = body.string("path")?;
    let text = body.string("text")?;
    let mime = body.string("mimeType")?;
    let (text, mime, source) = match (text, path, request.file) {
        (Some(_), Some(_), _) => return Err(Error::field("path", "Give `text` or `path`, not both.")),
        (None, None, _) => return Err(Error::missing("text").hint("Or `path`, a file of the thread.")),
        (None, Some(_), None) => {
            let text = "`path` names a file of a thread; this memory belongs to none. Send the `text`.";
            return Err(Error::field("path", text));
        }
        (Some(text), None, _) if text.len() > limits::DOCUMENT_BYTES => {
            let most = limits::DOCUMENT_BYTES >> 20;
            let wrong = format!("`text` has {} bytes; the limit is {most} MB.", text.len());
            return Err(Error::new(Code::TooLarge, wrong)
                .at("text")
                .hint("Larger texts come as files, by `path`."));
        }
        (Some(text), None, _) => (text, mime, "api"),
        (None, Some(_), Some((text, of_file))) => (text, mime.or(Some(of_file)), "api"),
    };
    let tags = body.strings("tags")?.unwrap_or_default();
    check_tags(&tags)?;
    let key = body.string("key")?;
    if let Some(own) = key.as_deref().and_then(|key| OWN.into_iter().find(|own| key.starts_with(own))) {
        return Err(Error::field(
            "key",
            format!("`key` must not begin with `{own}`, which is the runtime's own."),
        ));
    }
    let once = key.is_none() && request.idempotency_key.is_some();
    let given = key.or_else(|| request.idempotency_key.map(|key| format!("request:{key}")));
    let key =
        given.unwrap_or_else(|| format!("doc-{}", from_random(memory_store.memory_host.host().random())));
    let (title, url) = (body.string("title")?, body.string("url")?);
    for (field, value) in [("key", Some(&key)), ("title", title.as_ref()), ("url", url.as_ref())] {
        let length = value.map_or(1, |value| value.chars().count());
        if length == 0 || length > limits::DOCUMENT_NAME_CHARS {
            let most = limits::DOCUMENT_NAME_CHARS;
            return Err(Error::field(field, format!("`{field}` must have 1 to {most} characters.")));
        }
    }
    let text = text_of(mime.as_deref(), text)?;
    Ok(NewDocument {
        key,
        source: source.to_owned(),
        title,
        url,
        mime,
        tags,
        meta: body.object("metadata")?,
        text,
        once,
        at_us: None,
    })
}

fn wanted_of(body: &str, top_k: usize) -> Result<SearchQuery> {
    let mut body = Body::parse(body)?.known(SEARCH)?;
    let query = body.string("query")?.ok_or_else(|| Error::missing("query"))?;
    check_query(&query)?;
    let most = limits::RECALL_TOP_K_MAX;
    let top_k = match body.whole("topK")? {
        None => top_k,
        Some(n) => usize::try_from(n)
            .ok()
            .filter(|n| (1..=most).contains(n))
            .ok_or_else(|| Error::field("topK", format!("`topK` must be from 1 to {most}.")))?,
    };
    let tags = body.strings("tags")?.unwrap_or_default();
    let mode = match body.string("mode")?.as_deref() {
        None | Some("hybrid") => Mode::Hybrid,
        Some("text") => Mode::Text,
        Some("vector") => Mode::Vector,
        Some(other) => {
            return Err(Error::field("mode", format!("`mode` is hybrid, text or vector, not “{other}”.")));
        }
    };
    Ok(SearchQuery { query, top_k, tags, mode, requests: None })
}
