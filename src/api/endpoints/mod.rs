//! Custom endpoints (spec §26): the application's own routes below a thread. An endpoint has access to the
//! thread but does not start a run. A run that is in progress continues meanwhile.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde_json::Value;

use crate::access::Action;
use crate::api::Api;
use crate::definitions::endpoint::{Endpoint, EndpointRoute, Method};
use crate::engine::export::detached::EndpointSpan;
use crate::engine::operator;
use crate::env::Redacted;
use crate::error::{Code, Error, Result};
use crate::host::http::Body;
use crate::request::endpoints::{ADDRESS, RouteMatch, find, passes_header};
use crate::request::route::no_route;
use crate::request::row::not_allowed;
use crate::request::{RawResponse, StreamRoute, ThreadRequest};
use crate::sdk::scope::{EntryMode, Origin, Scope};
use crate::store::log_record::Event;
use crate::trace::{TRACEPARENT, TRACESTATE, Trace};
use crate::work::native::endpoint_call::EndpointCall;
use crate::work::{ExecutionPlan, Failure};
use crate::{limits, work};

/// The outcome of a request: the response, and the reason if the endpoint failed.
struct EndpointOutcome {
    served: RawResponse,
    error: Option<String>,
}

impl Api<'_> {
    /// The action that a caller needs. An unknown path needs only read access, so that it is answered as
    /// unknown.
    pub(super) fn endpoint_action(&self, method: Method, path: &[String]) -> Action<'static> {
        match find(&self.catalog.endpoints, method, path) {
            RouteMatch::Endpoint(..) if !method.reads() => Action::Manage,
            _ => Action::ReadThread,
        }
    }

    /// Serves a request with the endpoint of its path.
    pub(super) async fn serve_endpoint(
        &self,
        request: &ThreadRequest<StreamRoute>,
        method: Method,
        path: &[String],
        body: Body,
    ) -> Result<RawResponse> {
        let (route, endpoint, params) = match find(&self.catalog.endpoints, method, path) {
            RouteMatch::Endpoint(route, endpoint, params) => (route, endpoint, params),
            RouteMatch::OtherMethods(methods) => return Ok(other_methods(method, path, methods)),
            RouteMatch::Nothing if path.is_empty() => return Ok(other_methods(method, path, Vec::new())),
            RouteMatch::Nothing => return Err(no_route()),
        };
        let body = whole(request, body).await?;
        let random = self.host.random();
        let request_id: String = random.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let named = Trace::of_headers(request.header(TRACEPARENT), request.header(TRACESTATE));
        let trace = self.telemetry().trace_of_request(named.as_ref(), &request_id)?;
        let scope = Scope::beside(Origin::Detached, &format!("e{request_id}"), EntryMode::First)
            .in_package(self.catalog.packages.of_route(route))
            .in_trace(trace);
        let (thread_id, agent_id) =
            self.read(|state, _| Ok((state.meta.thread_id.clone(), state.meta.agent.clone())))?;
        if !endpoint.variables.is_empty() {
            self.variables().refresh_env().await?;
        }
        let env = |name: &str| self.variables().agent_env(&agent_id, name);
        let declared = endpoint.variables.iter().filter_map(|variable| {
            env(&variable.name).map(|value| (variable.name.clone(), Value::String(value)))
        });
        let call = EndpointCall {
            native: String::new(),
            name: route.to_string(),
            thread_id,
            agent_id: agent_id.clone(),
            request_id,
            method,
            path: format!("/{}", path.join("/")),
            params,
            query: request.query.clone(),
            headers: request.headers.iter().filter(|(name, _)| passes_header(name)).cloned().collect(),
            address: request.header(ADDRESS).unwrap_or_default().to_owned(),
            body,
            now_us: self.host.now_us(),
            random,
            env: declared.collect(),
            sleep: self.sleep(),
            state: self.state_in(scope.clone()),
        };
        let (id, began_us) = (call.request_id.clone(), call.now_us);
        let EndpointOutcome { served, error } = self.answer_of(route, endpoint, &env, call, &scope).await?;
        let answered = EndpointSpan { id, route: route.to_string(), began_us, status: served.status, error };
        if let Err(error) = self.telemetry().endpoint_answered(answered, named, &scope.runs.borrow())
            && error.code != Code::ThreadNotFound
        {
            self.variables()
                .log_once(format!("a collector will not be told of a request to {route}: {error}"));
        }
        Ok(served)
    }

    /// The endpoint's response, or its failure.
    async fn answer_of(
        &self,
        route: &EndpointRoute,
        endpoint: &Endpoint,
        env: &dyn Fn(&str) -> Option<String>,
        call: EndpointCall,
        scope: &Scope,
    ) -> Result<EndpointOutcome> {
        let (id, path, method) = (call.request_id.clone(), call.path.clone(), call.method);
        let most = limits::HTTP_TOOL_MAX_MS;
        let trace = || self.traces().trace_at(scope);
        let plan = ExecutionPlan {
            run: &endpoint.run,
            limit_ms: Some(endpoint.timeout_ms.unwrap_or(limits::ENDPOINT_MS).min(most)),
            http_ms: endpoint.timeout_ms,
            env,
            trace: &trace,
        };
        let detached = self.begin_detached(&call.state)?;
        let ended = work::run(self.work_context(), plan, call).await;
        self.end_detached(detached)?;
        let failed = match ended.map_err(|failure| self.refusal(failure)) {
            Ok(answer) => match crate::api::endpoint_answer::served(self.variables().shown(answer), method) {
                Ok(served) => return Ok(EndpointOutcome { served, error: None }),
                Err(error) => error,
            },
            Err(Failure::Refused(error)) => {
                return Ok(EndpointOutcome {
                    served: self.variables().redact_error(error).into(),
                    error: None,
                });
            }
            Err(failure) => failure.of("it"),
        };
        let error = self.variables().shown(failed);
        let served = self.endpoint_failed(route, method, &path, &id, error.clone());
        Ok(EndpointOutcome { served, error: Some(error.cut(limits::HTTP_TOOL_ERROR_BYTES).into()) })
    }

    /// The failure in the client's terms. A terminated thread is no fault of the code, so the client receives
    /// that error.
    fn refusal(&self, failure: Failure) -> Failure {
        match (&failure, self.read(|state, _| state.ensure_not_terminated())) {
            (Failure::Failed(error), Err(over))
                if over.code == Code::Terminated && error.contains(&over.message) =>
            {
                Failure::Refused(over)
            }
            _ => failure,
        }
    }

    /// Logs a failure, and sends the client only the reference of the log entry.
    fn endpoint_failed(
        &self,
        route: &EndpointRoute,
        method: Method,
        path: &str,
        id: &str,
        error: Redacted,
    ) -> RawResponse {
        let told = Error::new(Code::EndpointFailed, format!("The endpoint {route} failed ({id})."))
            .hint("The id is in the log of the thread, with what happened: GET …/logs.");
        let failure = operator::Failure {
            what: format!("the endpoint {route} ({id})"),
            code: Some("endpoint_failed"),
            error: error.clone(),
            log: None,
        };
        if let Err(error) = self.report_failure(failure) {
            self.variables()
                .log(&format!("a failure of the endpoint {route} ({id}) cannot be told: {error}"));
        }
        let now = self.host.now_us();
        let event =
            Event::endpoint(&route.to_string(), method.as_str(), path, told.code.status(), id, &error);
        if let Err(error) = self.transition(|_, sql| event.insert(sql, now)) {
            self.variables().log(&format!(
                "a failure of the endpoint {route} ({id}) is not in the thread's log: {error}"
            ));
        }
        told.into()
    }
}

