//! A client of the routes whose bodies are streams.

use bobbin::access::Caller;
use bobbin::request::{Content, Query, StreamRoute, ThreadRequest};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::Value;

use crate::host::upload::Upload;
use crate::host::{Lost, SECOND_US};
use crate::sim::{Opened, Sim, TRIES, admin};

/// Microseconds that a client takes over each piece of an answer.
const READS_US: i64 = 2_000;

/// A request of a streamed route.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Who asks.
    pub caller: Caller,
    /// What is asked.
    pub route: StreamRoute,
    /// Its query.
    pub query: Vec<(String, String)>,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub pieces: Vec<Bytes>,
    /// Whether the client goes before the end of the body.
    pub breaks: bool,
}

impl Sent {
    /// An admin's request without a body.
    pub fn new(route: StreamRoute) -> Sent {
        Sent {
            caller: admin(),
            route,
            query: Vec::new(),
            headers: Vec::new(),
            pieces: Vec::new(),
            breaks: false,
        }
    }

    /// With a parameter of the query.
    pub fn query(mut self, name: &str, value: &str) -> Sent {
        self.query.push((name.into(), value.into()));
        self
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Sent {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With a body, sent in pieces.
    pub fn body(mut self, body: &[u8]) -> Sent {
        self.pieces = body.chunks(400_000).map(Bytes::copy_from_slice).collect();
        self
    }

    /// With a JSON body.
    pub fn json(self, body: &Value) -> Sent {
        self.header("content-type", "application/json").body(body.to_string().as_bytes())
    }
}

/// What a client saw.
#[derive(Clone, Debug)]
pub struct Got {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body, or what was there of it before it broke off.
    pub body: Result<Vec<u8>, Vec<u8>>,
}

impl Got {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        self.body.as_ref().ok().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default()
    }
}

impl Sim {
    /// One streamed request, once.
    pub async fn serve_once(&self, sent: Sent) -> Result<Got, Lost> {
        let request = ThreadRequest {
            thread_id: self.member.id.clone(),
            life: None,
            caller: sent.caller,
            route: sent.route,
            query: Query(sent.query),
            idempotency_key: None,
            headers: sent.headers,
            body: String::new(),
        };
        let world = self.world.clone();
        let body = Upload::body(&world, sent.pieces, sent.breaks);
        self.world
            .enter_at(&self.member, "request", move |object| async move {
                let thread = object.any().downcast::<Opened>().expect("the object is a thread").0.thread();
                let served = thread.serve(request, body).await;
                let body = match served.content {
                    Content::Empty => Ok(Vec::new()),
                    Content::Bytes(bytes) => Ok(bytes.to_vec()),
                    Content::Stream(mut stream) => {
                        let mut all = Vec::new();
                        loop {
                            world.pause(READS_US).await;
                            match stream.next().await {
                                None => break Ok(all),
                                Some(Err(_)) => break Err(all),
                                Some(Ok(piece)) => all.extend_from_slice(&piece),
                            }
                        }
                    }
                };
                Got { status: served.status, headers: served.headers, body }
            })
            .await
    }

    /// One streamed request, repeated until it is answered.
    pub async fn serve(&self, sent: Sent) -> Got {
        let mut last = None;
        for _ in 0..TRIES {
            match self.serve_once(sent.clone()).await {
                Ok(got) if got.status < 500 => return got,
                other => last = Some(other),
            }
            let pause = 50_000 + self.world.below(SECOND_US as usize) as i64;
            self.world.pause(pause).await;
        }
        self.world.fail(format!("{:?} was not answered in {TRIES} tries: {last:?}", sent.route));
        Got { status: 599, headers: Vec::new(), body: Err(Vec::new()) }
    }
}
