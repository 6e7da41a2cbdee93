//! The listeners of a thread: hibernating sockets, each with its own filter.

use std::cell::RefCell;

use bobbin::engine::feed::Continuation;
use bobbin::host::{Filter, Frame, Listeners};
use bobbin::limits::{
    SOCKET_LOOK_BYTES, SOCKET_UNANSWERED_BYTES, SOCKETS_LEFT_BYTES, SOCKETS_UNANSWERED_BYTES,
};
use bobbin::{Code, Error};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use crate::bindings::{ObjectState, Socket, SocketPair, auto_response, date_now, log, thrown};

/// Close code: the credentials have expired.
const EXPIRED: u16 = 3000;
/// Close code: the thread was deleted.
const GONE: u16 = 3001;
/// Close code: the client is too slow.
const TOO_SLOW: u16 = 3002;
/// Close code: the followed run has ended.
const OVER: u16 = 1000;
/// Close code: continue on another socket, from the id in the reason.
const MORE: u16 = 3003;
/// A socket's `readyState` while it is open.
const OPEN: u16 = 1;

const RUN_IS_OVER: &str = "the run is over";

/// The state of a socket that survives the loss of the object's memory.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Subscription {
    /// Its filter of frames.
    pub(crate) filter: Filter,
    /// Expiry of its credentials, milliseconds since 1970.
    pub(crate) until_ms: Option<f64>,
}

/// How far a socket may be ahead of its client. The platform does not report what a client has received. But
/// its response to a `ping` follows everything sent before, and it reads no further until that response is
/// received. So a client whose pings are answered is reading. (Measured: a client that does not read gets one
/// more response, but not a second one.)
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct UnreadWindow {
    /// Bytes since the last answered ping, or since the beginning.
    bytes: u32,
    /// Time of that response, milliseconds since 1970.
    since_ms: f64,
}

/// The attachment of a socket.
#[derive(Serialize, Deserialize)]
struct Attachment {
    #[serde(flatten)]
    subscription: Subscription,
    #[serde(default)]
    unanswered: UnreadWindow,
}

struct Listener {
    socket: Socket,
    subscription: Subscription,
    unanswered: UnreadWindow,
    /// Number of bytes at which it is checked again.
    look_at: u32,
}

impl Listener {
    /// Restores a listener from the attachment of a socket.
    fn of(socket: Socket) -> Option<Listener> {
        let attachment = socket.deserialize_attachment().ok()?.as_string()?;
        let Attachment { subscription, unanswered } = bobbin::json::from_str(&attachment).ok()?;
        let look_at = unanswered.bytes.saturating_add(SOCKET_LOOK_BYTES);
        Some(Listener { socket, subscription, unanswered, look_at })
    }

    /// Whether the client's end is open, as far as this side knows.
    fn is_open(&self) -> bool {
        self.socket.ready_state() == OPEN
    }

    /// Stores its state in the attachment, where it survives hibernation.
    fn attach(&self) -> Result<(), JsValue> {
        let attachment = Attachment { subscription: self.subscription, unanswered: self.unanswered };
        let attachment = serde_json::to_string(&attachment).map_err(|error| error.to_string())?;
        self.socket.serialize_attachment(&JsValue::from_str(&attachment))
    }

    /// Counts sent bytes.
    fn count(&mut self, bytes: usize) {
        self.unanswered.bytes =
            self.unanswered.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Whether it must be checked.
    fn is_due(&self) -> bool {
        self.bytes() >= self.look_at
    }

    /// Maximum bytes ahead of its client. The Worker reads the sockets that it bridges to event streams; the
    /// bridge has its own limit.
    fn bytes(&self) -> u32 {
        if self.subscription.filter.events { 0 } else { self.unanswered.bytes }
    }

    /// Checks whether a ping was answered meanwhile, and stores the result.
    fn look(&mut self, ctx: &ObjectState) -> Result<(), JsValue> {
        let answered = ctx.auto_response_time(&self.socket)?;
        let answered_ms = answered.dyn_into::<js_sys::Date>().map_or(0.0, |at| at.get_time());
        if answered_ms > self.unanswered.since_ms {
            self.unanswered = UnreadWindow { bytes: 0, since_ms: answered_ms };
        }
        self.look_at = self.unanswered.bytes.saturating_add(SOCKET_LOOK_BYTES);
        self.attach()
    }

    fn close(&self, code: u16, reason: &str) {
        // A failure means that it is closed already.
        let _ = self.socket.close(code, reason);
    }
}

/// The sockets of one object. The list is a cache of the platform's list, and is read again after each wake.
pub(crate) struct Sockets {
    ctx: ObjectState,
    listeners: RefCell<Option<Vec<Listener>>>,
}

impl Listeners for Sockets {
    /// Whether there are listeners.
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

    /// Sends a frame to all listeners whose filter accepts it. A listener that cannot receive it is removed.
    fn broadcast(&self, frame: &Frame) {
        // Each form is made once, on demand.
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

    /// Closes all sockets, because the thread is gone.
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
    /// `overloaded` if closed sockets hold too much data that their clients do not receive.
    pub(crate) fn open(
        &self,
        subscription: Subscription,
        first: &[Frame],
        then: &Continuation,
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

    fn opened(
        &self,
        subscription: Subscription,
        first: &[Frame],
        then: &Continuation,
    ) -> Result<Socket, JsValue> {
        let pair = SocketPair::new()?;
        let socket = pair.server();
        self.ctx.set_web_socket_auto_response(&auto_response("ping", "pong")?)?;
        self.ctx.accept_web_socket(&socket)?;
        let mut listener = Listener {
            socket,
            subscription,
            unanswered: UnreadWindow::default(),
            look_at: SOCKET_LOOK_BYTES,
        };
        for frame in first.iter().filter(|frame| frame.passes(&subscription.filter)) {
            let text = frame.text(&subscription.filter);
            listener.socket.send(&JsValue::from_str(&text))?;
            listener.count(text.len());
        }
        listener.attach()?;
        match then {
            Continuation::Live => {}
            Continuation::Over => listener.close(OVER, RUN_IS_OVER),
            Continuation::More(id) => listener.close(MORE, id),
        }
        self.forget();
        Ok(pair.client())
    }

    /// Bytes that closed sockets hold for clients that do not receive them.
    fn left(&self) -> u32 {
        let closed = self.all().into_iter().filter(|listener| !listener.is_open());
        closed.fold(0, |sum, listener| sum.saturating_add(listener.unanswered.bytes))
    }

    /// Closes sockets that are too far ahead of their clients.
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

    /// Handles a close by the client. Closes our end as well, with the client's code if it may be sent. The
    /// platform never answers the close of a hibernating socket, whatever the compatibility date.
    pub(crate) fn closed(&self, socket: JsValue, code: u16) {
        let code = if code == 1000 || (3000..5000).contains(&code) { code } else { 1000 };
        // A failure means that it is closed already.
        let _ = socket.unchecked_into::<Socket>().close(code, "");
        self.forget();
    }

    /// Invalidates the list, because a socket was opened or closed.
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
