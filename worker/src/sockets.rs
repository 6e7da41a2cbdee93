//! Who listens to a thread: hibernating sockets, each with the filter it asked for.

use std::cell::RefCell;

use bobbin::thread::{Filter, Frame};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use crate::bindings::{ObjectState, Socket, SocketPair, auto_response, date_now, thrown};

/// A socket ends because the credentials it was opened with have.
const EXPIRED: u16 = 3000;
/// A socket ends because its thread has.
const GONE: u16 = 3001;

/// What a socket keeps when the object's memory is gone.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Subscription {
    /// What it wants to see.
    pub(crate) filter: Filter,
    /// When its credentials end, milliseconds since 1970.
    pub(crate) until_ms: Option<f64>,
}

struct Listener {
    socket: Socket,
    subscription: Subscription,
}

/// The sockets of one object. The list is a cache of what the platform knows; it is read again after each wake.
pub(crate) struct Sockets {
    ctx: ObjectState,
    listeners: RefCell<Option<Vec<Listener>>>,
}

impl Sockets {
    pub(crate) fn new(ctx: ObjectState) -> Sockets {
        Sockets { ctx, listeners: RefCell::new(None) }
    }

    /// Whether anybody listens.
    pub(crate) fn any(&self) -> bool {
        self.with(|listeners| !listeners.is_empty())
    }

    /// Opens a socket, sends it the first frames, and returns the client's end.
    pub(crate) fn open(&self, subscription: Subscription, first: &[Frame]) -> Result<Socket, JsValue> {
        let pair = SocketPair::new()?;
        let socket = pair.server();
        let attachment = serde_json::to_string(&subscription).map_err(|error| error.to_string())?;
        self.ctx.set_web_socket_auto_response(&auto_response("ping", "pong")?)?;
        self.ctx.accept_web_socket(&socket)?;
        socket.serialize_attachment(&JsValue::from_str(&attachment))?;
        for frame in first.iter().filter(|frame| frame.passes(&subscription.filter)) {
            socket.send(&JsValue::from_str(&frame.text(&subscription.filter)))?;
        }
        self.forget();
        Ok(pair.client())
    }

    /// Sends a frame to all whose filter lets it through. One that cannot take it is left out from now on.
    pub(crate) fn broadcast(&self, frame: &Frame) {
        // Each form is made once, when somebody wants it.
        let (mut json, mut events) = (None, None);
        self.with(|listeners| {
            listeners.retain(|listener| {
                let Subscription { filter, until_ms } = &listener.subscription;
                if until_ms.is_some_and(|until| until <= date_now()) {
                    // A failure means that it is closed already.
                    let _ = listener.socket.close(EXPIRED, "the token has expired");
                    return false;
                }
                if !frame.passes(filter) {
                    return true;
                }
                let text = if filter.events { &mut events } else { &mut json };
                let text = text.get_or_insert_with(|| JsValue::from_str(&frame.text(filter)));
                listener.socket.send(text).is_ok()
            });
        });
    }

    /// Closes all; the thread is gone.
    pub(crate) fn close_all(&self, reason: &str) {
        self.with(|listeners| {
            for listener in listeners.drain(..) {
                // A failure means that it is closed already.
                let _ = listener.socket.close(GONE, reason);
            }
        });
    }

    /// A client has closed its end; ours is closed too, with its code where that may be sent.
    pub(crate) fn closed(&self, socket: JsValue, code: u16) {
        let code = if code == 1000 || (3000..5000).contains(&code) { code } else { 1000 };
        // A failure means that the platform has closed it already.
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
        let sockets = match self.ctx.get_web_sockets() {
            Ok(sockets) => sockets,
            Err(error) => {
                crate::bindings::log(&format!("sockets: {}", thrown(&error)));
                return Vec::new();
            }
        };
        let listener = |socket: Socket| {
            let attachment = socket.deserialize_attachment().ok()?.as_string()?;
            let subscription = serde_json::from_str(&attachment).ok()?;
            Some(Listener { socket, subscription })
        };
        sockets.into_iter().filter_map(listener).collect()
    }
}
