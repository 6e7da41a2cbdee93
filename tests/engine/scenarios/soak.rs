//! Every story, with several failures at random points, for as long as `BOBBIN_SOAK_SECONDS` says. `npm run soak`
//! runs it long; `cargo test` for a moment, and a sample a part of them once. `BOBBIN_STORY` names the stories that it takes, by a part of their name, or
//! with `!` before it the ones that it leaves out.

use std::time::{Duration, Instant};

use super::all;
use crate::sample;

#[test]
fn stories_survive_several_failures_at_random_points() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = std::env::var("BOBBIN_STORY").unwrap_or_default();
    let mut stories = all();
    match wanted.strip_prefix('!') {
        Some(unwanted) => stories.retain(|story| !story.name.contains(unwanted)),
        None => stories.retain(|story| story.name.contains(&wanted)),
    }
    assert!(!stories.is_empty(), "no story is called {wanted:?}");
    let third = stories.len().div_ceil(3);
    let stories = sample::some("soak", stories, third);
    let seconds = number("BOBBIN_SOAK_SECONDS").unwrap_or(if sample::seed().is_some() { 0 } else { 4 });
    let first = number("BOBBIN_SOAK_SEED").unwrap_or(1_000);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut seed = first;
    while Instant::now() < end || seed == first {
        for story in &stories {
            story.shake(seed);
        }
        seed += 1;
    }
    eprintln!("{} seeds of {} stories, {first} to {}", seed - first, stories.len(), seed - 1);
}
