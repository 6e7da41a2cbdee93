//! Sign-in to a server in a person's browser (docs/mcp.md). A server that requires a sign-in has not run the
//! request. The run is parked with a link. It resumes when the browser returns, or when a poll finds that the
//! owner signed in elsewhere. Here: the wait, and its end without a browser. `callback`: the browser's
//! return.

use std::ops::ControlFlow;

use crate::definitions::McpAuth;
use crate::definitions::message::ToolResult;
use crate::definitions::retry::RetryOn;
use crate::definitions::tier::tier;
use crate::engine::features::McpClient;
use crate::engine::mcp::tokens::{ServerConnection, TokenNeed, TokenRef};
use crate::engine::mcp::{ServerCall, ServerClient};
use crate::engine::waits::gate::would_wait;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::mcp_client::oauth::Challenge;
use crate::mcp_client::oauth::grant::{Client, Token};
use crate::mcp_client::oauth::login::{Login, can_be_signed_in_at, scope};
use crate::mcp_client::oauth::registration::{PUBLIC_URL, callback_address, document_address, public_origin};
use crate::request::directory_call::TokenAsk;
use crate::sdk::scope::EntryMode;
use crate::store::receipts::ServerCallState;
use crate::store::runs::{Parking, Phase};
use crate::store::state::State;
use crate::store::waits::{
    Decision, DecisionScope, InputForm, SignInState, Wait, WaitData, WaitKind, WaitState, WaitingCall,
};
use crate::store::{receipts, waits};
use crate::work::mcp::TransportError;
use crate::work::mcp::auth::{AuthorizationServer, discover, register};
use crate::work::native::NativeCall;
use crate::work::outbound::refused_in_clear;

/// The maximum number of sign-ins for one call. A server may require more rights after the first.
const SIGN_INS: u32 = 3;
const NEVER_ENOUGH: &str = "it asks for more, however often somebody signs in";
/// The maximum bytes of the stored login and its link.
const LOGIN_BYTES: usize = 16 << 10;

/// A sign-in that can be requested from a person.
pub(super) struct SignIn {
    server: String,
    place: TokenRef,
    found: AuthorizationServer,
    /// The login, with a state that lacks the wait.
    login: Login,
    version: i64,
}

