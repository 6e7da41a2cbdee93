//! Which failures a sweep tries: all of them, or, when `BOBBIN_SAMPLE` names a seed, as `npm test` does, a part of them
//! that is another one for each seed.
//!
//! A sample holds the first failure and the last, failures at each kind of point (the same statement of a loop is one
//! kind, and so are the ends of transactions that write the same), failures at even distances, and every fault that is
//! possible. A short story is tried whole. The longer one is, the fewer: a failure costs a run of the whole story, so a
//! story of twice the length has twice the failures at twice the price each.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::At;
use crate::host::fault::Fault;
use crate::host::rng::Rng;

/// Points that the disturbed runs of one story may pass in all, about.
const WORK: usize = 2_400;
/// Failures of a story, at least and at most.
const FEWEST: usize = 8;
const MOST: usize = 200;
/// Schedules of a story beside the first one.
const SCHEDULES: usize = 1;

/// The points that a run passed.
#[derive(Default)]
pub struct Points {
    /// The ways to fail at each that differ from each other there.
    pub ways: Vec<&'static [Fault]>,
    /// The kind of each.
    pub kinds: Vec<u64>,
    /// What was about to happen at each.
    pub ats: Vec<At>,
}

/// A way to fail: where, and how.
pub type Failure = (u64, Fault);

/// The seed of the sample, when this is one.
pub fn seed() -> Option<u64> {
    std::env::var("BOBBIN_SAMPLE").ok().map(|text| text.parse().expect("BOBBIN_SAMPLE is a number"))
}

/// Every way to fail in a story that passed these points.
pub fn every(calm: &Points) -> Vec<Failure> {
    (0..).zip(&calm.ways).flat_map(|(point, ways)| ways.iter().map(move |fault| (point, *fault))).collect()
}

/// The failures of a story that are tried under this seed, at most so many, in the order of the story.
pub fn sample(name: &str, calm: &Points, most: Option<usize>, seed: u64) -> Vec<Failure> {
    let every = every(calm);
    let count =
        (WORK / calm.ways.len().max(1)).clamp(FEWEST, MOST).min(most.unwrap_or(MOST)).min(every.len());
    if count == every.len() {
        return every;
    }
    let mut rng = of_story(name, seed);
    let mut chosen = BTreeSet::from_iter(every.first().into_iter().chain(every.last()).map(key));

    // One of each fault.
    let mut by_fault: BTreeMap<&str, Vec<Failure>> = BTreeMap::new();
    for failure in &every {
        by_fault.entry(failure.1.name()).or_default().push(*failure);
    }
    chosen.extend(by_fault.values().map(|of_fault| key(&of_fault[rng.below(of_fault.len())])));

    // Two thirds of them at kinds of points, in rounds: what happens once weighs as much as what a loop does.
    let mut by_kind: BTreeMap<u64, Vec<Failure>> = BTreeMap::new();
    for failure in &every {
        by_kind.entry(calm.kinds[failure.0 as usize]).or_default().push(*failure);
    }
    let mut round: Vec<u64> = Vec::new();
    while chosen.len() < (2 * count).div_ceil(3) {
        if round.is_empty() {
            by_kind.retain(|_, left| !left.is_empty());
            round.extend(by_kind.keys());
        }
        if round.is_empty() {
            break;
        }
        let kind = round.swap_remove(rng.below(round.len()));
        if let Some(left) = by_kind.get_mut(&kind) {
            chosen.insert(key(&left.swap_remove(rng.below(left.len()))));
        }
    }

    // The rest at even distances, each anywhere in its stretch.
    let rest = count.saturating_sub(chosen.len());
    for at in 0..rest {
        let (from, to) = (at * every.len() / rest, (at + 1) * every.len() / rest);
        chosen.insert(key(&every[from + rng.below(to - from)]));
    }
    every.into_iter().filter(|failure| chosen.contains(&key(failure))).collect()
}

/// The seeds of a story's schedules beside the first one: all of them or, in a sample, some.
pub fn schedules(name: &str, first: u64, count: u64) -> Vec<u64> {
    some(name, (first + 1..first + count).collect(), SCHEDULES)
}

/// The seed of the only schedule of a story that takes long, in a sample.
pub fn schedule(name: &str, first: u64, count: u64) -> Option<u64> {
    seed().map(|seed| first + of_story(name, seed).below(count as usize) as u64)
}

/// All of them or, in a sample, so many.
pub fn some<T>(name: &str, mut all: Vec<T>, most: usize) -> Vec<T> {
    if let Some(seed) = seed() {
        let mut rng = of_story(name, seed);
        while all.len() > most {
            all.swap_remove(rng.below(all.len()));
        }
    }
    all
}

/// Chance of one story under a seed: stories of the same shape differ.
fn of_story(name: &str, seed: u64) -> Rng {
    Rng::new(name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))))
}

fn key((point, fault): &Failure) -> (u64, &'static str) {
    (*point, fault.name())
}

#[test]
fn a_sample_holds_the_ends_every_fault_and_rare_points_and_follows_from_its_seed() {
    let mut calm = Points::default();
    // A loop of one statement, and one other in the middle of it.
    for point in 0..2_000_u64 {
        calm.ways.push(if point % 7 == 0 { &Fault::OF_FAMILY } else { &[Fault::CrashKept, Fault::Panic] });
        calm.kinds.push(u64::from(point == 1_234));
    }
    let one = sample("story", &calm, None, 5);
    assert_eq!(one, sample("story", &calm, None, 5));
    assert_ne!(one, sample("story", &calm, None, 6));
    assert_ne!(one, sample("another", &calm, None, 5));
    assert_eq!(one.len(), FEWEST);
    assert!(sample("story", &calm, Some(5), 5).len() < FEWEST);
    let points: Vec<u64> = one.iter().map(|(point, _)| *point).collect();
    assert_eq!((points[0], points[points.len() - 1]), (0, 1_999));
    for fault in Fault::OF_FAMILY {
        assert!(one.iter().any(|(_, of)| *of == fault), "{}", fault.name());
    }
    // Short stories are tried whole.
    calm.ways.truncate(5);
    calm.kinds.truncate(5);
    assert_eq!(sample("story", &calm, None, 5), every(&calm));
}
