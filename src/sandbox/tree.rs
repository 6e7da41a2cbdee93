//! Tests of ownership: what ends with what, in which order, and that nothing is left.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;
use futures::task::noop_waker;

use crate::json;
use crate::sandbox::boundary::{Callback, FunctionResult, HostCalls, Outcome, Run};
use crate::sandbox::execution::{Start, start};
use crate::sandbox::run_state::RunState;
use crate::sandbox::{
    CodeError, CodeHandle, EncodedValue, Exception, Function, Options, Reports, Status, Value,
};

/// Events in order.
type Trace = Rc<RefCell<Vec<String>>>;

/// Records its drop in the trace.
struct Mark(&'static str, Trace);

impl Drop for Mark {
    fn drop(&mut self) {
        self.1.borrow_mut().push(format!("{} dropped", self.0));
    }
}

/// Runs of code with futures of the test as sandboxes.
#[derive(Clone, Default)]
struct World {
    tasks: Rc<RefCell<Vec<LocalBoxFuture<'static, ()>>>>,
    trace: Trace,
    lives: Rc<RefCell<Vec<Weak<RunState>>>>,
    last: Rc<Cell<u32>>,
}

type Script = fn(Ran) -> LocalBoxFuture<'static, Outcome>;

/// One run, as its sandbox sees it.
#[derive(Clone)]
struct Ran {
    door: Rc<dyn HostCalls>,
    world: World,
    back: Callback,
}

impl World {
    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.tasks.borrow_mut().push(Box::pin(task));
    }

    /// Polls until nothing changes.
    fn settle(&self) {
        for _ in 0..50 {
            let mut tasks = self.tasks.take();
            tasks.retain_mut(|task| {
                task.as_mut().poll(&mut Context::from_waker(&noop_waker())) == Poll::Pending
            });
            self.tasks.borrow_mut().append(&mut tasks);
        }
    }

    /// Starts code whose sandbox runs the script. Like the transport, it is held until nothing needs it.
    fn start(&self, name: &'static str, options: Options, script: Script) -> CodeHandle {
        self.last.set(self.last.get() + 1);
        let start_it = Start {
            source: name.to_owned(),
            options,
            id: format!("{name}{}", self.last.get()),
            owner: "thread".to_owned(),
            account: "account".to_owned(),
            sleep: Rc::new(|_| Box::pin(pending())),
        };
        let world = self.clone();
        let (execution, drive) = start(start_it, move |_: Run, door: Rc<dyn HostCalls>| {
            let ended = door.ended();
            let over = world.trace.clone();
            world.spawn(async move {
                ended.await;
                over.borrow_mut().push(format!("{name} over"));
            });
            let back: Callback = Rc::new(|_, _| Box::pin(pending()));
            let ended = door.ended();
            let run = script(Ran { door, world: world.clone(), back });
            async move {
                match futures::future::select(run, ended).await {
                    futures::future::Either::Left((outcome, _)) => outcome,
                    futures::future::Either::Right((reason, _)) => Outcome::failed(
                        Status::Terminated,
                        CodeError::new("Terminated", reason.unwrap_or_default()),
                    ),
                }
            }
        });
        self.lives.borrow_mut().push(Rc::downgrade(execution.life()));
        if let Some(drive) = drive {
            self.spawn(drive);
        }
        execution
    }

    /// A host function that starts code and returns its handle, like `state.runCode`.
    fn run_code(
        &self,
        options: impl Fn(Vec<Value>, &World) -> Options + 'static,
        script: Script,
    ) -> Function {
        let (world, mark) = (self.clone(), Mark("runCode", self.trace.clone()));
        Function::new("runCode", move |args| {
            let _of_this_function = &mark;
            let held = Rc::new(RefCell::new(Some(world.start("inner", options(args, &world), script))));
            let taken = held.clone();
            let result = Function::new("result", move |_| {
                let (settled, taken) = (taken.borrow().as_ref().map(CodeHandle::result), taken.clone());
                Box::pin(async move {
                    let settled = settled.ok_or_else(|| Exception::new("taken"))?.await;
                    drop(taken.take());
                    Ok(settled.to_value())
                })
            });
            let terminate = Function::new("terminate", move |_| {
                if let Some(execution) = held.borrow().as_ref() {
                    execution.terminate("enough");
                }
                Box::pin(async { Ok(Value::Undefined) })
            });
            Box::pin(async { Ok(Value::Array(vec![result.into(), terminate.into()])) })
        })
    }

    /// A host function that never answers.
    fn waits(&self) -> Function {
        let (trace, mark) = (self.trace.clone(), Mark("function", self.trace.clone()));
        Function::new("waits", move |_| {
            let _of_this_function = &mark;
            let mark = Mark("call", trace.clone());
            Box::pin(async move {
                let _mark = mark;
                pending().await
            })
        })
    }

    /// Asserts that nothing is left: no run, call, function or task.
    fn empty(&self) {
        self.settle();
        assert_eq!(self.tasks.borrow().len(), 0, "tasks: {:?}", self.trace.borrow());
        for life in self.lives.borrow().iter() {
            let left = life.upgrade().map(|life| life.counts());
            assert_eq!(left, None, "a run is left: {:?}", self.trace.borrow());
        }
    }

    fn traced(&self) -> Vec<String> {
        self.trace.borrow().clone()
    }
}

