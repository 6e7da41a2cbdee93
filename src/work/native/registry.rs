//! The registries of native functions.

/// Defines `register`, `names`, `has` and `find` for one kind of native functions.
macro_rules! registry {
    ($native:ty, $built_in:expr, $what:literal) => {
        thread_local! {
            // Filled when the program starts.
            static NATIVES: crate::models::registry::Registry<$native> =
                const { crate::models::registry::Registry::new($built_in) };
        }

        #[doc = concat!("Adds ", $what, ", or replaces the one of that name. Call it when the program starts.")]
        pub fn register(name: &'static str, native: $native) {
            NATIVES.with(|natives| natives.add(name, native));
        }

        /// The names available to definitions.
        pub fn names() -> Vec<&'static str> {
            NATIVES.with(crate::models::registry::Registry::names)
        }

        /// Whether a name is available to definitions.
        #[allow(dead_code, reason = "not every kind is asked for before it is called")]
        pub(crate) fn has(name: &str) -> bool {
            find(name).is_some()
        }

        fn find(name: &str) -> Option<$native> {
            NATIVES.with(|natives| natives.find(name))
        }
    };
}

pub(crate) use registry;
