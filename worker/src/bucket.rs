//! Objects of the bucket `FILES`, streamed both ways: one crossing for each piece and one for the head.

use std::ops::Range;

use bobbin::Result;
use bobbin::http::FetchError;
use bobbin::thread::ObjectStream;
use bytes::Bytes;
use futures_util::stream::LocalBoxStream;
use wasm_bindgen::prelude::*;

use crate::bindings::{Bucket, IncomingRequest};
use crate::streamed::{Flow, IncomingBody, failed};

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    #[wasm_bindgen(catch, js_name = putObject)]
    async fn put_object(bucket: &Bucket, key: &str, length: f64, flow: Flow) -> Result<JsValue, JsValue>;

    /// Resolves with the object, which has a `body` as a request does, or with null.
    #[wasm_bindgen(catch, js_name = getObject)]
    async fn get_object(bucket: &Bucket, key: &str, offset: f64, length: f64) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(catch, js_name = deleteObjects)]
    async fn delete_objects(bucket: &Bucket, keys: Vec<String>) -> Result<JsValue, JsValue>;
}

type Outcome<T> = std::result::Result<T, FetchError>;

fn bound(bucket: Option<Bucket>) -> Outcome<Bucket> {
    bucket.ok_or_else(|| FetchError("the binding FILES is missing in wrangler.toml".into()))
}

/// Stores an object of exactly so many bytes.
pub(crate) async fn put(
    bucket: Option<Bucket>,
    key: String,
    length: u64,
    content: LocalBoxStream<'static, Result<Bytes>>,
) -> Outcome<()> {
    let put = put_object(&bound(bucket)?, &key, length as f64, Flow::of(content)).await;
    put.map(drop).map_err(failed)
}

/// Bytes of an object; `None` when there is none.
pub(crate) async fn get(
    bucket: Option<Bucket>,
    key: String,
    range: Range<u64>,
) -> Outcome<Option<ObjectStream>> {
    let length = (range.end - range.start) as f64;
    let object = get_object(&bound(bucket)?, &key, range.start as f64, length).await.map_err(failed)?;
    if object.is_null() {
        return Ok(None);
    }
    let body = IncomingBody::of(&object.unchecked_into::<IncomingRequest>(), None).map_err(failed)?;
    Ok(Some(body.pieces()))
}

/// Deletes objects.
pub(crate) async fn delete(bucket: Option<Bucket>, keys: Vec<String>) -> Outcome<()> {
    delete_objects(&bound(bucket)?, keys).await.map(drop).map_err(failed)
}