impl Ran {
    async fn call(&self, function: u64, args: &str) -> FunctionResult {
        let args = EncodedValue { text: args.to_owned(), bytes: Vec::new() };
        self.door.call(function, args, self.back.clone()).await.answer
    }

    /// Calls without waiting.
    fn ask(&self, function: u64, args: &'static str) {
        let ran = self.clone();
        self.world.spawn(async move {
            ran.call(function, args).await;
        });
    }

    fn gives(&self, text: &str) -> Outcome {
        let value = EncodedValue { text: text.to_owned(), bytes: Vec::new() };
        Outcome {
            value: Some(value),
            back: self.back.clone(),
            error: None,
            status: Status::Success,
            ..Outcome::lost("")
        }
    }
}

const NONE: &str = r#"[[1],["a",[]]]"#;
/// A call with a function of the sandbox.
const FUNCTION: &str = r#"[[1],["a",[[2]]],["f",1,"f"]]"#;

fn of(function: Function) -> Options {
    Options::default().global("f", function)
}

/// Starts code, with functions or without, and waits for its result.
fn waiting(ran: Ran) -> LocalBoxFuture<'static, Outcome> {
    Box::pin(async move {
        ran.call(0, FUNCTION).await;
        ran.ask(1, NONE);
        ran.call(1, NONE).await;
        ran.gives("[5]")
    })
}

/// Starts code without waiting for it.
fn not_waiting(ran: Ran) -> LocalBoxFuture<'static, Outcome> {
    Box::pin(async move {
        ran.call(0, FUNCTION).await;
        ran.ask(1, NONE);
        ran.gives("[5]")
    })
}

fn throws(ran: Ran) -> LocalBoxFuture<'static, Outcome> {
    Box::pin(async move {
        not_waiting(ran).await;
        Outcome::failed(Status::Error, CodeError::new("Error", "thrown after it was started"))
    })
}

fn at_once(ran: Ran) -> LocalBoxFuture<'static, Outcome> {
    Box::pin(async move { ran.gives("[1]") })
}

