//! Tool lists of servers that are not pinned (`"list": "live"`), requested at the first step of a run. The
//! list is stored in the thread and stays fixed until the run ends, across restarts. Later runs reuse it
//! until it expires, and also while the server does not respond. The catalog is extended by these tools.

use futures::future::join_all;

use crate::definitions::{Callable, Catalog, ListedTool, McpList, McpServer, Prompt, Tool, ToolEntry};
use crate::engine::definitions::Definitions;
use crate::engine::features::McpClient;
use crate::engine::mcp::sessions::{Sessions, key_of_list, principal};
use crate::engine::mcp::sign_in::SignIn;
use crate::engine::mcp::tokens::ServerConnection;
use crate::error::{Error, Result};
use crate::host::process::{Process, SharedList};
use crate::json;
use crate::limits;
use crate::mcp_client::ask::{Ask, Asker};
use crate::mcp_client::list::Page;
use crate::signing::digest;
use crate::store::mcp;
use crate::store::mcp::List;
use crate::store::runs::diagnostics::{Diagnostic, Kind};
use crate::text::first_bytes;
use crate::work::mcp::{Address, PROTOCOL, Peer, RequestError, TransportError, UNREACHABLE};
use crate::work::timeout::Deadline;

/// The lifetime of a list for which the server gives none.
const COUNTS_US: i64 = 5 * 60 * limits::SECOND_US;
/// The shortest pause before another request to a server that did not list its tools.
const PAUSE_US: i64 = 15 * limits::SECOND_US;
/// The milliseconds that a run waits for a list.
const LIST_MS: u64 = 20_000;
/// The maximum pages of a list.
const PAGES: usize = 32;
/// The maximum number of tools in the note about tools that cannot be offered, and the bytes of their names.
const LEFT_OUT: usize = 16;
const NAME_BYTES: usize = 64;
/// The maximum number of lists that objects of a process share, and their bytes.
const SHARED: (usize, usize) = (64, 4 << 20);

/// The result of a look-up of a server's list.
enum Lookup {
    /// The list, and notes about a new one.
    Listed(List, Vec<Note>),
    /// A person has to sign in first.
    SignIn(Box<SignIn>),
}

/// The code and text of a diagnostic.
type Note = (&'static str, String);

/// A list that was just requested.
struct FetchedList {
    /// A JSON array of the tools that may be offered.
    tools: String,
    /// Its lifetime, in microseconds.
    counts_us: i64,
    notes: Vec<Note>,
}

/// The pages of a list that were read.
struct ListPages {
    tools: Vec<ListedTool>,
    /// Tools that cannot be offered, with the reason.
    left_out: Vec<(String, String)>,
    counts_us: i64,
    /// Whether all pages were read. False if a tool or a cursor was repeated.
    is_whole: bool,
}

/// A server whose tools a prompt lists, with the entry.
struct ServerEntry<'c> {
    server: &'c McpServer,
    prompt: &'c Prompt,
    entry: &'c ToolEntry,
}

