//! Vectors of texts: `openai` (`POST …/embeddings`, at any compatible address) and `demo`.

use bytes::Bytes;
use futures::StreamExt;
use serde::Deserialize;
use serde_json::Value;

use crate::definitions::model::{Model, Provider};
use crate::host::Host;
use crate::host::http::{HeaderSelection, Request};
use crate::json;
use crate::limits;
use crate::models::ProviderError;
use crate::models::address::address;
use crate::models::failure::BODY_BYTES;
use crate::models::response::{bounded, holds};

/// Dimensions of a vector of `demo`.
const DEMO_DIMENSIONS: usize = 256;

/// The role of a text in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextRole {
    /// A question.
    Query,
    /// A text that is searched.
    Document,
}

/// An embedding model, and the deployment's variables.
pub(super) struct Embedder<'a> {
    pub(super) host: &'a dyn Host,
    pub(super) model: &'a Model,
    pub(super) deployment: &'a dyn Fn(&str) -> Option<String>,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<Item>,
    #[serde(default)]
    model: Option<Value>,
    #[serde(default)]
    usage: Option<TokenUsage>,
}

#[derive(Deserialize)]
struct TokenUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
}

/// The result of a request for vectors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vectors {
    /// One for each text, of length 1, all with the same dimensions.
    pub(super) vectors: Vec<Vec<f32>>,
    /// Tokens of the texts, if the provider reports them.
    pub(super) tokens: Option<u64>,
    /// The model that produced them, if the provider reports it; at most
    /// [`limits::RESPONSE_NAME_BYTES`].
    pub(super) model: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Embedder<'_> {
    /// The settings that determine a vector. Vectors of two models with different identities are never
    /// compared.
    pub(super) fn identity(&self) -> String {
        let model = self.model;
        let of = [
            model.provider.name(),
            &model.model,
            model.base_url.as_deref().unwrap_or_default(),
            model.document_prefix.as_deref().unwrap_or_default(),
        ];
        format!("{}|{}", of.join("|"), model.dimensions.unwrap_or_default())
    }

    /// Returns one vector for each text.
    pub(super) async fn embed(&self, of: TextRole, texts: &[&str]) -> Result<Vectors, ProviderError> {
        let prefix = match of {
            TextRole::Query => self.model.query_prefix.as_deref(),
            TextRole::Document => self.model.document_prefix.as_deref(),
        };
        if self.model.provider == Provider::Demo {
            return Ok(Vectors {
                vectors: texts.iter().map(|text| demo(text)).collect(),
                tokens: None,
                model: None,
            });
        }
        let texts: Vec<String> =
            texts.iter().map(|text| format!("{}{text}", prefix.unwrap_or_default())).collect();
        if let Some(lack) = crate::models::lacks(self.model, self.deployment) {
            return Err(ProviderError::not_set_up(&lack));
        }
        self.ask(&texts).await
    }

    async fn ask(&self, texts: &[String]) -> Result<Vectors, ProviderError> {
        let model = self.model;
        let base = model.base_url(self.deployment).unwrap_or_default();
        let url = address(&base, crate::models::openai::DEFAULT_BASE_URL, &["/embeddings"], "/embeddings");
        let key = model.key_env().and_then(self.deployment).filter(|key| !key.trim().is_empty());
        let mut body = json!({ "model": model.model, "input": texts, "encoding_format": "float" });
        if let Some(fields) = body.as_object_mut() {
            if let Some(dimensions) = model.dimensions {
                fields.insert("dimensions".to_owned(), Value::from(dimensions));
            }
            fields.extend(model.provider_options.clone());
        }
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        if let Some(key) = &key {
            headers.push(("authorization".to_owned(), format!("Bearer {key}")));
        }
        let body = Some(Bytes::from(body.to_string()));
        let request =
            Request { method: "POST", url: url.clone(), headers, body, reads: HeaderSelection::Type };
        let network = |error: &_| ProviderError::network(error, &url, key.as_deref().as_slice());
        let mut response = self.host.fetch(request).await.map_err(|error| network(&error))?;
        let good = (200..300).contains(&response.status);
        let most = if good { limits::EMBEDDING_ANSWER_BYTES } else { BODY_BYTES };
        let mut read = Vec::new();
        while let Some(chunk) = response.body.next().await {
            read.extend_from_slice(&chunk.map_err(|error| network(&error))?);
            if read.len() > most {
                break;
            }
        }
        if !good {
            let (secrets, now) = (key.as_deref(), self.host.now_us());
            return Err(ProviderError::from_response(
                response.status,
                &response.headers,
                &read,
                secrets.as_slice(),
                now,
            ));
        }
        let mut given = vectors(&read, texts.len())?;
        given.model = given.model.filter(|model| !holds(model, key.as_deref()));
        Ok(given)
    }
}

