//! Secrets in texts: [`redact`] finds known values, [`scrub`] finds texts that look like secrets.

#![forbid(unsafe_code)]

pub mod redact;
pub mod scrub;
