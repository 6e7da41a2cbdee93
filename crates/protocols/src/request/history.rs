//! Bounds of the `history` that is sent with a new thread. [`limits::HISTORY_BYTES`] bounds its bytes.

use bobbin_definitions::limits;

/// Approximate overhead of a stored message besides its text, bytes.
pub const ROW_BYTES: usize = 200;

/// Maximum number of messages, reached if their texts are empty.
pub const MESSAGES: usize = limits::HISTORY_BYTES / ROW_BYTES;
