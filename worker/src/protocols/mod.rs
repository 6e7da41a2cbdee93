//! Dispatches requests in the protocols of other systems that a deployment serves.
//!
//! * [`ai_sdk`], [`openai`], [`ag_ui`], [`mcp_server`]: one protocol each; its formats are in the crate
//!   `bobbin-protocols`, in the folder of the same name. `thread_client`: the client with which they call a
//!   thread. `encoder`: encoders of a run's events, for the bridge in JavaScript.

pub(crate) mod ag_ui;
pub(crate) mod ai_sdk;
pub(crate) mod encoder;
pub(crate) mod mcp_server;
pub(crate) mod openai;
pub(crate) mod thread_client;

use bobbin::access::{Action, Caller};
use bobbin::request::surfaces::Surface;
use bobbin::request::{AgUiRoute, BodyRule, ChatRoute, OpenAiRoute, route::no_route};
use bobbin::{Code, Error, Result};

use crate::answer::{self, Response};
use crate::bindings::thrown;
use crate::objects::catalog;
use crate::protocols::ag_ui::AgUiRequest;
use crate::protocols::ai_sdk::Chat;
use crate::protocols::mcp_server::Mcp;
use crate::protocols::openai::OpenAi;
use crate::router::{Incoming, origin_of};

impl Incoming<'_> {
    /// Refuses protocols that the deployment does not serve.
    pub(crate) fn check_surface(&self, surface: Surface) -> Result<()> {
        let surfaces = self.config.surfaces.as_ref().map_err(Clone::clone)?;
        if surfaces.has(surface) { Ok(()) } else { Err(no_route()) }
    }

    /// Serves the AI SDK, if the deployment does.
    pub(crate) async fn chat(
        &self,
        caller: Caller,
        agent: Option<&str>,
        of: ChatRoute,
        rule: BodyRule,
    ) -> Result<Response> {
        self.check_surface(Surface::Chat)?;
        let body = self.body(rule).await?;
        let catalog = catalog(&self.catalog)?;
        let chat = Chat {
            env: &self.env,
            ctx: &self.ctx,
            query: &self.target.query,
            caller,
            origin: self.origin.as_deref(),
            catalog: &catalog,
            links: self.config.links(origin_of(&self.head.url)),
            agent,
            fingerprint: self.fingerprint(),
        };
        match of {
            ChatRoute::Post => chat.post(body).await,
            ChatRoute::History(id) => chat.history(&id).await,
            ChatRoute::Stream(id) => chat.stream(&id).await,
            ChatRoute::Stop(id) => chat.stop(&id).await,
        }
    }

    /// Serves clients of AG-UI, if the deployment does.
    pub(crate) async fn ag_ui(
        &self,
        caller: Caller,
        agent: &str,
        of: AgUiRoute,
        rule: BodyRule,
    ) -> Result<Response> {
        self.check_surface(Surface::AgUi)?;
        let body = self.body(rule).await?;
        let catalog = catalog(&self.catalog)?;
        let asked = AgUiRequest {
            env: &self.env,
            ctx: &self.ctx,
            query: &self.target.query,
            caller,
            origin: self.origin.as_deref(),
            catalog: &catalog,
            links: self.config.links(origin_of(&self.head.url)),
            agent,
            fingerprint: self.fingerprint(),
            last_event_id: self.head.last_event_id.as_deref(),
        };
        match of {
            AgUiRoute::Read => asked.get().await,
            AgUiRoute::Run => asked.post(&body).await,
        }
    }

    /// Serves clients of OpenAI, if the deployment does.
    pub(crate) async fn openai(&self, caller: Caller, of: OpenAiRoute, rule: BodyRule) -> Result<Response> {
        self.check_surface(Surface::OpenAi)?;
        if matches!(of, OpenAiRoute::Models | OpenAiRoute::Model(_)) {
            caller.may(&Action::Catalog, None)?;
        }
        let body = self.body(rule).await?;
        let catalog = catalog(&self.catalog)?;
        let headers = self.request.headers_of(openai::HEADERS);
        let asked = OpenAi {
            env: &self.env,
            ctx: &self.ctx,
            query: &self.target.query,
            caller,
            origin: self.origin.as_deref(),
            catalog: &catalog,
            headers: headers.map_err(|error| Error::internal(thrown(&error)))?,
            idempotency_key: self.head.idempotency_key.clone(),
            fingerprint: self.fingerprint(),
        };
        asked.answer(of, body).await
    }

    /// Serves clients of MCP, if the deployment does.
    pub(crate) async fn mcp(&self, caller: Caller, rule: BodyRule) -> Result<Response> {
        self.check_surface(Surface::Mcp)?;
        mcp_server::check_agents(&caller)?;
        let body = self.body(rule).await?;
        let catalog = catalog(&self.catalog)?;
        let headers = self.request.headers_of(bobbin::protocols::mcp_server::messages::HEADERS);
        let asked = Mcp {
            env: &self.env,
            ctx: &self.ctx,
            caller,
            origin: self.origin.as_deref(),
            catalog: &catalog,
            server: origin_of(&self.head.url),
            headers: headers.map_err(|error| Error::internal(thrown(&error)))?,
            fingerprint: self.fingerprint(),
            secret: self.config.secret(),
            dev: self.config.dev,
        };
        asked.post(body).await
    }

    /// The issuer of access tokens for MCP, if the deployment accepts any.
    pub(crate) fn mcp_metadata(&self) -> Result<Response> {
        self.check_surface(Surface::Mcp)?;
        let oauth = self.config.oauth.as_ref().map_err(Clone::clone)?;
        let metadata = oauth.as_ref().ok_or_else(no_route)?.metadata(&self.resource());
        // Public, and read by pages of clients.
        answer::of_value(&metadata, Some("*")).map_err(|error| Error::internal(thrown(&error)))
    }

    /// The address of MCP, which access tokens name.
    pub(crate) fn resource(&self) -> String {
        format!("{}/mcp", origin_of(&self.head.url))
    }

    /// The challenge that describes how a client of MCP authenticates.
    pub(crate) fn challenge(&self) -> String {
        let Ok(Some(oauth)) = &self.config.oauth else { return "Bearer".to_owned() };
        let wrong = if self.head.authorization.is_some() { ", error=\"invalid_token\"" } else { "" };
        let origin = oauth.server(origin_of(&self.head.url));
        format!("Bearer resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\"{wrong}")
    }

    /// Refuses pages of other origins. This prevents DNS rebinding.
    pub(crate) fn check_origin(&self) -> Result<()> {
        let own = |origin: &String| origin.eq_ignore_ascii_case(origin_of(&self.head.url));
        match &self.head.origin {
            Some(origin) if self.origin.is_none() && !own(origin) => {
                Err(Error::new(Code::Forbidden, "Pages of this origin may not ask here.")
                    .hint("Name it in BOBBIN_ALLOWED_ORIGINS."))
            }
            _ => Ok(()),
        }
    }
}
