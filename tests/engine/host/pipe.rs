//! An answer on its way from one object to another: its head, then its content piece by piece, each when the one before
//! was taken.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use bobbin::host::http::FetchError;
use bytes::Bytes;

/// Status and headers.
pub type Head = (u16, Vec<(String, String)>);

/// See the module.
#[derive(Default)]
struct Pipe {
    head: RefCell<Option<Head>>,
    piece: RefCell<Option<Bytes>>,
    /// How it ended: as a whole, or broken off.
    ended: Cell<Option<bool>>,
    /// The reader is gone.
    unwanted: Cell<bool>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

fn wake(waker: &RefCell<Option<Waker>>) {
    let waker = waker.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The end at which it comes in. Dropped before [`Writer::end`], it breaks off.
pub struct Writer(Rc<Pipe>);

/// The end at which it comes out. Dropped, nothing more is wanted.
pub struct Reader(Rc<Pipe>);

/// A new one.
pub fn pipe() -> (Writer, Reader) {
    let pipe = Rc::<Pipe>::default();
    (Writer(pipe.clone()), Reader(pipe))
}

impl Writer {
    /// What hands the head over.
    pub fn begin(&self, head: Head) -> impl FnOnce() + 'static {
        let pipe = self.0.clone();
        move || {
            *pipe.head.borrow_mut() = Some(head);
            wake(&pipe.reader);
        }
    }

    /// What hands a piece over.
    pub fn hand(&self, piece: Bytes) -> impl FnOnce() + 'static {
        let pipe = self.0.clone();
        move || {
            *pipe.piece.borrow_mut() = Some(piece);
            wake(&pipe.reader);
        }
    }

    /// Waits until the piece was taken; false when no more is wanted.
    pub async fn taken(&self) -> bool {
        poll_fn(|context| {
            if self.0.unwanted.get() {
                return Poll::Ready(false);
            }
            if self.0.piece.borrow().is_none() {
                return Poll::Ready(true);
            }
            *self.0.writer.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// That was all.
    pub fn end(self) {
        self.0.ended.set(Some(true));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.0.ended.get().is_none() {
            self.0.ended.set(Some(false));
        }
        wake(&self.0.reader);
    }
}

fn broken() -> FetchError {
    FetchError("the other thread broke off".into())
}

impl Reader {
    /// The head.
    pub async fn head(&self) -> Result<Head, FetchError> {
        poll_fn(|context| {
            if let Some(head) = self.0.head.borrow_mut().take() {
                return Poll::Ready(Ok(head));
            }
            if self.0.ended.get().is_some() {
                return Poll::Ready(Err(broken()));
            }
            *self.0.reader.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Reader {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, FetchError>> {
        poll_fn(|context| {
            if let Some(piece) = self.0.piece.borrow_mut().take() {
                wake(&self.0.writer);
                return Poll::Ready(Some(Ok(piece)));
            }
            match self.0.ended.get() {
                Some(true) => Poll::Ready(None),
                Some(false) => Poll::Ready(Some(Err(broken()))),
                None => {
                    *self.0.reader.borrow_mut() = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.unwanted.set(true);
        wake(&self.0.writer);
    }
}
