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

/// `{instanceId}`: an object of the JavaScript side, which outlives the instances that count themselves in it.
/// Not called `__worker_init_state`: an application may bring the crate `worker`, which exports its own under that name.
#[wasm_bindgen(js_name = "instances")]
pub fn state() -> JsValue {
    // Here and not when the instance starts: the crate `worker`, where an application brings it, sets a hook of its own
    // then, and each panic would be reported twice. This is the shim's first call after that.
    console_error_panic_hook::set_once();
    INSTANCES.with(|instances| instances.into())
}

/// Answers as soon as the executor runs tasks; the shim's watch asks for it.
#[wasm_bindgen]
pub async fn probe() {}

/// A future of ours as a promise. wasm-bindgen asks for proof that nothing half-done is seen after a panic; here every
/// entry point catches panics itself and keeps nothing in memory that storage does not have.
pub(crate) fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> js_sys::Promise {
    // Boxed: what makes a promise of a future is large, and would be there once for each of them.
    let future: LocalBoxFuture<'static, Result<JsValue, JsValue>> = Box::pin(future);
    wasm_bindgen_futures::future_to_promise(AssertUnwindSafe(future))
}

/// What a panic said.
pub(crate) fn told(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "something that is not text",
    }
}
