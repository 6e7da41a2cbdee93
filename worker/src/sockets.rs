//! The listeners of a thread: hibernating sockets, each with its own filter.

use std::cell::RefCell;

use bobbin::engine::feed::Then;
use bobbin::host::{Filter, Frame, Listeners};
use bobbin::limits::{
    SOCKET_LOOK_BYTES, SOCKET_UNANSWERED_BYTES, SOCKETS_LEFT_BYTES, SOCKETS_UNANSWERED_BYTES,
};
use bobbin::{Code, Error};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use crate::bindings::{ObjectState, Socket, SocketPair, auto_response, date_now, log, thrown};

/// A socket ends because the credentials it was opened with have.
const EXPIRED: u16 = 3000;
/// A socket ends because its thread has.
const GONE: u16 = 3001;
/// A socket ends because its client does not keep up.
const TOO_SLOW: u16 = 3002;
/// A socket ends because the run that it follows has.
const OVER: u16 = 1000;
/// A socket ends because what it follows goes on in another one, from the id that is the reason.
const MORE: u16 = 3003;
/// A socket's `readyState` while it is open.
const OPEN: u16 = 1;

const RUN_IS_OVER: &str = "the run is over";

/// What a socket keeps when the object's memory is gone.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Subscription {
    /// What it wants to see.
    pub(crate) filter: Filter,
    /// When its credentials end, milliseconds since 1970.
    pub(crate) until_ms: Option<f64>,
}

/// How far a socket may be ahead of its client. The platform does not tell what a client has taken, but it answers each
/// `ping` behind what was sent before, and reads no further until that answer is taken: a client whose pings go on being
/// answered reads. (Measured: one that does not read gets one more answer, and no second one.)
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Unanswered {
    /// Bytes since the last answered ping, or since the beginning.
    bytes: u32,
    /// When that ping was answered, milliseconds since 1970.
    since_ms: f64,
}

/// What is attached to a socket.
#[derive(Serialize, Deserialize)]
struct Attachment {
    #[serde(flatten)]
    subscription: Subscription,
    #[serde(default)]
    unanswered: Unanswered,
}

struct Listener {
    socket: Socket,
    subscription: Subscription,
    unanswered: Unanswered,
    /// Bytes at which it is looked at again.
    look_at: u32,
}

impl Listener {
    /// The same, from what is attached to a socket.
    fn of(socket: Socket) -> Option<Listener> {
        let attachment = socket.deserialize_attachment().ok()?.as_string()?;
        let Attachment { subscription, unanswered } = bobbin::json::from_str(&attachment).ok()?;
        let look_at = unanswered.bytes.saturating_add(SOCKET_LOOK_BYTES);
        Some(Listener { socket, subscription, unanswered, look_at })
    }

    /// Whether the client still has its end open, as far as this side knows.
    fn is_open(&self) -> bool {
        self.socket.ready_state() == OPEN
    }

    /// Keeps what is known of it where a hibernating object finds it again.
    fn attach(&self) -> Result<(), JsValue> {
        let attachment = Attachment { subscription: self.subscription, unanswered: self.unanswered };
        let attachment = serde_json::to_string(&attachment).map_err(|error| error.to_string())?;
        self.socket.serialize_attachment(&JsValue::from_str(&attachment))
    }

    /// Counts what it was sent.
    fn count(&mut self, bytes: usize) {
        self.unanswered.bytes =
            self.unanswered.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Whether it is time to look at it.
    fn is_due(&self) -> bool {
        self.bytes() >= self.look_at
    }

    /// How far it may be ahead of its client. What the Worker bridges to an event stream, the Worker reads; the bridge has
    /// a bound of its own.
    fn bytes(&self) -> u32 {
        if self.subscription.filter.events { 0 } else { self.unanswered.bytes }
    }

    /// Asks whether its client has answered meanwhile; keeps what it finds.
    fn look(&mut self, ctx: &ObjectState) -> Result<(), JsValue> {
        let answered = ctx.auto_response_time(&self.socket)?;
        let answered_ms = answered.dyn_into::<js_sys::Date>().map_or(0.0, |at| at.get_time());
        if answered_ms > self.unanswered.since_ms {
            self.unanswered = Unanswered { bytes: 0, since_ms: answered_ms };
        }
        self.look_at = self.unanswered.bytes.saturating_add(SOCKET_LOOK_BYTES);
        self.attach()
    }

    fn close(&self, code: u16, reason: &str) {
        // A failure means that it is closed already.
        let _ = self.socket.close(code, reason);
    }
}

/// The sockets of one object. The list is a cache of what the platform knows; it is read again after each wake.
pub(crate) struct Sockets {
    ctx: ObjectState,
    listeners: RefCell<Option<Vec<Listener>>>,
}

impl Listeners for Sockets {
    /// Whether anybody listens.
    fn any(&self) -> bool {
        self.with(|listeners| !listeners.is_empty())
    }

    fn want_items(&self) -> bool {
        self.with(|listeners| listeners.iter().any(|listener| listener.subscription.filter.items))
    }

    fn follow_run(&self) -> bool {
        self.with(|listeners| listeners.iter().any(|listener| listener.subscription.filter.feed.is_some()))
    }

    fn want_progress(&self) -> bool {
        self.with(|listeners| listeners.iter().any(|listener| !listener.subscription.filter.quiet))
    }

