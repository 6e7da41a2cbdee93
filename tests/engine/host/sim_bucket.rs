//! The bucket of the simulated world.

use std::ops::Range;

use bobbin::host::http::{Body, FetchError};
use bobbin::host::{Bucket, Pending};
use bobbin::{Result, limits};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, LocalBoxStream};

use super::executor::gate;
use super::fault::At;
use super::sim_host::SimHost;

/// Microseconds that a piece of an object takes.
const OBJECT_US: i64 = 1_000;
/// Bytes of such a piece.
const OBJECT_PIECE: usize = 300_000;

impl SimHost {
    /// Reaches the bucket, once earlier writes are durable.
    async fn ask_bucket(&self, what: &str) -> Result<(), FetchError> {
        self.point(At::Object, what).await;
        gate().await;
        self.world().count_request();
        match self.world().bucket.refuses.get() {
            true => Err(FetchError("the bucket is out of order".into())),
            false => Ok(()),
        }
    }
}

impl Bucket for SimHost {
    fn above(&self) -> u64 {
        self.world().bucket.above.get().unwrap_or(u64::MAX)
    }

    fn put(
        &self,
        key: String,
        length: u64,
        mut content: LocalBoxStream<'static, Result<Bytes>>,
    ) -> Pending<Result<(), FetchError>> {
        let host = self.clone();
        Box::pin(async move {
            host.ask_bucket(&key).await?;
            let world = host.world().clone();
            let mut object = Vec::new();
            while let Some(piece) = content.next().await {
                object.extend_from_slice(&piece.map_err(|error| FetchError(error.into_message()))?);
                world.pause(OBJECT_US).await;
                host.point(At::Chunk, "object").await;
            }
            if object.len() as u64 != length {
                world.fail(format!("{key}: {} bytes instead of {length}", object.len()));
            }
            world.bucket.objects.borrow_mut().insert(key.clone(), object.into());
            world.bucket.puts.set(world.bucket.puts.get() + 1);
            gate().await;
            host.point(At::ObjectDone, &key).await;
            Ok(())
        })
    }

    fn get(&self, key: String, range: Range<u64>) -> Pending<Result<Option<Body>, FetchError>> {
        let host = self.clone();
        Box::pin(async move {
            host.ask_bucket(&key).await?;
            let bucket = &host.world().bucket;
            bucket.gets.set(bucket.gets.get() + 1);
            let Some(object) = bucket.objects.borrow().get(&key).cloned() else { return Ok(None) };
            host.point(At::ObjectDone, &key).await;
            let part = object.slice(range.start as usize..range.end as usize);
            let pieces = stream::unfold((host.clone(), part), |(host, mut part)| async move {
                if part.is_empty() {
                    return None;
                }
                host.world().pause(OBJECT_US).await;
                host.point(At::Chunk, "object").await;
                let piece = part.split_to(part.len().min(OBJECT_PIECE));
                Some((Ok(piece), (host, part)))
            });
            Ok(Some(Box::pin(pieces) as Body))
        })
    }

    fn delete(&self, keys: Vec<String>) -> Pending<Result<(), FetchError>> {
        let host = self.clone();
        Box::pin(async move {
            host.ask_bucket(&keys.join(" ")).await?;
            let world = host.world().clone();
            if keys.is_empty() || keys.len() as i64 > limits::DELETED_OBJECTS {
                world.fail(format!("{} objects are deleted at once", keys.len()));
            }
            world.bucket.objects.borrow_mut().retain(|key, _| !keys.contains(key));
            gate().await;
            host.point(At::ObjectDone, "deleted").await;
            Ok(())
        })
    }
}