/// The response for a known path with another method.
fn other_methods(method: Method, path: &[String], mut methods: Vec<&'static str>) -> RawResponse {
    if path.is_empty() {
        // The root path is the thread itself, whose own methods take precedence.
        let own = ["GET", "PATCH", "DELETE"];
        methods.retain(|method| *method != "HEAD" && !own.contains(method));
        methods.splice(0..0, own);
    }
    let methods = methods.join(", ");
    RawResponse::from(not_allowed(method.as_str(), &methods)).header("allow", methods)
}

/// The whole body.
async fn whole(request: &ThreadRequest<StreamRoute>, mut body: Body) -> Result<Bytes> {
    let too_large = || {
        let limit = limits::ENDPOINT_REQUEST_BYTES;
        Error::new(
            Code::TooLarge,
            format!("The body of a request to an endpoint has at most {limit} bytes ({} MB).", limit >> 20),
        )
    };
    let declared = request.header("content-length").and_then(|length| length.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limits::ENDPOINT_REQUEST_BYTES) {
        return Err(too_large());
    }
    let mut read = BytesMut::new();
    while let Some(piece) = body.next().await {
        let piece = piece
            .map_err(|error| Error::new(Code::BadJson, format!("The body could not be read: {error}.")))?;
        if read.len() + piece.len() > limits::ENDPOINT_REQUEST_BYTES {
            return Err(too_large());
        }
        read.extend_from_slice(&piece);
    }
    Ok(read.freeze())
}
