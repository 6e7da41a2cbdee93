//! Counts steps, in tests.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Adds steps.
#[inline]
pub(crate) fn add(_steps: usize) {
    #[cfg(test)]
    STEPS.with(|all| all.set(all.get() + _steps));
}

/// Number of steps of this thread.
#[cfg(test)]
pub(crate) fn total() -> usize {
    STEPS.with(std::cell::Cell::get)
}