fn gives_a_function(ran: Ran) -> LocalBoxFuture<'static, Outcome> {
    Box::pin(async move { ran.gives(r#"[[1],["f",1,"given"]]"#) })
}

fn calls_back(ran: Ran) -> LocalBoxFuture<'static, Outcome> {
    Box::pin(async move {
        ran.call(0, FUNCTION).await;
        ran.gives(r#"[[1],["f",1,"given"]]"#)
    })
}

fn hangs(ran: Ran) -> LocalBoxFuture<'static, Outcome> {
    Box::pin(async move {
        ran.ask(0, FUNCTION);
        pending().await
    })
}

/// The options of the inner code: none, or functions of the outer code in every possible position.
fn given(place: u8) -> impl Fn(Vec<Value>, &World) -> Options {
    move |mut args, _| {
        let function = args.pop().unwrap_or(Value::Undefined);
        match (place, function) {
            (0, function) => Options { globals: vec![("f".into(), function)], ..Options::default() },
            (1, function) => {
                Options { imports: vec![("m".into(), vec![("f".into(), function)])], ..Options::default() }
            }
            (2, function) => Options { args: vec![function], ..Options::default() },
            (_, Value::Function(told)) => Options { report: Reports::Told(told), ..Options::default() },
            _ => Options::default(),
        }
    }
}

#[test]
fn whatever_code_gives_to_the_code_that_it_starts_nothing_is_left() {
    let inner: [Script; 4] = [at_once, gives_a_function, calls_back, hangs];
    let outer: [Script; 3] = [waiting, not_waiting, throws];
    for place in 0..4 {
        for inner in inner {
            for outer in outer {
                let world = World::default();
                let execution = world.start("outer", of(world.run_code(given(place), inner)), outer);
                world.settle();
                execution.terminate("in the middle");
                let settled = execution.result();
                drop(execution);
                world.settle();
                let result = futures::FutureExt::now_or_never(settled).unwrap();
                drop(result);
                world.empty();
            }
        }
    }
}

#[test]
fn a_run_ends_from_the_inside_to_the_outside() {
    let world = World::default();
    let inner = world.waits();
    let options = move |_: Vec<Value>, _: &World| of(inner.clone());
    let execution = world.start("outer", of(world.run_code(options, hangs)), waiting);
    world.settle();
    assert_eq!(world.traced(), [""; 0], "everything waits");
    drop(execution);
    world.empty();
    let traced = world.traced();
    let at = |line: &str| traced.iter().position(|found| found == line);
    let order = ["call dropped", "runCode dropped", "outer over"].map(at);
    assert!(order.is_sorted() && order.iter().all(Option::is_some), "{traced:?}");
    assert!(at("call dropped") < at("inner over"), "{traced:?}");
    assert_eq!(traced.len(), 5, "{traced:?}");
}

#[test]
fn a_function_of_the_result_keeps_its_run_and_no_other_does() {
    let world = World::default();
    let execution = world.start("outer", Options::default(), gives_a_function);
    world.settle();
    let result = futures::FutureExt::now_or_never(execution.result()).unwrap();
    drop(execution);
    world.settle();
    assert_eq!(world.traced(), [""; 0], "its function is held");
    drop(result);
    world.empty();
    assert_eq!(world.traced(), ["outer over"]);

    let world = World::default();
    let stashed: Rc<RefCell<Vec<Value>>> = Rc::default();
    let stash = stashed.clone();
    let keeps = Function::new("keeps", move |args| {
        stash.borrow_mut().extend(args);
        Box::pin(async { Ok(Value::Undefined) })
    });
    let execution = world.start("outer", of(keeps), calls_back);
    world.settle();
    assert_eq!(stashed.borrow().len(), 1);
    drop(execution);
    world.empty();
    let Some(Value::Function(gone)) = stashed.borrow_mut().pop() else { panic!("a function was kept") };
    let called = futures::FutureExt::now_or_never(gone.call(Vec::new())).unwrap();
    assert!(called.unwrap_err().message.contains("is gone"));
}

#[test]
fn runs_that_have_functions_of_each_other_do_not_hold_each_other() {
    let world = World::default();
    let (a, b) = (
        world.start("a", Options::default(), gives_a_function),
        world.start("b", Options::default(), gives_a_function),
    );
    world.settle();
    let function =
        |execution: &CodeHandle| futures::FutureExt::now_or_never(execution.result()).unwrap().result.clone();
    for (caller, given) in [(&a, &b), (&b, &a)] {
        let Value::Function(caller) = function(caller) else { panic!("a function is given") };
        let mut called = caller.call(vec![function(given)]);
        assert!(called.as_mut().poll(&mut Context::from_waker(&noop_waker())).is_pending());
    }
    drop((a, b));
    world.empty();
}

#[test]
fn reports_that_are_too_many_to_keep_end_the_run() {
    let world = World::default();
    let options = Options { report: Reports::Kept, ..Options::default() };
    let execution = world.start("outer", options, |ran| {
        Box::pin(async move {
            let text = json!(["x".repeat(1 << 20)]).to_string();
            for _ in 0..10 {
                ran.door
                    .report(EncodedValue { text: text.clone(), bytes: Vec::new() }, ran.back.clone())
                    .await;
            }
            pending().await
        })
    });
    world.settle();
    let result = futures::FutureExt::now_or_never(execution.result()).unwrap();
    assert_eq!((result.status, result.reports.len()), (Status::Terminated, 7));
    assert!(result.error.as_ref().unwrap().message.contains("reported more than 8388608 bytes"));
}

#[test]
fn arguments_of_calls_under_way_are_bounded_together() {
    let world = World::default();
    let execution = world.start("outer", of(world.waits()), |ran| {
        Box::pin(async move {
            let args = json!([[1], ["a", ["x".repeat(6 << 20)]]]).to_string();
            for _ in 0..2 {
                let (ran, args) = (ran.clone(), args.clone());
                ran.world.clone().spawn(async move {
                    ran.call(0, &args).await;
                });
            }
            let mut turns = 0;
            futures::future::poll_fn(|_| {
                turns += 1;
                if turns > 3 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            match ran.call(0, &args).await {
                FunctionResult::Error(refused) => ran.gives(&json!([refused.text]).to_string()),
                FunctionResult::Value(_) => ran.gives("[0]"),
            }
        })
    });
    world.settle();
    let result = futures::FutureExt::now_or_never(execution.result()).unwrap();
    assert!(result.result.text().unwrap_or_default().contains("16777216 bytes"), "{result:?}");
    drop((execution, result));
    world.empty();
}

#[test]
fn answers_that_the_sandbox_has_not_taken_are_bounded_and_others_wait() {
    let world = World::default();
    let read = Rc::new(Cell::new(0));
    let count = read.clone();
    // A synchronous function, like one that reads a file.
    let reads = Function::new("read", move |_| {
        count.set(count.get() + 1);
        Box::pin(async { Ok(Value::String("x".repeat(5 << 20))) })
    });
    let execution = world.start("outer", of(reads), |ran| {
        Box::pin(async move {
            let held: Rc<RefCell<Vec<usize>>> = Rc::default();
            for _ in 0..20 {
                let (ran, held) = (ran.clone(), held.clone());
                ran.world.clone().spawn(async move {
                    let args = EncodedValue { text: "[[1],[\"a\",[]]]".to_owned(), bytes: Vec::new() };
                    let answered = ran.door.call(0, args, ran.back.clone()).await;
                    held.borrow_mut().push(answered.held);
                });
            }
            // The sandbox takes an answer every second turn.
            let mut turns = 0;
            let mut seen = 0;
            let most = Cell::new(0);
            futures::future::poll_fn(|_| {
                turns += 1;
                let sum: usize = held.borrow().iter().sum();
                most.set(most.get().max(sum));
                if turns % 2 == 0
                    && let Some(bytes) = held.borrow_mut().pop()
                {
                    ran.door.taken(bytes);
                    seen += 1;
                }
                if seen == 20 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            ran.gives(&json!([most.get() >> 20]).to_string())
        })
    });
    for _ in 0..4 {
        world.settle();
    }
    let result = futures::FutureExt::now_or_never(execution.result()).unwrap();
    // There is room for three of 5 MiB, and for one more that was read while a byte was free.
    assert_eq!(result.result.to_json(), Some(json!(20)), "{result:?}");
    assert_eq!(read.get(), 20);
    drop((execution, result));
    world.empty();
}
