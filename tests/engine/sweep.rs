//! A scenario, and what is done to it: undisturbed under several schedules, then with each way to fail at each point
//! (or at a sample of them: sample.rs), then (`npm run soak`) with several failures at random points for as long as wanted.
//!
//! A failure prints how to replay it: `BOBBIN_SEED`, `BOBBIN_POINT` and `BOBBIN_FAULT` run exactly one simulation.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::contract::{self, History, Terms};
use crate::host::fault::{Fault, Plan, once};
use crate::host::outside::ModelRequest;
use crate::host::rng::Rng;
use crate::host::{Answer, At, DAY_US, Member, Say};
use crate::sample::{self, Points};
use crate::sim::{Sim, catalog};

/// The seed of a sweep when none is asked for.
const SEED: u64 = 1;
/// Schedules that an undisturbed scenario is run under.
const SCHEDULES: u64 = 6;

type Setup = Rc<dyn Fn(&Sim)>;
type Drive = Rc<dyn Fn(Sim) -> LocalBoxFuture<'static, ()>>;
type Check = Rc<dyn Fn(&Sim, &History)>;

/// A story with an end: what the outside answers, what clients do, and what must have come of it.
#[derive(Clone)]
pub struct Scenario {
    /// Its name, for messages.
    pub name: &'static str,
    catalog: Value,
    setup: Vec<Setup>,
    drive: Drive,
    check: Check,
    terms: Terms,
    sampled: Option<usize>,
    /// Whether a sample runs it undisturbed but once.
    long: bool,
    /// Days that it may take.
    days: i64,
    plan: Option<Rc<dyn Fn() -> Plan>>,
}

impl Scenario {
    /// A scenario with these tools, in which nothing happens yet.
    pub fn new(name: &'static str, tools: &Value) -> Scenario {
        Scenario {
            name,
            catalog: catalog(tools),
            setup: Vec::new(),
            drive: Rc::new(|_| Box::pin(async {})),
            check: Rc::new(|_, _| {}),
            terms: Terms::default(),
            sampled: None,
            long: false,
            // The longest wait takes seven days.
            days: 8,
            plan: None,
        }
    }

    /// Fails as part of the story.
    pub fn suffers(mut self, plan: impl Fn() -> Plan + 'static) -> Scenario {
        self.plan = Some(Rc::new(plan));
        self
    }

    /// Changes the definitions.
    pub fn define(mut self, edit: impl FnOnce(&mut Value)) -> Scenario {
        edit(&mut self.catalog);
        self
    }

    /// Prepares the outside.
    pub fn setup(mut self, setup: impl Fn(&Sim) + 'static) -> Scenario {
        self.setup.push(Rc::new(setup));
        self
    }

    /// What the model says, as a function of the request.
    pub fn says(self, say: impl Fn(&ModelRequest) -> Say + Clone + 'static) -> Scenario {
        self.answers(move |request| say(request).stream(request.index))
    }

    /// What the model's server answers.
    pub fn answers(self, answer: impl Fn(&ModelRequest) -> Answer + Clone + 'static) -> Scenario {
        self.setup(move |sim| sim.world.outside.model(answer.clone()))
    }

