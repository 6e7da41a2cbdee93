//! The stateless part. Every request is authenticated and matched here, and answered here or by one object in
//! one remote call.

use bobbin::access::links::{EXPIRES, LIFE, SIGNATURE};
use bobbin::access::{Action, Caller, Scope, no_thread};
use bobbin::api::servers;
use bobbin::definitions::MemoryScope;
use bobbin::directory::{DirectoryCall, EnvAsk};
use bobbin::json;
use bobbin::memory::{check_body, shared_scope};
use bobbin::protocols::responses::server::Health;
use bobbin::request::directory_call::{OwnerOrder, ROOT, name_of};
use bobbin::request::every_owner::{EVERY_OWNER, EveryOwner, Listing};
use bobbin::request::memory::object_name;
use bobbin::request::target::below_thread;
use bobbin::request::{
    BodyRule, EnvLevel, FINGERPRINT, Follow, Matched, MemoryAsk, MemoryCall, MemoryRoute, OpenRoute, Query,
    Route, StreamRoute, Target, ThreadRequest, ThreadRoute, agents, cors, endpoints, fields, route::no_route,
    thread_id,
};
use bobbin::{Code, Error, Result};
use wasm_bindgen::prelude::*;

use crate::answer::{self, Response};
use crate::auth::{self, Config};
use crate::bindings::{Env, Head, IncomingRequest, thrown};
use crate::create;
use crate::events::{self, EventsRequest};
use crate::objects::{COUNTERS, catalog};
use crate::protocols::mcp_server;
use crate::protocols::openai;
use crate::remote::{self, ObjectResponse, RelayedBody};
use crate::{streamed, upgrade};

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    #[wasm_bindgen(catch)]
    fn preflight(origin: &str, methods: &str, headers: &str, seconds: u32) -> Result<Response, JsValue>;

}

#[wasm_bindgen(module = "/bodies.js")]
extern "C" {
    #[wasm_bindgen(catch, js_name = bodyText)]
    async fn body_text(request: &IncomingRequest, limit: usize, known: bool) -> Result<JsValue, JsValue>;
}

/// One incoming request.
pub(crate) struct Incoming<'a> {
    pub(crate) request: IncomingRequest,
    pub(crate) head: Head,
    pub(crate) env: Env,
    pub(crate) ctx: JsValue,
    pub(crate) catalog: JsValue,
    pub(crate) config: &'a Config,
    pub(crate) target: Target,
    /// A page's origin that may read the response.
    pub(crate) origin: Option<String>,
}

/// Answers a request to the Worker.
pub(crate) async fn answer(
    request: JsValue,
    env: JsValue,
    ctx: JsValue,
    catalog: JsValue,
) -> Result<Response, JsValue> {
    let request = request.unchecked_into::<IncomingRequest>();
    let env = Env::new(env);
    let config = Config::of(&env);
    let head = Head::of(&request)?;
    let target = Target::of(&head.url);
    let origin = head.origin.clone().filter(|origin| config.allows(origin));
    if head.method == "OPTIONS"
        && let Some(origin) = &origin
    {
        let asked = request.header("access-control-request-headers");
        let headers = cors::allowed_headers(asked.as_deref());
        return preflight(origin, cors::METHODS, headers, cors::PREFLIGHT_S);
    }
    let incoming = Incoming { request, head, env, ctx, catalog, config: &config, target, origin };
    match incoming.route().await {
        Ok(response) => Ok(response),
        Err(error) => {
            let allow = (error.code == Code::MethodNotAllowed).then(|| incoming.allowed());
            let (error, allow) = match allow {
                Some(methods) if methods.is_empty() => (no_route(), None),
                allow => (error, allow),
            };
            if incoming.target.path == "/mcp" {
                let error = answer::without_details_of(error, config.dev);
                let told = mcp_server::of_error(
                    &error,
                    incoming.origin.as_deref(),
                    allow.as_deref(),
                    &incoming.challenge(),
                );
                return told.map_err(|error| JsValue::from_str(&error.message));
            }
            if incoming.target.path.starts_with("/v1/") {
                let error = answer::without_details_of(error, config.dev);
                let told = openai::of_error(&error, incoming.origin.as_deref(), allow.as_deref());
                return told.map_err(|error| JsValue::from_str(&error.message));
            }
            answer::of_error(error, incoming.origin.as_deref(), allow.as_deref(), config.dev)
        }
    }
}

