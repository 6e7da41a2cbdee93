//! Searches for several needles in one pass: each byte of the text leads from one state to the next (Aho and Corasick).
//!
//! A state is a beginning of a needle: the longest one that the text read so far ends in. Needles come in order, so those
//! that begin alike share states, and the states of what a needle does not share are numbered one after another. So a state
//! knows the next one without a table: it is the next number, where the needle has that byte.

use crate::env::redact::find::{LEAST_BYTES, Needle, Span};
use crate::env::redact::work;

/// States that one search has, about: each takes 20 bytes of memory meanwhile.
const STATES: usize = 256 * 1024;
/// The empty beginning.
const ROOT: u32 = 0;

/// One beginning of a needle.
#[derive(Clone, Copy, Default)]
struct State {
    /// The needle, by its place among the parts.
    part: u32,
    /// Bytes of the beginning.
    depth: u32,
    /// The longest shorter beginning that this one ends in.
    shorter: u32,
    /// The longest whole needle that this beginning ends in; the root where there is none.
    whole: u32,
    /// Whether beginnings of other needles go on from here, too.
    forks: bool,
}

/// What a needle does not share with the one before it.
struct Part<'n> {
    needle: &'n Needle,
    /// As much of it as the text has room for.
    text: &'n [u8],
    /// The state that it goes on from, and the depth of that.
    from: u32,
    shared: usize,
    /// Its first state.
    first: u32,
}

/// Needles to search for.
pub(super) struct Automaton<'n> {
    parts: Vec<Part<'n>>,
    states: Vec<State>,
    /// The first states of parts: where they go on from, by which byte, and which they are. In order.
    forks: Vec<(u32, u8, u32)>,
}

impl<'n> Automaton<'n> {
    /// One for the next of these needles, which are in order, and for texts of at most so many bytes.
    pub(super) fn new(needles: &mut impl Iterator<Item = &'n Needle>, room: usize) -> Automaton<'n> {
        let states = vec![State::default()];
        let mut automaton = Automaton { parts: Vec::new(), states, forks: Vec::new() };
        // The parts that the needle before consists of.
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
        work::add(shared);
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

    /// Finds what each state ends in, of shorter ones first.
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

    /// Links the state of a part at a depth; whether it has one behind it.
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
            work::add(1);
            if let Some(next) = self.next(at, byte) {
                return next;
            }
            if at == ROOT {
                return ROOT;
            }
            at = self.state(at).shorter;
        }
    }

    /// The beginning that is longer by a byte, if there is one.
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

    /// Adds every place of a needle to the spans, of which those that overlap become one, and a beginning where the text ends
    /// in it.
    pub(super) fn search(&self, text: &[u8], spans: &mut Vec<Span>) {
        // With the length of the longest needle there, whose name it goes by.
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
