//! Start and loss of the wasm instance, which all objects of an isolate share.
//!
//! A panic unwinds and is the error of one event only. A trap destroys the instance: the next entry gets a
//! new one, and the shim, which counts instances through [`state`], drops the objects of the old one.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::future::LocalBoxFuture;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/platform.js")]
extern "C" {
    type Instances;

    #[wasm_bindgen(thread_local_v2, js_name = instances)]
    static INSTANCES: Instances;

    #[wasm_bindgen(method, getter, js_name = instanceId)]
    fn instance_id(this: &Instances) -> u32;
    #[wasm_bindgen(method, setter, js_name = instanceId)]
    fn set_instance_id(this: &Instances, id: u32);
}

/// Runs once in each instance.
#[wasm_bindgen(start, private)]
fn instance_started() {
    INSTANCES.with(|instances| instances.set_instance_id(instances.instance_id() + 1));
    wasm_bindgen::handler::set_on_abort(wasm_bindgen::handler::schedule_reinit);
}

/// `{instanceId}`: a JavaScript object that outlives the instances, which count themselves in it. Not called
/// `__worker_init_state`, because the crate `worker`, which an application may use, exports that name.
#[wasm_bindgen(js_name = "instances")]
pub fn state() -> JsValue {
    // Not set at the start of the instance: if an application uses the crate `worker`, that crate sets its
    // own hook then, and each panic would be reported twice. This is the shim's first call afterwards.
    console_error_panic_hook::set_once();
    INSTANCES.with(|instances| instances.into())
}

/// Returns as soon as the executor runs tasks. The shim's watchdog calls it.
#[wasm_bindgen]
pub async fn probe() {}

/// Converts a future into a promise. wasm-bindgen requires unwind safety. It holds because every entry point
/// catches panics itself, and memory has no state that storage lacks.
pub(crate) fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> js_sys::Promise {
    // Boxed, because the conversion is large and would be compiled for each type of future.
    let future: LocalBoxFuture<'static, Result<JsValue, JsValue>> = Box::pin(future);
    wasm_bindgen_futures::future_to_promise(AssertUnwindSafe(future))
}

/// The text of a panic.
pub(crate) fn told(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "something that is not text",
    }
}
