//! The return of a browser from a sign-in to a server. The browser has no key. Its state is checked against
//! the stored one, and its code is exchanged here. The link works until a sign-in succeeds, so that after a
//! crash or a failure of the authorization server the person can retry.

use crate::engine::features::McpClient;
use crate::engine::mcp::sealed_text::SealedText;
use crate::engine::mcp::tokens::{RenewalGuard, ServerConnection, TokenNeed, TokenRef};
use crate::error::{Code, Error, Result};
use crate::json;
use crate::mcp_client::oauth::grant::{Grant, KnownToken, NoToken};
use crate::mcp_client::oauth::login::{Callback, Login, SignInError};
use crate::request::Reply;
use crate::store::waits;
use crate::store::waits::{SignInState, Wait, WaitKind, WaitState};
use crate::work::mcp::Address;
use crate::work::mcp::auth::token;

/// The outcome of a callback, from which the page is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallbackOutcome {
    SignedIn,
    /// An earlier sign-in by this link succeeded.
    Already,
    /// The wait has ended otherwise.
    Over,
    /// The state belongs to no wait of this thread.
    Unknown,
    /// The authorization server denied the sign-in.
    Denied,
    /// The exchange of the code failed.
    Failed,
    /// The same callback is in progress.
    Busy,
}

impl CallbackOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            CallbackOutcome::SignedIn => "signed_in",
            CallbackOutcome::Already => "already",
            CallbackOutcome::Over => "over",
            CallbackOutcome::Unknown => "unknown",
            CallbackOutcome::Denied => "denied",
            CallbackOutcome::Failed => "failed",
            CallbackOutcome::Busy => "busy",
        }
    }
}

impl McpClient<'_> {
    /// `GET /api/oauth/callback`: `{outcome, server}`. It names the server only if the state is valid.
    pub(crate) async fn came_back(&self, body: &str) -> Result<Reply> {
        let callback: Callback = crate::json::from_str(body).map_err(Error::internal)?;
        let (came, server) = match self.sign_in_of(&callback)? {
            None => (CallbackOutcome::Unknown, None),
            Some((wait, login)) => {
                let server = wait.asked.input.as_ref().map(|input| input.server.clone());
                let came = match wait.state {
                    WaitState::Open => self.exchange_code(&wait, &login, &callback).await?,
                    WaitState::Decided
                        if wait.decision.as_ref().is_some_and(|said| said.decision == "answer") =>
                    {
                        CallbackOutcome::Already
                    }
                    _ => CallbackOutcome::Over,
                };
                (came, server)
            }
        };
        Ok(Reply::json(200, &json!({ "outcome": came.as_str(), "server": server })))
    }

    /// The wait that a state names, and its stored login, if the state matches that.
    fn sign_in_of(&self, callback: &Callback) -> Result<Option<(Wait, Login)>> {
        let number = callback.state.split('.').nth(1).and_then(|number| number.parse::<u32>().ok());
        self.read(|state, sql| {
            let Some(number) = number.filter(|_| state.meta.wait_next > 1) else { return Ok(None) };
            let wait = waits::find(sql, i64::from(number))?.filter(|wait| wait.kind == WaitKind::SignIn);
            let Some(wait) = wait else { return Ok(None) };
            let sealed = wait.asked.sign_in.as_ref().map(|asked| asked.login.clone());
            let sealed = sealed.and_then(|sealed| crate::json::from_value::<SealedText>(sealed).ok());
            let text = sealed.and_then(|sealed| self.unsealed(&state.meta.thread_id, "login", sealed));
            let login = text.and_then(|text| crate::json::from_str::<Login>(&text).ok());
            Ok(login.filter(|login| login.is_of(&callback.state)).map(|login| (wait, login)))
        })
    }

    /// Exchanges a code for a token, stores the token, and resumes the run.
    async fn exchange_code(
        &self,
        wait: &Wait,
        login: &Login,
        callback: &Callback,
    ) -> Result<CallbackOutcome> {
        let code = match login.code(callback) {
            Ok(code) => code,
            Err(SignInError::Foreign) => return Ok(CallbackOutcome::Unknown),
            Err(SignInError::Denied) => return Ok(CallbackOutcome::Denied),
        };
        let (Some(asked), Some(input)) = (&wait.asked.sign_in, &wait.asked.input) else {
            return Ok(CallbackOutcome::Unknown);
        };
        // Authorization servers revoke a code that is used twice, together with its tokens.
        let Some(_under_way) = RenewalGuard::begin(&self.ephemeral.mcp.renewing, &callback.state) else {
            return Ok(CallbackOutcome::Busy);
        };
        let failed = |why: &str| {
            self.variables()
                .log(&format!("nobody is signed in to the MCP server \"{}\": {why}", input.server));
            Ok(CallbackOutcome::Failed)
        };
        let Some(server) = self.catalog.mcp.get(&input.server) else {
            return failed("there is none any more");
        };
        self.variables().refresh_env().await?;
        let agent = self.read(|state, _| Ok(state.meta.agent.clone()))?;
        let env = |name: &str| self.variables().agent_env(&agent, name);
        let context = self.work_context();
        let address = match Address::of(server, &*context, &env) {
            Ok(address) => address,
            Err(why) => return failed(&why),
        };
        let signed = ServerConnection { context: &*context, server, address: &address, env: &env };
        let secret = match TokenNeed::of(signed).secret() {
            Ok(secret) => secret,
            Err(trouble) => return failed(&trouble.text),
        };
        let grant = Grant::Code { code, verifier: &login.verifier, redirect: &login.redirect };
        let said = (login.scope.as_str(), secret.as_deref());
        let token = match token(&*context, &login.client, &grant, said, None).await {
            Ok(token) => token,
            Err(NoToken::Denied(why) | NoToken::Failed(why)) => return failed(&why),
        };
        let SignInState { directory, name, .. } = asked;
        let place = TokenRef { directory: directory.clone(), name: name.clone() };
        let version = self.put_token(&place, None, Some(token.clone())).await?;
        self.has_token(&place, KnownToken { version, token: Some(token) });
        let ended = self.transition(|state, sql| self.end_sign_ins(state, sql, (directory, name), "browser"));
        let (closed, entry) = match ended {
            // The thread is deleted. The token is the owner's and works for other threads.
            Err(error) if error.code == Code::ThreadNotFound => return Ok(CallbackOutcome::Over),
            ended => ended?,
        };
        self.sign_ins_ended(&closed, entry)?;
        Ok(CallbackOutcome::SignedIn)
    }
}
