//! Objects of the bucket `FILES`, streamed both ways: one crossing for each piece and one for the head.

use std::ops::Range;

use bobbin::Result;
use bobbin::host::http::{Body, FetchError};
use bobbin::host::{self, Pending};
use bytes::Bytes;
use futures::stream::LocalBoxStream;
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

/// The bucket `FILES`.
pub(crate) struct FilesBucket {
    files: Bucket,
    above: u64,
}

impl FilesBucket {
    /// A bucket for files of more than `above` bytes.
    pub(crate) fn new(files: Bucket, above: u64) -> FilesBucket {
        FilesBucket { files, above }
    }
}

impl host::Bucket for FilesBucket {
    fn above(&self) -> u64 {
        self.above
    }

    fn put(
        &self,
        key: String,
        length: u64,
        content: LocalBoxStream<'static, Result<Bytes>>,
    ) -> Pending<Result<(), FetchError>> {
        let files = self.files.clone();
        Box::pin(async move {
            let put = put_object(&files, &key, length as f64, Flow::of(content)).await;
            put.map(drop).map_err(failed)
        })
    }

    fn get(&self, key: String, range: Range<u64>) -> Pending<Result<Option<Body>, FetchError>> {
        let files = self.files.clone();
        Box::pin(async move {
            let length = (range.end - range.start) as f64;
            let object = get_object(&files, &key, range.start as f64, length).await.map_err(failed)?;
            if object.is_null() {
                return Ok(None);
            }
            let body = IncomingBody::of(&object.unchecked_into::<IncomingRequest>(), None).map_err(failed)?;
            Ok(Some(body.pieces()))
        })
    }

    fn delete(&self, keys: Vec<String>) -> Pending<Result<(), FetchError>> {
        let files = self.files.clone();
        Box::pin(async move { delete_objects(&files, keys).await.map(drop).map_err(failed) })
    }
}
