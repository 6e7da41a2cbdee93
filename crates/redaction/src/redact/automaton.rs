//! Searches for many needles in one pass: each byte of the text leads from one state to the next
//! (Aho-Corasick).
//!
//! A state is a prefix of a needle: the longest one at the end of the text so far. Needles are sorted, so
//! those with a common prefix share its states, and the remaining states of a needle have consecutive
//! numbers. So a state needs no table for its successor: it is the next number, if the needle continues with
//! that byte.

use crate::redact::find::{LEAST_BYTES, Needle, Span};
use crate::redact::step_count;

/// Approximate maximum number of states of one search; each takes 20 bytes.
const STATES: usize = 256 * 1024;
/// The empty prefix.
const ROOT: u32 = 0;

/// A prefix of a needle.
#[derive(Clone, Copy, Default)]
struct State {
    /// Index of the needle's part.
    part: u32,
    /// Length of the prefix.
    depth: u32,
    /// The longest shorter prefix that ends here.
    shorter: u32,
    /// The longest complete needle that ends here; the root if none does.
    whole: u32,
    /// Whether other needles branch off here.
    forks: bool,
}

/// The part of a needle that the previous one does not share.
struct Part<'n> {
    needle: &'n Needle,
    /// The needle, cut to the length of the text.
    text: &'n [u8],
    /// The state before the part, and its depth.
    from: u32,
    shared: usize,
    /// The first state of the part.
    first: u32,
}

/// A search for needles.
pub(super) struct Automaton<'n> {
    parts: Vec<Part<'n>>,
    states: Vec<State>,
    /// Branches to first states of parts: origin, byte, target. Sorted.
    forks: Vec<(u32, u8, u32)>,
}

impl<'n> Automaton<'n> {
    /// Builds a search for the next needles, which are sorted, in texts of at most `room` bytes.
    pub(super) fn new(needles: &mut impl Iterator<Item = &'n Needle>, room: usize) -> Automaton<'n> {
        let states = vec![State::default()];
        let mut automaton = Automaton { parts: Vec::new(), states, forks: Vec::new() };
        // The parts of the previous needle.
        let mut path: Vec<usize> = Vec::new();
        while automaton.states.len() < STATES
            && let Some(needle) = needles.next()
        {
            let text = needle.text.get(..room).unwrap_or(&needle.text);
            automaton.add(needle, text, &mut path);
        }
        automaton.forks.sort_unstable();
        automaton.link();
        automaton
    }

    fn add(&mut self, needle: &'n Needle, text: &'n [u8], path: &mut Vec<usize>) {
        let before = path.last().and_then(|part| self.parts.get(*part)).map_or(&[][..], |part| part.text);
        let shared = text.iter().zip(before).take_while(|(a, b)| a == b).count();
        step_count::add(shared);
        let Some(byte) = text.get(shared) else { return };
        while path.last().and_then(|part| self.parts.get(*part)).is_some_and(|part| part.shared >= shared) {
            path.pop();
        }
        let last = path.last().and_then(|part| self.parts.get(*part));
        let from = last.map_or(ROOT, |part| part.first + (shared - part.shared) as u32 - 1);
        let (part, first) = (self.parts.len(), self.states.len() as u32);
        if let Some(state) = self.states.get_mut(from as usize) {
            state.forks = true;
        }
        self.forks.push((from, *byte, first));
        let state = |depth: usize| State { part: part as u32, depth: depth as u32, ..State::default() };
        self.states.extend((shared + 1..=text.len()).map(state));
        self.parts.push(Part { needle, text, from, shared, first });
        path.push(part);
    }

    /// Sets `shorter` and `whole` of all states, in order of depth.
    fn link(&mut self) {
        let mut later: Vec<usize> = (0..self.parts.len()).collect();
        later.sort_unstable_by_key(|part| std::cmp::Reverse(self.parts.get(*part).map(|part| part.shared)));
        let mut open: Vec<usize> = Vec::new();
        let mut depth = 0;
        while !open.is_empty() || !later.is_empty() {
            let begins = |part: &usize| self.parts.get(*part).map_or(0, |part| part.shared);
            if open.is_empty() {
                depth = later.last().map_or(0, begins);
            }
            while let Some(part) = later.pop_if(|part| begins(part) == depth) {
                open.push(part);
            }
            depth += 1;
            open.retain(|part| self.link_one(*part, depth));
        }
    }

    /// Links the state of a part at a depth; returns whether the part continues.
    fn link_one(&mut self, part: usize, depth: usize) -> bool {
        let Some(Part { needle, text, from, shared, first }) = self.parts.get(part) else { return false };
        let at = first + (depth - shared) as u32 - 1;
        let before = if at == *first { *from } else { at - 1 };
        let (is_whole, goes_on) = (depth == needle.text.len(), depth < text.len());
        let byte = text.get(depth - 1).copied().unwrap_or_default();
        let shorter = if before == ROOT { ROOT } else { self.step(self.state(before).shorter, byte) };
        let whole = if is_whole { at } else { self.state(shorter).whole };
        if let Some(state) = self.states.get_mut(at as usize) {
            (state.shorter, state.whole) = (shorter, whole);
        }
        goes_on
    }

    fn state(&self, at: u32) -> State {
        self.states.get(at as usize).copied().unwrap_or_default()
    }

    /// The state after one more byte.
    fn step(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            step_count::add(1);
            if let Some(next) = self.next(at, byte) {
                return next;
            }
            if at == ROOT {
                return ROOT;
            }
            at = self.state(at).shorter;
        }
    }

    /// The prefix extended by a byte, if there is one.
    fn next(&self, at: u32, byte: u8) -> Option<u32> {
        let state = self.state(at);
        let same = self.parts.get(state.part as usize)?.text.get(state.depth as usize) == Some(&byte);
        if same && at != ROOT {
            return Some(at + 1);
        }
        let fork = || self.forks.binary_search_by_key(&(at, byte), |(from, byte, _)| (*from, *byte)).ok();
        if state.forks {
            fork().and_then(|fork| self.forks.get(fork)).map(|(_, _, next)| *next)
        } else {
            None
        }
    }

    /// Adds every occurrence of a needle to the spans, merging overlaps, and a prefix of a needle at the end
    /// of the text.
    pub(super) fn search(&self, text: &[u8], spans: &mut Vec<Span>) {
        // With the length of the longest needle in it, which gives the span its name.
        let mut places: Vec<(Span, usize)> = Vec::new();
        let mut found = |state: State, end: usize| {
            let Some(part) = self.parts.get(state.part as usize) else { return };
            let mut longest = state.depth as usize;
            let mut span = Span { start: end - longest, end, secret: part.needle.secret };
            while let Some((earlier, length)) = places.pop_if(|(earlier, _)| span.start < earlier.end) {
                span.start = span.start.min(earlier.start);
                if length > longest {
                    (span.secret, longest) = (earlier.secret, length);
                }
            }
            places.push((span, longest));
        };
        let mut at = ROOT;
        for (place, byte) in text.iter().enumerate() {
            at = self.step(at, *byte);
            let whole = self.state(at).whole;
            if whole != ROOT {
                found(self.state(whole), place + 1);
            }
        }
        let last = self.state(at);
        if last.depth as usize >= LEAST_BYTES {
            found(last, text.len());
        }
        spans.extend(places.into_iter().map(|(span, _)| span));
    }
}
