//! Every story, with several failures at random points, for as long as `BOBBIN_SOAK_SECONDS` says. `npm run soak`
//! runs it long; `cargo test` for a moment.

use std::time::{Duration, Instant};

use super::all;

#[test]
fn stories_survive_several_failures_at_random_points() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let stories = all();
    let seconds = number("BOBBIN_SOAK_SECONDS").unwrap_or(4);
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
