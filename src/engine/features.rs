//! The features of a thread, each with a handle that keeps its methods apart from those of other features.

/// Declares the handle of a feature, and the method of `Thread` that returns it.
///
/// A handle keeps the methods of one feature apart from those of all others: `thread.waits().decide(…)`. It
/// is a reference to the thread and has no cost. It dereferences to the thread, so that a feature reads the
/// state and calls other features.
macro_rules! handle {
    ($(#[$doc:meta])* $visibility:vis struct $Handle:ident, $accessor:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        $visibility struct $Handle<'t>(pub(crate) &'t $crate::engine::thread::Thread);

        impl std::ops::Deref for $Handle<'_> {
            type Target = $crate::engine::thread::Thread;

            fn deref(&self) -> &Self::Target {
                self.0
            }
        }

        impl $crate::engine::thread::Thread {
            $(#[$doc])*
            $visibility fn $accessor(&self) -> $Handle<'_> {
                $Handle(self)
            }
        }
    };
}

pub(crate) use handle;

handle! {
    /// Changes of the conversation: forks, cuts and edits.
    pub(crate) struct History, history
}

handle! {
    /// Stopping, continuing, terminating and deleting a thread.
    pub(crate) struct Control, control
}

handle! {
    /// The context of a request to a model.
    pub(crate) struct ModelContext, model_context
}

handle! {
    /// The summaries of a thread.
    pub(crate) struct Summarizer, summarizer
}

handle! {
    /// The skills that a run has loaded.
    pub(crate) struct Skills, skills
}

handle! {
    /// Events about the progress of a run.
    pub(crate) struct Activity, activity
}

handle! {
    /// The diagnostics of runs.
    pub(crate) struct Diagnosis, diagnosis
}

handle! {
    /// The records of a thread: its messages and its log.
    pub(crate) struct Records, records
}

handle! {
    /// The files of a thread.
    pub(crate) struct Files, files
}

handle! {
    /// The values of a thread.
    pub(crate) struct KeyValues, key_values
}

handle! {
    /// The variables of a thread.
    pub(crate) struct Variables, variables
}

handle! {
    /// The scrubbing of texts before a thread stores them.
    pub(crate) struct Scrubbing, scrubbing
}

handle! {
    /// The memories of a thread.
    pub(crate) struct Memories, memories
}

handle! {
    /// The calls of a thread to MCP servers.
    pub(crate) struct McpClient, mcp
}

handle! {
    /// The hooks of a thread.
    pub(crate) struct Hooks, hooks
}

handle! {
    /// The scheduled effects of a thread.
    pub(crate) struct Effects, effects
}

handle! {
    /// The agent of a thread: hand-offs and changes by clients.
    pub(crate) struct ActiveAgent, active_agent
}

handle! {
    /// The waits of a thread: what its run is parked for.
    pub(crate) struct Waits, waits
}

handle! {
    /// Retry policies of models, tools and embeddings, and the pauses between attempts.
    pub(crate) struct Retries, retries
}

handle! {
    /// The budgets of runs and of their subagents.
    pub(crate) struct Budgets, budgets
}

handle! {
    /// The subagents of a thread.
    pub(crate) struct Subagents, subagents
}

handle! {
    /// The workers that a run leads.
    pub(crate) struct Delegates, delegates
}

handle! {
    /// The end of a family of threads, and the values that it shares.
    pub(crate) struct Descendants, descendants
}

handle! {
    /// Prompts that are called as tools.
    pub(crate) struct Subprompts, subprompts
}

handle! {
    /// The outbox of a thread: what it sends to other objects.
    pub(crate) struct Outbox, outbox
}

handle! {
    /// The trace contexts of runs.
    pub(crate) struct Traces, traces
}

handle! {
    /// The spans of a thread, and their export.
    pub(crate) struct Telemetry, telemetry
}
