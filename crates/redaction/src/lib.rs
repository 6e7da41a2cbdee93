//! Secrets in texts: [`redact`] finds known values, [`scrub`] finds texts that look like secrets.

pub mod redact;
pub mod scrub;