    /// Sends a frame to all whose filter lets it through. One that cannot take it is left out from now on.
    fn broadcast(&self, frame: &Frame) {
        // Each form is made once, when somebody wants it.
        let (mut json, mut events) = (None, None);
        self.with(|listeners| {
            let mut looks = false;
            listeners.retain_mut(|listener| {
                let Subscription { filter, until_ms } = &listener.subscription;
                if until_ms.is_some_and(|until| until <= date_now()) {
                    listener.close(EXPIRED, "the token has expired");
                    return false;
                }
                if !frame.passes(filter) {
                    return true;
                }
                let text = if filter.events { &mut events } else { &mut json };
                let (text, bytes) = text.get_or_insert_with(|| {
                    let text = frame.text(filter);
                    (JsValue::from_str(&text), text.len())
                });
                let sent = listener.socket.send(text).is_ok();
                if frame.ends(filter) {
                    listener.close(OVER, RUN_IS_OVER);
                    return false;
                }
                listener.count(*bytes);
                looks |= listener.is_due();
                sent
            });
            if looks {
                self.look(listeners);
            }
        });
    }

    /// Closes all; the thread is gone.
    fn close(&self, reason: &str) {
        self.with(|listeners| {
            for listener in listeners.drain(..) {
                listener.close(GONE, reason);
            }
        });
    }
}

impl Sockets {
    pub(crate) fn new(ctx: ObjectState) -> Sockets {
        Sockets { ctx, listeners: RefCell::new(None) }
    }

    /// Opens a socket, sends it the first frames, and returns the client's end.
    ///
    /// # Errors
    /// `overloaded` while closed sockets hold too much that their clients do not take.
    pub(crate) fn open(
        &self,
        subscription: Subscription,
        first: &[Frame],
        then: &Then,
    ) -> Result<Socket, Error> {
        if !subscription.filter.events && self.left() > SOCKETS_LEFT_BYTES {
            return Err(Error::new(
                Code::Overloaded,
                "Sockets of this thread were closed because nobody read them.",
            )
            .hint("Close them on the client's side too, or read …/events.")
            .retry_after(5));
        }
        self.opened(subscription, first, then).map_err(|error| Error::internal(thrown(&error)))
    }

    fn opened(&self, subscription: Subscription, first: &[Frame], then: &Then) -> Result<Socket, JsValue> {
        let pair = SocketPair::new()?;
        let socket = pair.server();
        self.ctx.set_web_socket_auto_response(&auto_response("ping", "pong")?)?;
        self.ctx.accept_web_socket(&socket)?;
        let mut listener =
            Listener { socket, subscription, unanswered: Unanswered::default(), look_at: SOCKET_LOOK_BYTES };
        for frame in first.iter().filter(|frame| frame.passes(&subscription.filter)) {
            let text = frame.text(&subscription.filter);
            listener.socket.send(&JsValue::from_str(&text))?;
            listener.count(text.len());
        }
        listener.attach()?;
        match then {
            Then::Live => {}
            Then::Over => listener.close(OVER, RUN_IS_OVER),
            Then::More(id) => listener.close(MORE, id),
        }
        self.forget();
        Ok(pair.client())
    }

    /// What closed sockets still hold for clients that take nothing, bytes.
    fn left(&self) -> u32 {
        let closed = self.all().into_iter().filter(|listener| !listener.is_open());
        closed.fold(0, |sum, listener| sum.saturating_add(listener.unanswered.bytes))
    }

    /// Closes what is too far ahead of its client.
    fn look(&self, listeners: &mut Vec<Listener>) {
        for listener in listeners.iter_mut().filter(|listener| listener.is_due()) {
            if let Err(error) = listener.look(&self.ctx) {
                log(&format!("sockets: {}", thrown(&error)));
            }
        }
        let sum = listeners.iter().fold(0_u32, |sum, listener| sum.saturating_add(listener.bytes()));
        let most = listeners.iter().map(Listener::bytes).max().unwrap_or_default();
        let below_most = if sum > SOCKETS_UNANSWERED_BYTES { most.saturating_sub(1) } else { most };
        listeners.retain(|listener| {
            let keep = listener.bytes() <= below_most.min(SOCKET_UNANSWERED_BYTES);
            if !keep {
                listener.close(TOO_SLOW, "too much was sent without an answered ping");
            }
            keep
        });
    }

    /// A client has closed its end; ours is closed too, with its code where that may be sent. The platform answers no close of a socket
    /// that hibernates, whatever the compatibility date.
    pub(crate) fn closed(&self, socket: JsValue, code: u16) {
        let code = if code == 1000 || (3000..5000).contains(&code) { code } else { 1000 };
        // A failure means that it is closed already.
        let _ = socket.unchecked_into::<Socket>().close(code, "");
        self.forget();
    }

    /// Reads the list anew when it is needed next: a socket came or went.
    pub(crate) fn forget(&self) {
        self.listeners.replace(None);
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<Listener>) -> T) -> T {
        let mut listeners = self.listeners.take().unwrap_or_else(|| self.read());
        let result = act(&mut listeners);
        self.listeners.replace(Some(listeners));
        result
    }

    fn read(&self) -> Vec<Listener> {
        self.all().into_iter().filter(Listener::is_open).collect()
    }

    fn all(&self) -> Vec<Listener> {
        match self.ctx.get_web_sockets() {
            Ok(sockets) => sockets.into_iter().filter_map(Listener::of).collect(),
            Err(error) => {
                log(&format!("sockets: {}", thrown(&error)));
                Vec::new()
            }
        }
    }
}
