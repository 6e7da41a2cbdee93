//! Runs in the isolate Worker, through `sandbox.js`.

use wasm_bindgen::prelude::*;

/// Receives a call: the function, the packed arguments, the sandbox's functions.
pub(crate) type CallHandler = Closure<dyn FnMut(f64, String, js_sys::Array, JsValue) -> js_sys::Promise>;
/// Receives the number of bytes of a response that the sandbox has taken.
pub(crate) type HearTaken = Closure<dyn FnMut(f64)>;
/// Receives a report.
pub(crate) type HearReport = Closure<dyn FnMut(String, js_sys::Array, JsValue) -> js_sys::Promise>;
/// Resolves when the run must end.
pub(crate) type HearEnded = Closure<dyn FnMut() -> js_sys::Promise>;

#[wasm_bindgen(module = "/sandbox.js")]
extern "C" {
    /// One run.
    pub(crate) type SandboxRun;

    #[wasm_bindgen(constructor, catch)]
    pub(crate) fn new(
        call: &CallHandler,
        taken: &HearTaken,
        report: &HearReport,
        ended: &HearEnded,
    ) -> Result<SandboxRun, JsValue>;

    /// Resolves with `[outcome, texts, bytes, functions]`. The first entries of the lists belong to the
    /// value, the others to the logs.
    #[wasm_bindgen(method, catch)]
    pub(crate) async fn run(
        this: &SandboxRun,
        isolate: &JsValue,
        request: &str,
        text: &str,
        bytes: &js_sys::Array,
    ) -> Result<JsValue, JsValue>;

    /// Calls a function of the sandbox. Resolves with `[ok, text, bytes]`.
    #[wasm_bindgen(method, catch)]
    pub(crate) async fn back(
        this: &SandboxRun,
        functions: &JsValue,
        function: f64,
        text: &str,
        bytes: &js_sys::Array,
    ) -> Result<JsValue, JsValue>;

    /// Releases all references.
    #[wasm_bindgen(method, catch)]
    pub(crate) fn leave(this: &SandboxRun) -> Result<(), JsValue>;
}
