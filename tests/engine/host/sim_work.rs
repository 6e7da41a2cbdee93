//! What runs on the simulated world: natives that a test scripts, and code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::rc::Rc;

use bobbin::Error;
use bobbin::definitions::message::{ToolResult, ToolStatus};
use bobbin::engine::{EffectCall, EndpointAnswer, EndpointCall, HookCall, NativeCall, Natives, Panic};
use bobbin::host::Pending;
use bobbin::models::{ProviderCall, ProviderError};
use bobbin::sandbox::{HostCalls, Outcome, Run, Sandbox};
use futures::FutureExt;
use serde_json::Value;

use super::executor::gate;
use super::fault::{At, Injected};
use super::outside::{Handler, Native};
use super::sim_host::SimHost;

/// What a panic of code that works in the thread said. A crash goes on: the process dies.
fn panicked(payload: Box<dyn Any + Send>) -> Panic {
    match payload.downcast_ref::<&str>() {
        Some(text) => Panic((*text).to_owned()),
        None if payload.is::<Injected>() => Panic("injected".to_owned()),
        None => resume_unwind(payload),
    }
}

/// Runs what works in the thread; a panic of its own ends this call alone.
async fn contained<T>(running: impl Future<Output = T>) -> Result<T, Panic> {
    AssertUnwindSafe(running).catch_unwind().await.map_err(panicked)
}

/// The same where a failure of the world goes on: what fails there is not the work's own doing.
async fn contained_alone<T>(running: impl Future<Output = T>) -> Result<T, Panic> {
    AssertUnwindSafe(running).catch_unwind().await.map_err(|payload| match payload.downcast_ref::<&str>() {
        Some(text) => Panic((*text).to_owned()),
        None => resume_unwind(payload),
    })
}

impl SimHost {
    /// What a scripted native does.
    async fn perform(&self, native: Native, place: usize, name: &str) -> ToolResult {
        let world = self.world().clone();
        match native {
            Native::Never => std::future::pending().await,
            Native::Works(work) => {
                let result = work.await;
                world.outside.finish(place);
                self.point(At::NativeDone, name).await;
                result
            }
            Native::Acts(act) => {
                world.outside.finish(place);
                self.point(At::NativeDone, name).await;
                act()
            }
            Native::Gives(us, result) => {
                if us > 0 {
                    world.pause(us).await;
                }
                world.outside.finish(place);
                self.point(At::NativeDone, name).await;
                result
            }
        }
    }
}

impl Natives for SimHost {
    fn tool(&self, call: NativeCall) -> Pending<Result<ToolResult, Panic>> {
        let host = self.clone();
        Box::pin(async move {
            host.point(At::Native, &call.name).await;
            // What a tool does to the outside waits behind the output gate.
            gate().await;
            let world = host.world().clone();
            let Some((native, place)) = world.outside.start(&call) else {
                return Ok(ToolResult::error(format!("There is no native tool \"{}\".", call.name)));
            };
            contained_alone(host.perform(native, place, &call.name)).await
        })
    }

    fn effect(&self, call: EffectCall) -> Pending<Result<Result<(), String>, Panic>> {
        let host = self.clone();
        Box::pin(async move {
            host.point(At::Native, &call.native).await;
            gate().await;
            let world = host.world().clone();
            let Some((native, place)) = world.outside.start_effect(&call, world.now_us()) else {
                // Those of the crate itself work in the thread alone.
                return contained_alone(bobbin::effects::run(call)).await;
            };
            let result = contained_alone(host.perform(native, place, &call.native)).await?;
            Ok(match result.status {
                ToolStatus::Success => Ok(()),
                ToolStatus::Error => Err(result.text()),
            })
        })
    }

    fn endpoint(&self, call: EndpointCall) -> Pending<Result<bobbin::Result<EndpointAnswer>, Panic>> {
        let host = self.clone();
        Box::pin(async move {
            host.point(At::Native, &call.native).await;
            gate().await;
            let acting = host.clone();
            contained(async move {
                match acting.world().outside.ask_endpoint(&call) {
                    None => Err(Error::internal("there is no such endpoint")),
                    Some(Handler::Never) => std::future::pending().await,
                    Some(Handler::Works(work)) => Ok(work.await),
                    Some(Handler::Acts(us, act)) => {
                        if us > 0 {
                            acting.world().pause(us).await;
                        }
                        let answer = act();
                        acting.point(At::NativeDone, &call.native).await;
                        answer
                    }
                }
            })
            .await
        })
    }

    fn has_tool(&self, name: &str) -> bool {
        // Those of the crate itself are scripted where they are used.
        !self.world().outside.missing.borrow().iter().any(|missing| missing == name)
    }

    fn has_hook(&self, name: &str) -> bool {
        self.has_tool(name)
    }

    fn provider(&self, call: ProviderCall) -> Pending<Result<Result<(), ProviderError>, Panic>> {
        Box::pin(contained_alone(async move { bobbin::models::start(call).await }))
    }

    fn hook(&self, call: HookCall) -> Pending<Result<Result<Value, String>, Panic>> {
        let host = self.clone();
        Box::pin(async move {
            host.point(At::Native, &call.native).await;
            gate().await;
            let acting = host.clone();
            contained(async move {
                let native = call.native.clone();
                let Some(reaction) = acting.world().outside.ask_hook(call.clone()) else {
                    // Those of the crate itself.
                    return bobbin::hooks::run(call).await;
                };
                let given = reaction.await;
                acting.point(At::NativeDone, &native).await;
                given
            })
            .await
        })
    }
}

impl Sandbox for SimHost {
    fn is_bound(&self) -> bool {
        !self.world().outside.unbound.get()
    }

    fn run(&self, run: Run, door: Rc<dyn HostCalls>) -> Pending<Outcome> {
        let host = self.clone();
        Box::pin(async move {
            host.point(At::Sandbox, &run.source).await;
            // What code does to the outside waits behind the output gate.
            gate().await;
            let source = run.source.clone();
            let (world, member) = (host.world().clone(), host.member().clone());
            let aside = move |work: futures::future::LocalBoxFuture<'static, ()>| world.spawn(&member, work);
            let outcome = host.world().outside.sandbox.start(run, door, Rc::new(aside)).await;
            host.point(At::SandboxDone, &source).await;
            outcome
        })
    }
}
