//! Models of the platform's own, which are asked through a binding instead of an address.

use bytes::Bytes;

/// Name of the binding. Where it is there, it counts as a variable that is set ([`crate::host::Object::var`]).
pub const AI_BINDING: &str = "AI";

/// A request to such a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AiRequest {
    /// The platform's id of the model.
    pub model: String,
    /// What it is asked: a JSON object.
    pub input: Bytes,
    /// The gateway that the request goes through, a JSON object; `None` for none.
    pub gateway: Option<String>,
}
