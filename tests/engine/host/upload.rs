//! The body of a request, as a client sends it: piece by piece, to its end or until the client is gone.

use std::collections::VecDeque;
use std::rc::Rc;

use bobbin::host::http::{Body, FetchError};
use bytes::Bytes;
use futures::stream;

use super::executor::gate;
use super::fault::At;
use super::world::World;

/// Microseconds between two pieces.
const PACE_US: i64 = 1_000;

/// See the module.
pub struct Upload {
    world: Rc<World>,
    pieces: VecDeque<Bytes>,
    /// Whether the client goes after the last piece.
    breaks: bool,
}

impl Upload {
    /// A body of these pieces. One that breaks has no end.
    pub fn body(world: &Rc<World>, pieces: Vec<Bytes>, breaks: bool) -> Body {
        let upload = Upload { world: world.clone(), pieces: pieces.into(), breaks };
        Box::pin(stream::unfold(upload, |mut upload| async move {
            upload.next().await.map(|piece| (piece, upload))
        }))
    }

    async fn next(&mut self) -> Option<Result<Bytes, FetchError>> {
        gate().await;
        self.world.pause(PACE_US).await;
        self.world.point(At::Chunk, "upload");
        match self.pieces.pop_front() {
            Some(piece) => Some(Ok(piece)),
            None if self.breaks => Some(Err(FetchError("the client is gone".into()))),
            None => None,
        }
    }
}

/// No body.
pub fn nothing() -> Body {
    Box::pin(stream::empty())
}