impl McpClient<'_> {
    /// The challenge of a server that requires a sign-in.
    pub(super) fn wants_sign_in<'f>(
        &self,
        signed: &ServerConnection<'_>,
        trouble: Option<&'f TransportError>,
    ) -> Option<&'f Challenge> {
        let challenge = trouble?.challenge.as_deref()?;
        matches!(signed.server.auth, Some(McpAuth::Oauth { .. })).then_some(challenge)
    }

    /// Parks the run until a person has signed in, for a call that its server refused. Returns only where the
    /// run cannot be parked, with the model's error result.
    pub(super) async fn park_for_sign_in(
        &self,
        at: ServerCall<'_>,
        asking: &ServerClient<'_>,
        call: &NativeCall,
        challenge: &Challenge,
        call_state: ServerCallState,
    ) -> Result<Result<ToolResult, TransportError>> {
        let (Some(receipt), Parking::Possible) = (at.inside.receipt, at.inside.parking) else {
            return Ok(Ok(would_wait(&at.tool.name)));
        };
        if call_state.sign_ins >= SIGN_INS {
            return Ok(Err(TokenNeed::of(asking.signed).trouble(NEVER_ENOUGH)));
        }
        let sign_in = match self.sign_in(&asking.signed, challenge).await {
            Ok(sign_in) => sign_in,
            Err(trouble) => return Ok(Err(trouble)),
        };
        let timeout_us = self.waits().timeout_us(at.definitions);
        let waiting_call = WaitingCall {
            id: call.call_id.clone(),
            tool: at.tool.name.clone(),
            tier: tier(at.tool),
            args: call.args.clone(),
        };
        let opened = self.transition(|state, sql| {
            let found = receipts::find(sql, receipt)?;
            let batch = found.ok_or_else(|| Error::internal("a receipt is gone"))?.reply;
            let new = self.new_sign_in(state, &sign_in, Some(waiting_call.clone()), timeout_us)?;
            let wait = self.waits().write_wait(
                state,
                sql,
                Wait { receipt: Some(receipt), batch: Some(batch), ..new },
            )?;
            // The call's task cannot be polled before the sign-in.
            for of_task in waits::open(sql)?.iter().filter(|wait| wait.is_of_task(receipt)) {
                waits::defer(sql, of_task.id, self.host.now_us() + timeout_us)?;
                state.wait_due.take();
            }
            let call_state = ServerCallState { sign_ins: call_state.sign_ins + 1, ..call_state.clone() };
            receipts::wait_at_server(sql, receipt, &call_state)?;
            self.post_mcp(state, sql)?;
            self.waits().park_run(state, sql)?;
            Ok([wait])
        })?;
        self.waits().end_parked_flow(&opened).await
    }

    /// Prepares a sign-in before a server lists its tools, in the first step of a run. After a refusal it is
    /// not requested again for a day; the run continues without these tools.
    pub(super) async fn sign_in_to_list(
        &self,
        signed: &ServerConnection<'_>,
        run: i64,
        challenge: &Challenge,
    ) -> Result<SignIn, TransportError> {
        let wanted = TokenNeed::of(*signed);
        let before = self.list_sign_ins(&signed.server.name, run);
        match before.map_err(|error| wanted.trouble(&error.into_message()))? {
            None => Err(wanted.trouble("nobody has signed in")),
            Some(asked) if asked >= SIGN_INS => Err(wanted.trouble(NEVER_ENOUGH)),
            Some(_) => self.sign_in(signed, challenge).await,
        }
    }

    /// The number of sign-ins requested in this run before a list; `None` where none may be requested.
    fn list_sign_ins(&self, server: &str, run: i64) -> Result<Option<u32>> {
        let since = self.host.now_us() - limits::DAY_US;
        self.read(|state, sql| {
            // After the first step the run works without the list.
            let starts = state.active().is_some_and(|run| run.phase == Phase::Start);
            if !starts || state.meta.wait_next == 1 {
                return Ok(starts.then_some(0));
            }
            let (mut asked, mut declined) = (0, false);
            waits::list(sql, i64::MAX >> 11, &mut |wait| {
                let of_list = wait.kind == WaitKind::SignIn && wait.receipt.is_none();
                if of_list && wait.asked.input.as_ref().is_some_and(|input| input.server == server) {
                    let answered = wait.decision.as_ref().is_some_and(|said| said.decision == "answer");
                    declined |= !answered
                        && wait.closed_us.is_some_and(|at| at > since)
                        && wait.state != WaitState::Cancelled;
                    asked += u32::from(wait.run == Some(run));
                }
                // Older waits have closed more than a day ago, because `WAIT_MAX_US` is the longest wait.
                let goes_on = !declined && wait.created_us > since - limits::WAIT_MAX_US;
                Ok(if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
            Ok((!declined).then_some(asked))
        })
    }

    /// Discovers where a person can sign in to a server.
    pub(super) async fn sign_in(
        &self,
        signed: &ServerConnection<'_>,
        challenge: &Challenge,
    ) -> Result<SignIn, TransportError> {
        let wanted = TokenNeed { challenge: Some(challenge), ..TokenNeed::of(*signed) };
        let Some(auth @ McpAuth::Oauth { client_id, scopes, issuer, .. }) = &signed.server.auth else {
            return Err(wanted.trouble("nobody can sign in to it"));
        };
        // Check the definition's other values before a person follows the link.
        wanted.secret()?;
        let place = self.token_place(auth, &wanted)?;
        let said = self.host.var(PUBLIC_URL).unwrap_or_default();
        let origin = public_origin(&said).map_err(|why| wanted.trouble(&why))?;
        let known = self.ephemeral.mcp.tokens.borrow().get(&place.name).and_then(|known| known.token.clone());
        let allowed =
            known.as_ref().filter(|_| challenge.wants_more()).map_or("", |token| token.scope.as_str());
        let asked = challenge.scope.as_deref();
        let beyond = |scope: &&str| scopes.iter().all(|known| known != scope);
        if let Some(scope) = asked.and_then(|asked| asked.split(' ').find(beyond))
            && challenge.wants_more()
            && !scopes.is_empty()
        {
            let text = format!("it wants the scope \"{scope}\", which is not among those of its definition");
            return Err(wanted.trouble(&text));
        }
        let passing = |why: String| wanted.trouble(&why).passing(RetryOn::Network);
        let found = discover(signed.context, &signed.address.url, challenge, issuer.as_deref())
            .await
            .map_err(passing)?;
        can_be_signed_in_at(&found.issuer).map_err(|why| wanted.trouble(&why))?;
        if let Some(at) = refused_in_clear(&*self.host, &found.issuer.authorization_endpoint) {
            return Err(wanted.trouble(&format!("{} is at {at}", found.issuer.issuer)));
        }
        let id = client_id.as_deref().map(|id| wanted.filled(id)).transpose()?;
        let client = client(signed, &found, &origin, id, known.as_ref()).await.map_err(passing)?;
        let random = || u128::from_be_bytes(self.host.random());
        let login = Login {
            state: format!("{:032x}", random()),
            verifier: format!("{:032x}{:032x}", random(), random()),
            redirect: callback_address(&origin),
            scope: scope(scopes, asked, allowed, &found.resource, &found.issuer),
            client,
            names_issuer: found.issuer.authorization_response_iss_parameter_supported,
        };
        let sign_in =
            SignIn { server: signed.server.name.clone(), place, found, login, version: challenge.version };
        let kept = serde_json::to_string(&sign_in.login).map_or(usize::MAX, |text| text.len());
        if kept + sign_in.login.address(&sign_in.found.issuer).len() > LOGIN_BYTES {
            return Err(wanted.trouble("its authorization server describes itself at too great length"));
        }
        Ok(sign_in)
    }

    /// The wait for a sign-in, inside the transaction that opens it.
    pub(super) fn new_sign_in(
        &self,
        state: &State,
        sign_in: &SignIn,
        call: Option<WaitingCall>,
        timeout_us: i64,
    ) -> Result<Wait> {
        let SignIn { server, place, found, login, version } = sign_in;
        // The state leads back to this thread and wait. Its first part is a secret.
        let own = format!("{}.{}.{}", login.state, state.meta.wait_next, state.meta.thread_id);
        let login = Login { state: own, ..login.clone() };
        let url = login.address(&found.issuer);
        let text = serde_json::to_string(&login).map_err(Error::internal)?;
        let sealed = self.sealed(&state.meta.thread_id, "login", &text);
        let now = self.host.now_us();
        let sign_in = SignInState {
            directory: place.directory.clone(),
            name: place.name.clone(),
            version: *version,
            ends_us: now + timeout_us,
            login: serde_json::to_value(sealed).map_err(Error::internal)?,
        };
        let asked = WaitData {
            title: format!("Sign in to “{server}”"),
            reason: Some(format!(
                "The MCP server “{server}” wants to know who asks. Whoever follows the link signs in for this thread's owner."
            )),
            by: DecisionScope::Thread,
            call,
            input: Some(InputForm {
                server: server.clone(),
                name: String::new(),
                form: None,
                url: Some(url),
            }),
            sign_in: Some(sign_in),
            ..WaitData::default()
        };
        let asked = if asked.fits() { asked } else { WaitData { call: None, ..asked } };
        let wait = Wait {
            id: 0,
            kind: WaitKind::SignIn,
            state: WaitState::Open,
            run: state.active().map(|run| run.id),
            receipt: None,
            batch: None,
            digest: None,
            asked,
            decision: None,
            created_us: now,
            expires_us: now,
            closed_us: None,
        };
        Ok(Wait { expires_us: wait.next_look_us(now), ..wait })
    }

    /// Closes all waits for a token after a sign-in, in the caller's transaction. Returns the closed waits,
    /// and the entry if the run continues. `by`: the source of the news.
    pub(super) fn end_sign_ins(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        (directory, name): (&str, &str),
        by: &str,
    ) -> Result<(Vec<Wait>, Option<EntryMode>)> {
        let (mut closed, mut entry) = (Vec::new(), None);
        for mut wait in waits::open(sql)?.into_iter().filter(|wait| wait.is_for_token(directory, name)) {
            let decision =
                Decision { decision: "answer".into(), scope: by.to_owned(), ..Decision::default() };
            self.waits().close_wait(state, sql, &mut wait, WaitState::Decided, Some(decision))?;
            entry = self.waits().resume_after(state, sql, &wait)?.or(entry);
            closed.push(wait);
        }
        Ok((closed, entry))
    }

    /// Performs the effects of closed sign-ins after their commit.
    pub(super) fn sign_ins_ended(&self, closed: &[Wait], entry: Option<EntryMode>) -> Result<()> {
        self.waits().announce_waits(closed)?;
        if let Some(entry) = entry {
            self.start_flow(entry);
        }
        if self.read(|state, _| Ok(state.meta.parent.is_some()))? {
            self.subagents().send_envelopes();
        }
        Ok(())
    }

    /// Polls sign-ins and expires overdue waits. The alarm's work.
    pub(crate) async fn poll_sign_ins(&self) -> Result<()> {
        let looked = self.poll_tokens().await;
        self.waits().expire_waits().and(looked)
    }

    /// Checks whether a person has signed in elsewhere. A directory that does not reply is polled again
    /// later.
    async fn poll_tokens(&self) -> Result<()> {
        let now = self.host.now_us();
        let due = self.read(|state, sql| {
            if waits::next_due(state, sql)?.is_none_or(|at| at > now) {
                return Ok(Vec::new());
            }
            let mut due = waits::open(sql)?;
            due.retain(|wait| {
                wait.kind == WaitKind::SignIn && wait.expires_us <= now && wait.deadline_us() > now
            });
            Ok(due)
        })?;
        for wait in due {
            let Some(SignInState { directory, name, version, .. }) = &wait.asked.sign_in else { continue };
            let place = TokenRef { directory: directory.clone(), name: name.clone() };
            let known = match self.ask_token(&place, TokenAsk::Read).await {
                Ok((known, _)) => Some(known),
                Err(error) => {
                    self.variables().log(&format!("it was not seen whether somebody has signed in: {error}"));
                    None
                }
            };
            let there = known.is_some_and(|known| known.version > *version && known.token.is_some());
            let (closed, entry) = self.transition(|state, sql| {
                let now = self.host.now_us();
                if there {
                    return self.end_sign_ins(state, sql, (directory, name), "elsewhere");
                }
                if waits::find(sql, wait.id)?.is_some_and(|wait| wait.state == WaitState::Open) {
                    let next = wait.next_look_us(now);
                    waits::defer(sql, wait.id, next)?;
                    state.wait_due.take();
                    self.arm_at(state, sql, next, now)?;
                }
                Ok((Vec::new(), None))
            })?;
            self.sign_ins_ended(&closed, entry)?;
        }
        Ok(())
    }
}

/// The deployment's OAuth client: the one in the definition, its metadata document, or a registered one.
async fn client(
    signed: &ServerConnection<'_>,
    found: &AuthorizationServer,
    origin: &str,
    id: Option<String>,
    known: Option<&Token>,
) -> Result<Client, String> {
    let AuthorizationServer { resource, issuer } = found;
    let of = |id: String| Client::of(issuer, id, resource.resource.clone());
    if let Some(id) = id {
        return Ok(of(id));
    }
    // Authorization servers cannot fetch the document from a local machine.
    if issuer.client_id_metadata_document_supported && origin.starts_with("https://") {
        return Ok(of(document_address(origin)));
    }
    let redirect = callback_address(origin);
    let registered = known.map(|token| &token.client).filter(|client| {
        // Reuse a registration only with the same authorization server.
        client.issuer == issuer.issuer && client.redirect.as_deref() == Some(&*redirect)
    });
    if let Some(registered) = registered {
        let Client { id, secret, redirect, in_form, .. } = registered.clone();
        return Ok(Client { secret, redirect, in_form, ..of(id) });
    }
    register(signed.context, found, origin).await
}
