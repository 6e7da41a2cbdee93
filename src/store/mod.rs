//! See the crate.

pub(crate) mod attachment;
pub(crate) mod base64_text;
pub(crate) mod children;
pub(crate) mod effects;
pub(crate) mod file_path;
pub(crate) mod file_record;
pub(crate) mod files;
pub(crate) mod idempotency;
pub(crate) mod log;
pub(crate) mod messages;
pub(crate) mod parent;
pub(crate) mod receipts;
pub(crate) mod repeat;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod side;
pub(crate) mod state;
pub(crate) mod window;
