//! Counts steps, in tests only.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// So many steps more.
#[inline]
pub(crate) fn add(_steps: usize) {
    #[cfg(test)]
    STEPS.with(|all| all.set(all.get() + _steps));
}

/// Steps of this thread so far.
#[cfg(test)]
pub(crate) fn done() -> usize {
    STEPS.with(std::cell::Cell::get)
}