    /// What clients do once the thread exists.
    pub fn drive<F>(mut self, drive: impl Fn(Sim) -> F + 'static) -> Scenario
    where
        F: Future<Output = ()> + 'static,
    {
        self.drive = Rc::new(move |sim| Box::pin(drive(sim)));
        self
    }

    /// What must have come of it, besides the contract, whatever failed.
    pub fn check(mut self, check: impl Fn(&Sim, &History) + 'static) -> Scenario {
        self.check = Rc::new(check);
        self
    }

    /// The open numbers of the contract.
    pub fn terms(mut self, edit: impl FnOnce(&mut Terms)) -> Scenario {
        edit(&mut self.terms);
        self
    }

    /// Fails at so many points, chosen by the seed, instead of at every one.
    pub fn sampled(mut self, points: usize) -> Scenario {
        self.sampled = Some(points);
        self
    }

    /// It takes long undisturbed: a sample runs it under one of the schedules.
    pub fn long(mut self) -> Scenario {
        self.long = true;
        self
    }

    /// It may take so many days.
    pub fn lasting(mut self, days: i64) -> Scenario {
        self.days = days;
        self
    }

    /// Runs it once.
    fn run(&self, seed: u64, plan: Option<Plan>, calm: Option<usize>) -> Run {
        let sim = Sim::new(seed, &self.catalog);
        for setup in &self.setup {
            setup(&sim);
        }
        if let Some(plan) = plan.or_else(|| self.plan.as_ref().map(|plan| plan())) {
            sim.world.faults.borrow_mut().plan(plan);
        }
        let (client, drive) = (sim.clone(), self.drive.clone());
        sim.world.client(async move {
            client.create().await;
            drive(client).await;
        });
        let rested = sim.world.rest(self.days * DAY_US);
        let mut broken = Vec::new();
        if !rested && !self.terms.alarm_may_stay {
            broken.push(format!(
                "it does not come to rest: clients {:?}, process {:?}, alarms {:?}",
                sim.world.executor.waiting(true),
                sim.world.executor.waiting(false),
                sim.world.members().iter().map(|member| member.alarm.get()).collect::<Vec<_>>()
            ));
        }
        let points = {
            let faults = sim.world.faults.borrow();
            Points { ways: faults.ways.clone(), kinds: faults.kinds.clone(), ats: faults.ats.clone() }
        };
        let requests = sim.world.outside.requests.borrow().len();
        let fired: Vec<String> = {
            let faults = sim.world.faults.borrow();
            faults.fired.iter().map(|(point, fault)| format!("{} at {point}", fault.name())).collect()
        };
        let panics = if sim.world.executor.waiting(true).is_empty() {
            let (history, violations) = contract::check(&sim, &self.terms, calm);
            broken.extend(violations);
            let checked = catch_unwind(AssertUnwindSafe(|| (self.check)(&sim, &history)));
            if checked.is_err() || !broken.is_empty() {
                print_history(&sim, &history);
            }
            checked.err()
        } else {
            broken.append(&mut sim.world.failures.borrow_mut());
            None
        };
        if panics.is_some() || !broken.is_empty() {
            for line in sim.world.log.borrow().iter() {
                eprintln!("  log: {line}");
            }
        }
        let reasons: BTreeSet<String> =
            sim.world.members().iter().flat_map(|member| reasons(member)).collect();
        let unknown = reasons.difference(contract::endings());
        broken.extend(
            unknown.map(|reason| format!("a run ended by {reason:?}, which docs/http.md does not list")),
        );
        sim.dispose();
        Run { points, requests, reasons, fired, broken, panics }
    }

    /// Runs it and gives up with everything that is known when it fails.
    fn must(&self, seed: u64, plan: Option<Plan>, calm: Option<usize>, replay: &str) -> Run {
        let run = catch_unwind(AssertUnwindSafe(|| self.run(seed, plan, calm)));
        let tell = |fired: &[String]| {
            eprintln!("\n“{}” failed. Replay: BOBBIN_SEED={seed} {replay}", self.name);
            fired.iter().for_each(|fault| eprintln!("  {fault}"));
        };
        match run {
            Err(payload) => {
                tell(&[]);
                resume_unwind(payload)
            }
            Ok(mut run) => {
                if run.panics.is_some() || !run.broken.is_empty() {
                    tell(&run.fired);
                    run.broken.iter().for_each(|broken| eprintln!("  {broken}"));
                }
                if let Some(payload) = run.panics.take() {
                    resume_unwind(payload);
                }
                assert!(run.broken.is_empty(), "{}: the contract is broken (above)", self.name);
                run
            }
        }
    }

    /// Undisturbed under several schedules, then with every way to fail at every point (or at those sampled).
    pub fn sweep(&self) {
        if self.replay() {
            return;
        }
        let calm = self.undisturbed();
        let chosen = match (sample::seed(), self.sampled) {
            (Some(seed), most) => sample::sample(self.name, &calm.points, most, seed),
            (None, None) => sample::every(&calm.points),
            (None, Some(n)) => {
                let every = sample::every(&calm.points);
                let mut rng = Rng::new(SEED);
                (0..n).map(|_| every[rng.below(every.len())]).collect()
            }
        };
        for (point, fault) in chosen {
            let replay = format!("BOBBIN_POINT={point} BOBBIN_FAULT={}", fault.name());
            self.must(SEED, Some(once(point, fault)), Some(calm.requests), &replay);
        }
    }

    /// Fails so at every point of one kind, also in a sample: for what that would find by chance alone.
    pub fn sweep_at(&self, at: At, fault: Fault) {
        if self.replay() {
            return;
        }
        let calm = self.must(SEED, None, None, "");
        let points: Vec<u64> =
            (0..).zip(&calm.points.ats).filter(|(_, of)| **of == at).map(|(point, _)| point).collect();
        assert!(!points.is_empty(), "{}: it passes no such point", self.name);
        for point in points {
            let replay = format!("BOBBIN_POINT={point} BOBBIN_FAULT={}", fault.name());
            self.must(SEED, Some(once(point, fault)), Some(calm.requests), &replay);
        }
    }

    /// Why the runs of all its threads ended, in one undisturbed run.
    pub fn reasons(&self) -> BTreeSet<String> {
        self.must(SEED, None, None, "").reasons
    }

    /// Only the undisturbed runs: for stories whose failures are part of the script.
    pub fn calm(&self) {
        if !self.replay() {
            self.undisturbed();
        }
    }

    /// The undisturbed runs; the first of them is always the same, unless the story is long.
    fn undisturbed(&self) -> Run {
        if let (true, Some(seed)) = (self.long, sample::schedule(self.name, SEED, SCHEDULES)) {
            return self.must(seed, None, None, "");
        }
        let calm = self.must(SEED, None, None, "");
        for seed in sample::schedules(self.name, SEED, SCHEDULES) {
            self.must(seed, None, None, "");
        }
        calm
    }

    /// One undisturbed run: for stories that take long.
    pub fn once(&self) {
        if !self.replay() {
            self.must(SEED, None, None, "");
        }
    }

    /// Several failures at random points; everything follows from the seed.
    pub fn shake(&self, seed: u64) {
        let calm = self.must(seed, None, None, "BOBBIN_SHAKE=1");
        let mut rng = Rng::new(seed ^ 0x50a4);
        let mut left = 1 + rng.below(3);
        let spread = calm.points.ways.len().max(2);
        let ways = calm.points.ways.iter().copied().max_by_key(|ways| ways.len()).unwrap_or(&Fault::ALL);
        let plan: Plan = Box::new(move |_| {
            if left == 0 || !rng.one_in(spread) {
                return None;
            }
            left -= 1;
            Some(ways[rng.below(ways.len())])
        });
        self.must(seed, Some(plan), Some(calm.requests), "BOBBIN_SHAKE=1");
    }

    /// One simulation, when the environment names it.
    fn replay(&self) -> bool {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let Some(seed) = number("BOBBIN_SEED") else { return false };
        if std::env::var_os("BOBBIN_SHAKE").is_some() {
            self.shake(seed);
            return true;
        }
        let calm = self.must(seed, None, None, "");
        if let Some(point) = number("BOBBIN_POINT") {
            let fault = std::env::var("BOBBIN_FAULT").ok().and_then(|name| Fault::parse(&name));
            let fault = fault.unwrap_or(Fault::CrashLost);
            self.must(seed, Some(once(point, fault)), Some(calm.requests), &format!("BOBBIN_POINT={point}"));
        }
        true
    }
}

/// What one simulation came to.
struct Run {
    points: Points,
    requests: usize,
    /// Why its runs ended, of all threads.
    reasons: BTreeSet<String>,
    fired: Vec<String>,
    broken: Vec<String>,
    panics: Option<Box<dyn std::any::Any + Send>>,
}

fn reasons(member: &Member) -> Vec<String> {
    match member.has_table("runs") {
        true => member.database.ask("SELECT DISTINCT reason FROM runs WHERE reason IS NOT NULL"),
        false => Vec::new(),
    }
}

fn print_history(sim: &Sim, history: &History) {
    eprintln!("\n  history:");
    print_messages(history);
    for (id, outcome) in &history.outcomes {
        eprintln!("    outcome of {id}: {} {} {}", outcome["outcome"], outcome["reason"], outcome["run"]);
    }
    for execution in sim.world.outside.executions.borrow().iter() {
        eprintln!("    {} ran with key {} {}", execution.name, execution.key, execution.args);
    }
    for (id, history) in &history.family {
        eprintln!("\n  thread {id}:");
        print_messages(history);
    }
    for request in sim.world.outside.requests.borrow().iter() {
        eprintln!("    a model was asked by {}: “{}”", request.thread, request.last_user());
    }
}

fn print_messages(history: &History) {
    let skipped = history.messages.len().saturating_sub(60);
    for message in history.messages.iter().skip(skipped) {
        eprintln!(
            "    {} {} {} {} {}",
            message["id"],
            message["role"],
            message["content"].to_string().chars().take(120).collect::<String>(),
            message["tool_calls"],
            message["metadata"]["status_kind"]
        );
    }
}
