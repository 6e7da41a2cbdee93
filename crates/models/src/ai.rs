//! The platform's own models, which are called through a binding instead of an address.

use bytes::Bytes;

/// Name of the binding. If it exists, it counts as a variable with a value (`Object::var` of the host).
pub const AI_BINDING: &str = "AI";

/// A request to a model of the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AiRequest {
    /// The platform's id of the model.
    pub model: String,
    /// The model's input, a JSON object.
    pub input: Bytes,
    /// Options of the gateway for the request, a JSON object; `None` sends it directly.
    pub gateway: Option<String>,
}
