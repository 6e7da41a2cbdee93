//! The tool `ask_user`: a question to a person, for whose answer the run waits (docs/approvals.md).

/// The tool's name.
pub const NAME: &str = "ask_user";

/// Answers that a question offers at most.
pub const CHOICES: usize = 10;

/// What a model reads about it.
pub const DESCRIPTION: &str = "Asks the person a question and waits for the answer, however long it takes. Use it when \
you cannot go on without knowing, not to confirm what you were told.";