impl McpClient<'_> {
    /// Ensures the lists of the servers that the active side's prompt, or a prompt that it calls, uses. May
    /// park the run for a sign-in.
    pub(crate) async fn ready_lists(&self) -> Result<()> {
        if !self.catalog.is_live() {
            return Ok(());
        }
        let Some(definitions) = self.definitions()? else { return Ok(()) };
        let Some(run) = self.read(|state, _| Ok(state.active().map(|run| run.id)))? else { return Ok(()) };
        let compiled = self.catalog.compiled();
        let Some(prompt) = compiled.prompts.get(&definitions.prompt.name) else { return Ok(()) };
        let mut wanted = Vec::new();
        find(compiled, prompt, &mut Vec::new(), &mut wanted);
        wanted.retain(|wanted| self.list_of(&wanted.server.name).is_none_or(|list| list.run != run));
        if wanted.is_empty() {
            return Ok(());
        }
        let values = self.variables().refresh_env().await;
        let looked =
            wanted.iter().map(|wanted| self.list_for(&definitions, wanted, run, values.as_ref().err()));
        let looked = join_all(looked).await;
        let lasts_us = self.waits().timeout_us(&definitions);
        let opened = self.transition(|state, sql| {
            let mut opened = Vec::new();
            for (wanted, looked) in wanted.iter().zip(&looked) {
                match looked {
                    Lookup::Listed(list, _) => {
                        mcp::set_list(sql, &wanted.server.name, &List { run, ..list.clone() })?
                    }
                    Lookup::SignIn(sign_in) => {
                        let wait = self.new_sign_in(state, sign_in, None, lasts_us)?;
                        opened.push(self.waits().write_wait(state, sql, wait)?);
                    }
                }
            }
            self.post_mcp(state, sql)?;
            if !opened.is_empty() {
                self.waits().park_run(state, sql)?;
            }
            Ok(opened)
        })?;
        for (wanted, looked) in wanted.iter().zip(looked) {
            let Lookup::Listed(list, notes) = looked else { continue };
            self.note_list(wanted, &list, &definitions.prompt.name)?;
            for (code, text) in notes {
                let text = self.variables().shown(text).cut(limits::DIAGNOSTIC_MESSAGE_BYTES).to_string();
                let (now, subject) = (self.host.now_us(), ("mcp", wanted.server.name.as_str()));
                self.diagnosis().note(Diagnostic::warning(Kind::Adapter, code, subject, text, now))?;
            }
            let mut lists = self.ephemeral.mcp.lists.borrow_mut();
            lists.get_or_insert_default().insert(wanted.server.name.clone(), List { run, ..list });
        }
        self.grow_catalog();
        // After a sign-in the run requests the remaining lists again.
        if opened.is_empty() { Ok(()) } else { self.waits().end_parked_flow(&opened).await }
    }

    /// The reason why a server did not list its tools the last time.
    pub(crate) fn why_no_list(&self, server: &str) -> Option<String> {
        self.list_of(server)?.why
    }

    fn list_of(&self, server: &str) -> Option<List> {
        self.ephemeral.mcp.lists.borrow().as_ref()?.get(server).cloned()
    }

    /// Adds a diagnostic to the run if a list is old or missing. Missing lists of the prompt itself are
    /// checked at the start of the run.
    fn note_list(&self, wanted: &ServerEntry<'_>, list: &List, prompt: &str) -> Result<()> {
        let Some(why) = &list.why else { return Ok(()) };
        let server = &wanted.server.name;
        let (code, text) = match list.tools {
            Some(_) => {
                ("mcp.stale", format!("The tools of the MCP server \"{server}\" are those of earlier: {why}"))
            }
            None if wanted.prompt.name == prompt => return Ok(()),
            None => {
                ("mcp.unreachable", format!("The tools of the MCP server \"{server}\" are not known: {why}"))
            }
        };
        self.diagnosis().note(Diagnostic::warning(
            Kind::Adapter,
            code,
            ("mcp", server),
            text,
            self.host.now_us(),
        ))
    }

    /// The list of a server for a new run: the stored one, another thread's, or a new one.
    async fn list_for(
        &self,
        definitions: &Definitions<'_>,
        wanted: &ServerEntry<'_>,
        run: i64,
        no_values: Option<&Error>,
    ) -> Lookup {
        let unknown = |why: String| {
            Lookup::Listed(List { why: Some(self.variables().redact(why)), ..List::default() }, Vec::new())
        };
        let ServerEntry { server, prompt, entry } = *wanted;
        let chain = definitions.chain.clone();
        let of_prompt = Definitions { prompt, chain, ..*definitions };
        let env = |name: &str| self.variables().tool_env(&of_prompt, entry, name);
        let context = self.work_context();
        let address = match no_values {
            Some(error) => Err(error.to_string()),
            None => Address::of(server, &*context, &env),
        };
        let address = match address {
            Ok(address) => address,
            Err(why) => return unknown(why),
        };
        let signed = ServerConnection { context: &*context, server, address: &address, env: &env };
        let principal = match self.bearer_of(&signed) {
            Ok(None) => principal(&address),
            Ok(Some(bearer)) => digest(&[&principal(&address), &bearer]),
            Err(trouble) => return unknown(trouble.text),
        };
        let now = self.host.now_us();
        let known = self.list_of(&server.name).filter(|known| known.principal == principal);
        if let Some(known) = &known
            && known.until_us > now
        {
            return Lookup::Listed(known.clone(), Vec::new());
        }
        let process = self.host.process();
        let key = key_of_list(&server.name, &principal);
        if let Some((tools, until_us)) = shared(&process, &key, now) {
            let list = List { principal, tools: Some(tools), until_us, ..List::default() };
            return Lookup::Listed(list, Vec::new());
        }
        let listed = match self.list_or_sign_in(&signed, run).await {
            Ok(listed) => listed,
            Err(sign_in) => return Lookup::SignIn(sign_in),
        };
        match listed {
            Ok(fetched) => self.keep_fetched(server, principal, fetched),
            Err(trouble) => {
                let why = self.variables().shown(trouble.text).cut(limits::MCP_TOLD_BYTES).to_string();
                let tools = known.and_then(|known| known.tools);
                let until_us = self.host.now_us() + PAUSE_US;
                let list = List { principal, tools, until_us, why: Some(why), ..List::default() };
                Lookup::Listed(list, Vec::new())
            }
        }
    }

    /// Shares a new list with other threads.
    fn keep_fetched(&self, server: &McpServer, principal: String, fetched: FetchedList) -> Lookup {
        let FetchedList { tools, counts_us, notes } = fetched;
        let until_us = self.host.now_us() + counts_us;
        self.mcp_listed(&server.name, &tools);
        let known = self.ephemeral.mcp.sessions.borrow().get(&server.name).cloned();
        let is_modern = known.is_some_and(|known| known.is_modern());
        let key = key_of_list(&server.name, &principal);
        share(&self.host.process(), SharedList { key, until_us, tools: tools.clone(), is_modern });
        Lookup::Listed(List { principal, tools: Some(tools), until_us, ..List::default() }, notes)
    }

    /// Requests the tools of a server. Returns a sign-in if a person has to sign in first.
    async fn list_or_sign_in(
        &self,
        signed: &ServerConnection<'_>,
        run: i64,
    ) -> Result<Result<FetchedList, TransportError>, Box<SignIn>> {
        let listed = self.fetch_list(signed).await;
        let wrong = listed.as_ref().err().map(|trouble| (trouble.code, &*trouble.text));
        self.record_server_result(&signed.server.name, wrong);
        let Some(challenge) = self.wants_sign_in(signed, listed.as_ref().err()) else { return Ok(listed) };
        match self.sign_in_to_list(signed, run, challenge).await {
            Ok(sign_in) => Err(Box::new(sign_in)),
            Err(trouble) => Ok(Err(trouble)),
        }
    }

    /// Requests the tools of a server.
    async fn fetch_list(&self, signed: &ServerConnection<'_>) -> Result<FetchedList, TransportError> {
        let subject = format!("The list of the MCP server \"{}\"", signed.server.name);
        let asked = async {
            let read = self.pages(signed, &subject).await?;
            // Read it again, because it may have changed meanwhile.
            let read = if read.is_whole { read } else { self.pages(signed, &subject).await? };
            Ok(self.fetched(signed.server, read))
        };
        let listed = Deadline::for_ms(&*self.host, LIST_MS).within(asked).await;
        listed.unwrap_or_else(|| {
            Err(TransportError::new(
                UNREACHABLE,
                format!("{subject} did not come within {} s.", LIST_MS / 1000),
            ))
        })
    }

    /// Requests one page.
    async fn page(
        &self,
        signed: &ServerConnection<'_>,
        subject: &str,
        cursor: Option<&str>,
    ) -> Result<Page, TransportError> {
        let ask = Ask::list(cursor);
        let send = async |address: &Address| {
            let peer = Peer {
                context: signed.context,
                subject,
                limit_ms: LIST_MS,
                asker: Asker { capabilities: json!({}), meta: Vec::new() },
                trace: Vec::new(),
                sessions: &Sessions::new(self, address),
                address,
            };
            peer.ask(&ask).await
        };
        let what = match self.signed(signed, send).await {
            Ok(result) => match Page::of(result) {
                Ok(page) => return Ok(page),
                Err(what) => format!("cannot be read: {what}"),
            },
            Err(RequestError::Trouble(trouble)) => return Err(trouble),
            Err(RequestError::Rpc(error)) => {
                format!("was answered with error {}: {}", error.code, error.message)
            }
        };
        Err(TransportError::new(PROTOCOL, format!("{subject} {what}.")))
    }

    /// Converts the pages to a list, with notes for people.
    fn fetched(&self, server: &McpServer, read: ListPages) -> FetchedList {
        let ListPages { tools, left_out, counts_us, is_whole } = read;
        let (mut notes, mut renamed) = (Vec::new(), Vec::new());
        let mut left_out: Vec<String> =
            left_out.into_iter().map(|(tool, why)| format!("{tool:?}: {why}")).collect();
        for (_, listed, tool) in server.offered(&tools) {
            let Ok(Tool { name, .. }) = tool else { continue };
            if self.catalog.compiled().callable(&name).is_some() {
                left_out.push(format!("\"{}\": the folder has something called \"{name}\"", listed.name));
            } else if name != server.tool_name(&listed.name) {
                renamed.push(format!("\"{}\" is \"{name}\"", listed.name));
            }
        }
        let of = format!("of the MCP server \"{}\"", server.name);
        if !left_out.is_empty() {
            notes.push(("mcp.left_out", format!("Tools {of} are not offered: {}", left_out.join("; "))));
        }
        if !renamed.is_empty() {
            let text = format!("Tools {of} would have the same name for models: {}", renamed.join("; "));
            notes.push(("mcp.renamed", text));
        }
        if !is_whole {
            let text = format!("The list {of} repeats itself: what comes after that is not read");
            notes.push(("mcp.repeats", text));
        }
        FetchedList { tools: self.variables().redact(json!(tools).to_string()), counts_us, notes }
    }

    /// Reads all pages, until the list ends or repeats itself.
    async fn pages(&self, signed: &ServerConnection<'_>, subject: &str) -> Result<ListPages, TransportError> {
        let server = signed.server;
        let wrong = |what: String| TransportError::new(PROTOCOL, format!("{subject} {what}."));
        let (mut cursors, mut bytes) = (Vec::<String>::new(), 0);
        let mut read =
            ListPages { tools: Vec::new(), left_out: Vec::new(), counts_us: limits::DAY_US, is_whole: true };
        for _ in 0..PAGES {
            let page = self.page(signed, subject, cursors.last().map(String::as_str)).await?;
            let ttl_us = page.ttl_ms.map(|ms| i64::try_from(ms.saturating_mul(1000)).unwrap_or(i64::MAX));
            read.counts_us = read.counts_us.min(ttl_us.unwrap_or(COUNTS_US));
            for tool in page.tools.into_iter().filter(|tool| server.offers(&tool.name)) {
                if read.tools.iter().any(|known| known.name == tool.name) {
                    read.is_whole = false;
                } else if let Err((_, why)) = server.tool(&tool) {
                    // Foreign names may have any length.
                    read.left_out.push((first_bytes(&tool.name, NAME_BYTES).to_owned(), why));
                    read.left_out.truncate(LEFT_OUT);
                } else {
                    bytes += json!(tool).to_string().len();
                    read.tools.push(tool);
                }
                if read.tools.len() > limits::MCP_TOOLS || bytes > limits::MCP_LIST_BYTES {
                    let (most, bytes) = (limits::MCP_TOOLS, limits::MCP_LIST_BYTES);
                    let what = format!("is too long: at most {most} tools and {bytes} bytes are taken");
                    return Err(wrong(what));
                }
            }
            match page.cursor {
                Some(cursor) if read.is_whole && !cursors.contains(&cursor) => cursors.push(cursor),
                None => return Ok(read),
                Some(_) => return Ok(ListPages { is_whole: false, ..read }),
            }
        }
        Err(wrong(format!("has more than {PAGES} pages")))
    }
}

