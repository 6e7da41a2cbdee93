//! A server of vectors that refuses what is no request for them. Texts that share words are near each other.

use std::cell::{Cell, RefCell};

use serde_json::{Value, json};

use super::answer::Answer;

/// Where it is.
pub const EMBED_URL: &str = "http://embed.test/v1";

type Script = Box<dyn Fn(usize) -> Option<Answer>>;

/// See the module.
pub struct Embeddings {
    script: RefCell<Option<Script>>,
    /// Numbers of a vector.
    pub dims: Cell<usize>,
    /// Tokens that each answer reports.
    pub tokens: Cell<Option<u64>>,
    /// Whether it reports those of its texts instead.
    pub counts: Cell<bool>,
    /// Tokens that it has reported, whether that has arrived or not.
    pub given: Cell<u64>,
    /// Bodies of requests, in order.
    pub requests: RefCell<Vec<Value>>,
}

impl Default for Embeddings {
    fn default() -> Embeddings {
        Embeddings {
            script: RefCell::default(),
            dims: Cell::new(24),
            tokens: Cell::default(),
            counts: Cell::default(),
            given: Cell::default(),
            requests: RefCell::default(),
        }
    }
}

impl Embeddings {
    /// Scripts its failures; the number tells how many requests it had before.
    pub fn script(&self, script: impl Fn(usize) -> Option<Answer> + 'static) {
        *self.script.borrow_mut() = Some(Box::new(script));
    }

    /// Forgets the script.
    pub(super) fn clear(&self) {
        self.script.borrow_mut().take();
    }

    /// Texts that it was sent.
    pub fn texts(&self) -> Vec<String> {
        let requests = self.requests.borrow();
        let inputs = requests.iter().flat_map(|body| body["input"].as_array().cloned().unwrap_or_default());
        inputs.map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// A request arrives.
    pub(super) fn receive(&self, path: &str, body: Value) -> (Answer, Vec<String>) {
        let mut wrong = Vec::new();
        let inputs = body["input"].as_array().cloned().unwrap_or_default();
        let fine = path == "/embeddings"
            && body["model"].is_string()
            && body["encoding_format"] == "float"
            && !inputs.is_empty()
            && inputs.len() <= 64
            && inputs.iter().all(|text| text.as_str().is_some_and(|text| !text.trim().is_empty()));
        if !fine {
            wrong.push(format!("this asks for no vectors: {path} {body}"));
        }
        let before = self.requests.borrow().len();
        self.requests.borrow_mut().push(body);
        let scripted = self.script.borrow().as_ref().and_then(|script| script(before));
        let answer = scripted.unwrap_or_else(|| {
            let item = |(index, text): (usize, &Value)| {
                json!({ "index": index, "embedding": vector(text.as_str().unwrap_or_default(), self.dims.get()) })
            };
            let data: Vec<Value> = inputs.iter().enumerate().map(item).collect();
            let mut body = json!({ "data": data, "model": "e1-2026" });
            let bytes: usize = inputs.iter().map(|text| text.as_str().unwrap_or_default().len()).sum();
            let counted = self.counts.get().then_some(bytes as u64 / 5);
            if let Some(tokens) = counted.or(self.tokens.get()) {
                self.given.set(self.given.get() + tokens);
                body["usage"] = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
            }
            Answer::json(&body)
        });
        (answer, wrong)
    }
}

/// How often each word's place comes.
fn vector(text: &str, dims: usize) -> Vec<f64> {
    let mut vector = vec![0.01; dims];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
        let hash =
            word.to_lowercase().bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte));
        vector[hash % dims] += 1.0;
    }
    vector
}