/// The vectors of a response, in the order of the texts.
pub(crate) fn vectors(body: &[u8], texts: usize) -> Result<Vectors, ProviderError> {
    let unreadable =
        |error| ProviderError::server(format!("the answer with vectors cannot be read: {error}"));
    if body.trim_ascii_start().starts_with(b"<") {
        return Err(ProviderError::no_answer(true));
    }
    let EmbeddingResponse { mut data, model, usage } = crate::json::from_slice(body).map_err(unreadable)?;
    if data.len() != texts {
        let text = format!("{} vectors came for {texts} texts", data.len());
        return Err(ProviderError::server(text));
    }
    if data.iter().all(|item| item.index.is_some()) {
        data.sort_by_key(|item| item.index);
    }
    let dimensions = data.first().map_or(0, |item| item.embedding.len());
    if dimensions == 0 || dimensions > limits::EMBEDDING_DIMENSIONS {
        return Err(ProviderError::server(format!("a vector of {dimensions} numbers came")));
    }
    if data.iter().any(|item| item.embedding.len() != dimensions) {
        return Err(ProviderError::server("vectors of different lengths came"));
    }
    let vectors = data.into_iter().map(|item| normalised(item.embedding)).collect();
    let model = model.as_ref().and_then(Value::as_str).filter(|model| !model.is_empty()).map(bounded);
    Ok(Vectors { vectors, tokens: usage.and_then(|used| used.prompt_tokens), model })
}

fn normalised(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 && length.is_finite() {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

/// Hashes words and groups of three letters, with a sign: texts that share words or stems get similar
/// vectors.
pub(crate) fn demo(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; DEMO_DIMENSIONS];
    let mut add = |part: &[char], weight: f32| {
        // FNV-1a.
        let hash = part.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, letter| {
            (hash ^ u64::from(u32::from(*letter))).wrapping_mul(0x0100_0000_01b3)
        });
        let sign = if hash >> 63 == 0 { weight } else { -weight };
        if let Some(place) = vector.get_mut((hash >> 20) as usize % DEMO_DIMENSIONS) {
            *place += sign;
        }
    };
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
        // Short words occur in every text and carry little meaning.
        add(&letters, if letters.len() < 4 { 0.3 } else { 1.0 });
        for group in letters.windows(3) {
            add(group, 0.35);
        }
    }
    normalised(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &str, b: &str) -> f32 {
        demo(a).iter().zip(demo(b)).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn demo_vectors_find_shared_words_and_stems() {
        let text = "Refunds are granted within thirty days of the purchase.";
        assert!((near(text, text) - 1.0).abs() < 1e-5);
        assert!(near(text, "refund of a purchase") > near(text, "opening hours on Sunday") + 0.15);
        assert_eq!(demo(""), vec![0.0; DEMO_DIMENSIONS], "nothing is near nothing");
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts_and_have_the_length_one() {
        let body = br#"{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}],"model":"bge-m3-2","usage":{"prompt_tokens":7}}"#;
        let expected = Vectors {
            vectors: vec![vec![0.6, 0.8], vec![0.0, 1.0]],
            tokens: Some(7),
            model: Some("bge-m3-2".into()),
        };
        assert_eq!(vectors(body, 2).unwrap(), expected);
        for (body, texts) in [
            (&br#"{"data":[{"embedding":[1]}]}"#[..], 2),
            (br#"{"data":[{"embedding":[]}]}"#, 1),
            (br#"{"data":[{"embedding":[1,2]},{"embedding":[1]}]}"#, 2),
            (br#"{"vectors":[]}"#, 1),
        ] {
            assert!(vectors(body, texts).is_err(), "{}", String::from_utf8_lossy(body));
        }
        let page = vectors(b"\n<!doctype html><p>Sign in</p>", 1).unwrap_err();
        assert!(page.message.contains("a web page"), "{page}");
    }
}