/// Finds the live-listed servers that a prompt, or a prompt that it calls, uses.
fn find<'c>(
    catalog: &'c Catalog,
    prompt: &'c Prompt,
    seen: &mut Vec<&'c str>,
    found: &mut Vec<ServerEntry<'c>>,
) {
    if seen.contains(&prompt.name.as_str()) {
        return;
    }
    seen.push(&prompt.name);
    for entry in &prompt.tools {
        if let Some(server) = entry.mcp().and_then(|name| catalog.mcp.get(name)) {
            if server.list == McpList::Live && found.iter().all(|known| known.server.name != server.name) {
                found.push(ServerEntry { server, prompt, entry });
            }
        } else if let Some(Callable::Prompt(inner)) = catalog.callable(&entry.name) {
            find(catalog, inner, seen, found);
        }
    }
}

/// An unexpired list that an object of the process has requested.
fn shared(process: &Process, key: &str, now: i64) -> Option<(String, i64)> {
    let lists = process.lists.borrow();
    let found = lists.iter().rev().find(|list| list.key == key && list.until_us > now)?;
    Some((found.tools.clone(), found.until_us))
}

/// Shares a list with the other objects of the process. Evicts the oldest.
fn share(process: &Process, list: SharedList) {
    let mut lists = process.lists.borrow_mut();
    lists.retain(|known| known.key != list.key);
    lists.push(list);
    let mut bytes: usize = lists.iter().map(|list| list.tools.len()).sum();
    while lists.len() > SHARED.0 || bytes > SHARED.1 {
        bytes -= lists.remove(0).tools.len();
    }
}