impl Incoming<'_> {
    /// The methods of the path, including those of endpoints.
    fn allowed(&self) -> String {
        let leads = |method: &&str| match Route::of(method, &self.target) {
            Ok(Matched { route: Route::Stream(_, StreamRoute::Endpoint { path, .. }), .. }) => {
                catalog(&self.catalog)
                    .is_ok_and(|catalog| endpoints::methods(&catalog.endpoints, &path).contains(method))
            }
            route => route.is_ok(),
        };
        let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
        methods.into_iter().filter(leads).collect::<Vec<_>>().join(", ")
    }

    async fn route(&self) -> Result<Response> {
        let matched = Route::of(&self.head.method, &self.target);
        auth::guard(self.config, &self.head, matched.as_ref().ok().map(|matched| matched.body))?;
        let Matched { route, parameters, body: rule } = matched?;
        let check_query = || parameters.map_or(Ok(()), |known| self.target.query.check(known));
        if let Route::Open(of) = route {
            // An authorization server may send further parameters, and so may a load balancer.
            if !matches!(of, OpenRoute::Health | OpenRoute::SignedIn) {
                check_query()?;
            }
            return self.open(of, rule).await;
        }
        let caller = match route {
            Route::Mcp => {
                self.check_origin()?;
                auth::authenticate_mcp(self.config, &self.head, &self.resource()).await?
            }
            _ => auth::authenticate(self.config, &self.head, &self.target.query, &route)?,
        };
        check_query()?;
        match route {
            Route::Open(of) => self.open(of, rule).await,
            Route::Mcp => self.mcp(caller, rule).await,
            Route::ListWaits => self.waits(&caller).await,
            Route::Agents => {
                caller.may(&Action::Catalog, None)?;
                self.value(&agents::list(&*catalog(&self.catalog)?, origin_of(&self.head.url)))
            }
            Route::Agent(name) => {
                caller.may(&Action::Catalog, None)?;
                self.value(&agents::detail(&*catalog(&self.catalog)?, &name, origin_of(&self.head.url))?)
            }
            Route::ExplainAgent(name) => {
                caller.may(&Action::Catalog, None)?;
                let deployment = |name: &str| self.env.var(name);
                self.value(&bobbin::request::explain::explain(
                    &*catalog(&self.catalog)?,
                    &name,
                    &bobbin::tools::names(),
                    &deployment,
                )?)
            }
            Route::MintToken => self.mint(&caller, rule).await,
            Route::CreateThread => {
                let body = self.body(rule).await?;
                let key = self.head.idempotency_key.clone();
                self.answer(&create::create(&self.env, caller, key, body).await?)
            }
            Route::ListThreads => self.list(&caller).await,
            Route::ListOwners => {
                caller.may(&Action::ListOwners, None)?;
                let call =
                    DirectoryCall::Owners { query: self.target.query.clone(), order: OwnerOrder::Name };
                self.answer(&call_directory(&self.env, ROOT, &call).await?)
            }
            Route::ListServers => {
                caller.may(&Action::ListServers, None)?;
                let answer = call_directory(&self.env, ROOT, &DirectoryCall::McpKnown).await?;
                if answer.status != 200 {
                    return self.answer(&answer);
                }
                let known = answer.body.as_string().unwrap_or_default();
                let known = bobbin::json::from_str(&known).map_err(Error::internal)?;
                self.value(&servers::servers(&*catalog(&self.catalog)?, &known))
            }
            Route::GetEnv(of) => self.values(&caller, of, EnvAsk::Shown).await,
            Route::PatchEnv(of) => {
                // Check permission before reading the body.
                self.directory_of(&caller, of)?;
                let body = self.body(rule).await?;
                self.values(&caller, of, EnvAsk::Change(body)).await
            }
            Route::Chat { agent, of } => self.chat(caller, agent.as_deref(), of, rule).await,
            Route::AgUi { agent, of } => self.ag_ui(caller, &agent, of, rule).await,
            Route::OpenAi(of) => self.openai(caller, of, rule).await,
            Route::Memory { memory, of } => self.memory(&caller, memory, of, rule).await,
            Route::Thread(named, route) => {
                let id = thread_id::named(&named, caller.owner()).ok_or_else(no_thread)?;
                self.thread(caller, id, route, rule).await
            }
            Route::Stream(named, route) => {
                let id = thread_id::named(&named, caller.owner()).ok_or_else(no_thread)?;
                self.streamed(caller, id, route).await
            }
            Route::Follow(named, follow) => {
                let id = thread_id::named(&named, caller.owner()).ok_or_else(no_thread)?;
                self.follow(caller, &id, follow).await
            }
        }
    }

    /// Serves a route that needs no credentials.
    async fn open(&self, of: OpenRoute, rule: BodyRule) -> Result<Response> {
        match of {
            OpenRoute::Health => self.health(),
            OpenRoute::McpMetadata => self.mcp_metadata(),
            OpenRoute::SignedIn => self.signed_in().await,
            OpenRoute::ClientDocument => {
                let var = |name: &str| self.env.var(name);
                self.value(&servers::client_document(&var, origin_of(&self.head.url)))
            }
            OpenRoute::Resume => self.resume(rule).await,
        }
    }

    async fn values(&self, caller: &Caller, of: EnvLevel, ask: EnvAsk) -> Result<Response> {
        let directory = self.directory_of(caller, of)?;
        let call = DirectoryCall::Env { directory: directory.clone(), ask };
        self.answer(&call_directory(&self.env, &directory, &call).await?)
    }

    /// A memory that threads share, of an owner or of the instance.
    async fn memory(
        &self,
        caller: &Caller,
        memory: String,
        of: MemoryRoute,
        rule: BodyRule,
    ) -> Result<Response> {
        let asked = self.target.query.get("user_id").filter(|id| !id.is_empty());
        // A caller without access must not learn which memories exist.
        caller.may(&Action::Memories { user_id: asked.or(caller.owner()) }, None)?;
        let scope = shared_scope(&*catalog(&self.catalog)?, &memory);
        let scope = match scope {
            Ok(scope) => scope,
            Err(error) => {
                // Unknown fields are reported first, as on every route.
                check_body(&of, &self.body(rule).await?)?;
                return Err(error);
            }
        };
        let owner = match scope {
            MemoryScope::Owner => Some(asked.or(caller.owner()).ok_or_else(|| {
                Error::missing("user_id").hint(format!("Say whose memory: /api/memory/{memory}?user_id=…"))
            })?),
            _ if asked.is_some() => {
                let text = format!("The memory “{memory}” is the instance's: it has no `user_id`.");
                return Err(Error::field("user_id", text));
            }
            _ => None,
        };
        caller.may(&Action::Memories { user_id: owner }, None)?;
        let name = object_name(owner, &memory);
        let idempotency_key = self.head.idempotency_key.clone().filter(|_| !of.reads());
        let reads = of.reads();
        let query =
            Query(self.target.query.0.iter().filter(|(name, _)| name != "user_id").cloned().collect());
        let ask = MemoryAsk::Route { of, query, idempotency_key };
        let call = MemoryCall { memory, owner: owner.map(str::to_owned), ask };
        let head = call.to_json()?;
        let failed = |error: JsValue| Error::internal(thrown(&error));
        let objects = self.env.memories().map_err(failed)?;
        if let Some(body) = self.checked(rule)? {
            return self.answer(&remote::relay(&objects, &name, &head, body).await?);
        }
        let text = JsValue::from_str(&format!("{head}\n"));
        let ask = async || {
            let stub = objects.get_by_name(&name).map_err(failed)?;
            remote::call(&stub, &text).await
        };
        let answer = match ask().await {
            // The object was restarted and responds at once to a second call. Only reads are repeated.
            Err(error) if reads && error.code == Code::Overloaded => ask().await,
            other => other,
        };
        self.answer(&answer?)
    }

    /// The directory whose values the caller may read and set.
    fn directory_of(&self, caller: &Caller, of: EnvLevel) -> Result<String> {
        let asked = self.target.query.get("user_id").filter(|id| !id.is_empty());
        let owner = match of {
            EnvLevel::Instance => None,
            EnvLevel::Account => {
                let owner = asked.or(caller.owner());
                Some(owner.ok_or_else(|| {
                    Error::missing("user_id").hint("Say whose values: /api/envs/account?user_id=…")
                })?)
            }
        };
        caller.may(&Action::Values { user_id: owner }, None)?;
        Ok(owner.map_or_else(|| ROOT.to_owned(), |owner| name_of(Some(owner))))
    }

    /// Reports that the server works. Admins also receive the number of warnings of the definitions.
    fn health(&self) -> Result<Response> {
        let catalog = catalog(&self.catalog)?;
        let caller =
            auth::authenticate(self.config, &self.head, &self.target.query, &Route::Open(OpenRoute::Health));
        let is_admin = caller.is_ok_and(|caller| caller.scope == Scope::Admin);
        self.value(&json!(Health {
            status: "ok",
            version: env!("CARGO_PKG_VERSION"),
            agents: catalog.agents.len() as u64,
            warnings: is_admin.then_some(catalog.warnings),
        }))
    }

    async fn thread(
        &self,
        caller: Caller,
        id: String,
        route: ThreadRoute,
        rule: BodyRule,
    ) -> Result<Response> {
        let query = self.target.query.clone();
        if self.config.dev && route == ThreadRoute::Diagnostics && query.get("counters").is_some() {
            return self.answer(&self.counters(&id).await?);
        }
        let body = self.checked(rule)?;
        let reads = route.reads();
        let idempotency_key = if reads { None } else { self.head.idempotency_key.clone() };
        let headers = match route {
            ThreadRoute::Get => vec![(agents::ORIGIN.to_owned(), origin_of(&self.head.url).to_owned())],
            ThreadRoute::DecideWait(_) | ThreadRoute::DecideWaits => self.fingerprint(),
            _ if route.may_begin_run() => {
                let named = self.request.headers_of(route.headers());
                named.map_err(|error| Error::internal(thrown(&error)))?
            }
            _ => Vec::new(),
        };
        let request = ThreadRequest {
            thread_id: id.clone(),
            life: None,
            caller,
            route,
            query,
            idempotency_key,
            headers,
            body: String::new(),
        };
        if let Some(body) = body {
            let threads = self.env.threads().map_err(|error| Error::internal(thrown(&error)))?;
            let head = request.to_json()?;
            return self.answer(&remote::relay(&threads, &id, &head, body).await?);
        }
        let answer = match call_thread(&self.env, &id, &request, "").await {
            // The object was restarted and responds at once to a second call. Only reads are repeated.
            Err(error) if reads && error.code == Code::Overloaded => {
                call_thread(&self.env, &id, &request, "").await
            }
            other => other,
        };
        self.answer(&answer?)
    }

    /// Opens a connection that follows the thread.
    async fn follow(&self, caller: Caller, id: &str, follow: Follow) -> Result<Response> {
        let threads = self.env.threads().map_err(|error| Error::internal(thrown(&error)))?;
        let query = &self.target.query;
        let wanted = EventsRequest { thread: id, caller, query, origin: self.origin.as_deref() };
        match follow {
            Follow::Socket => events::stream(&threads, &self.head, wanted).await,
            Follow::Events => events::events(&threads, &self.head, &self.ctx, wanted).await,
        }
    }

    /// Forwards the request with its body as a stream, and returns the object's response.
    async fn streamed(&self, caller: Caller, id: String, route: StreamRoute) -> Result<Response> {
        let failed = |error: JsValue| Error::internal(thrown(&error));
        let mut headers = self.request.headers_of(route.headers()).map_err(failed)?;
        headers.retain(|(name, _)| endpoints::passes_header(name));
        if matches!(route, StreamRoute::Endpoint { .. }) {
            headers.push((endpoints::ADDRESS.to_owned(), below_thread(&self.head.url)));
        }
        let reads = route.reads();
        // The parameters of a link are not parameters of the file's route.
        let mut query = self.target.query.clone();
        query.0.retain(|(name, _)| ![EXPIRES, LIFE, SIGNATURE].contains(&name.as_str()));
        let call = ThreadRequest {
            thread_id: id.clone(),
            life: None,
            caller,
            route,
            query,
            idempotency_key: None,
            headers,
            body: String::new(),
        };
        let threads = self.env.threads().map_err(failed)?;
        let call = upgrade::ascii(&call.to_json()?);
        let origin = self.origin.as_deref();
        let answer = match streamed::forward(&threads, &id, &call, &self.request, origin).await {
            Err(_) if reads => streamed::forward(&threads, &id, &call, &self.request, origin).await,
            other => other,
        };
        answer.map_err(|error| remote::lost(&error))
    }

    async fn list(&self, caller: &Caller) -> Result<Response> {
        let owner = self.listed_owner(caller)?;
        let key = self.target.query.get("key");
        key.map_or(Ok(()), thread_id::check_key)?;
        let origin = origin_of(&self.head.url).to_owned();
        if owner == Some(EVERY_OWNER) && caller.owner().is_none() {
            return self
                .of_every_owner(EveryOwner::new(Listing::Threads, &self.target.query, &origin)?)
                .await;
        }
        let only = key.map(|key| thread_id::of_key(owner, key));
        let call = DirectoryCall::List { query: self.target.query.clone(), origin, only };
        self.answer(&call_directory(&self.env, &name_of(owner), &call).await?)
    }

    /// Open waits in all threads of an owner.
    async fn waits(&self, caller: &Caller) -> Result<Response> {
        let owner = self.listed_owner(caller)?;
        if owner == Some(EVERY_OWNER) && caller.owner().is_none() {
            return self.of_every_owner(EveryOwner::new(Listing::Waits, &self.target.query, "")?).await;
        }
        let call = DirectoryCall::Waits { query: self.target.query.clone() };
        self.answer(&call_directory(&self.env, &name_of(owner), &call).await?)
    }

    /// The owner of listed threads: the query's `user_id`, or the caller.
    fn listed_owner<'a>(&'a self, caller: &'a Caller) -> Result<Option<&'a str>> {
        let asked = self.target.query.get("user_id").filter(|id| !id.is_empty());
        let owner = asked.or(caller.owner());
        caller.may(&Action::ListThreads { user_id: owner }, None)?;
        Ok(owner)
    }

    /// Decides a wait by a link: `{"token": …}` and the fields of a decision. The token names the wait and
    /// grants the permission.
    async fn resume(&self, rule: BodyRule) -> Result<Response> {
        let text = self.body(rule).await?;
        let mut fields = match bobbin::json::from_str(&text) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => return Err(Error::new(Code::BadJson, "The body must be a JSON object.")),
        };
        // Unknown fields are reported first, as on every route.
        fields::Body::of(fields.clone()).known(fields::RESUME)?;
        let token = fields.remove("token").ok_or_else(|| Error::missing("token"))?;
        let token = token.as_str().ok_or_else(|| Error::field("token", "`token` must be a string."))?;
        let caller = auth::of_link(self.config, token)?;
        let Scope::Wait(thread, wait) = caller.scope.clone() else { return Err(no_thread()) };
        if !thread_id::is_valid(&thread) {
            return Err(no_thread());
        }
        let request = ThreadRequest {
            thread_id: thread.clone(),
            life: None,
            caller,
            route: ThreadRoute::DecideWait(wait),
            query: Query::default(),
            idempotency_key: self.head.idempotency_key.clone(),
            headers: vec![(FINGERPRINT.to_owned(), auth::fingerprint(token))],
            body: String::new(),
        };
        let body = serde_json::Value::Object(fields).to_string();
        self.answer(&call_thread(&self.env, &thread, &request, &body).await?)
    }

    /// Which of several keys was used, for the log of decisions.
    pub(crate) fn fingerprint(&self) -> Vec<(String, String)> {
        let shown = self.head.authorization.as_deref().and_then(|header| header.split_once(' '));
        shown.map(|(_, key)| (FINGERPRINT.to_owned(), auth::fingerprint(key))).into_iter().collect()
    }

    async fn mint(&self, caller: &Caller, rule: BodyRule) -> Result<Response> {
        let body = self.body(rule).await?;
        let minted = auth::mint(self.config, &self.env, caller, &body).await?;
        self.value(&serde_json::to_value(minted).map_err(Error::internal)?)
    }

    async fn counters(&self, id: &str) -> Result<ObjectResponse> {
        let failed = |error: JsValue| Error::internal(thrown(&error));
        let stub = self.env.threads().and_then(|threads| threads.get_by_name(id)).map_err(failed)?;
        remote::call(&stub, &JsValue::from_str(COUNTERS)).await
    }

    /// The body by the route's rule, not read yet; `None` if there is none.
    fn checked(&self, rule: BodyRule) -> Result<Option<RelayedBody<'_>>> {
        let BodyRule::Json { limit, .. } = rule else { return Ok(None) };
        let length = if self.head.has_body { self.head.content_length } else { Some(0) };
        rule.check(self.head.content_type.as_deref(), length)?;
        let relayed = RelayedBody { request: &self.request, rule, limit, known: length.is_some() };
        Ok(self.head.has_body.then_some(relayed))
    }

    /// The body's text, for requests that are answered here.
    pub(crate) async fn body(&self, rule: BodyRule) -> Result<String> {
        let Some(RelayedBody { request, limit, known, .. }) = self.checked(rule)? else {
            return Ok(String::new());
        };
        let text = body_text(request, limit, known).await;
        let text = text.map_err(|error| remote::unreadable_body(&thrown(&error)))?;
        if text.is_undefined() { Err(rule.too_large()) } else { Ok(text.as_string().unwrap_or_default()) }
    }

    pub(crate) fn answer(&self, answer: &ObjectResponse) -> Result<Response> {
        answer::of_answer(answer, self.origin.as_deref()).map_err(|error| Error::internal(thrown(&error)))
    }

    pub(crate) fn value(&self, value: &serde_json::Value) -> Result<Response> {
        answer::of_value(value, self.origin.as_deref()).map_err(|error| Error::internal(thrown(&error)))
    }
}

/// Scheme, host and port of an address.
pub(crate) fn origin_of(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#']));
    end.and_then(|end| url.get(..host + end)).unwrap_or(url)
}

/// Sends a request with its body to a thread's object.
pub(crate) async fn call_thread(
    env: &Env,
    id: &str,
    request: &ThreadRequest,
    body: &str,
) -> Result<ObjectResponse> {
    let failed = |error: JsValue| Error::internal(thrown(&error));
    let stub = env.threads().and_then(|threads| threads.get_by_name(id)).map_err(failed)?;
    let mut head = request.to_json()?;
    head.push('\n');
    head.push_str(body);
    remote::call(&stub, &JsValue::from_str(&head)).await
}

/// Sends a call to a directory.
pub(crate) async fn call_directory(env: &Env, name: &str, call: &DirectoryCall) -> Result<ObjectResponse> {
    let failed = |error: JsValue| Error::internal(thrown(&error));
    let stub = env.directories().and_then(|directories| directories.get_by_name(name)).map_err(failed)?;
    let text = call.to_json()?;
    remote::call(&stub, &JsValue::from_str(&text)).await
}
