//! Files that run in the sandbox.

use super::names::hint;
use super::{Check, Place};
use crate::spec::tool::Code;

impl Check<'_> {
    pub(super) fn code(&mut self, at: Place<'_>, code: &Code) {
        if !self.catalog.code.contains_key(&code.file) {
            let known: Vec<&str> = self.catalog.code.keys().map(String::as_str).collect();
            let hint = hint(&code.file, &known);
            self.error(at, "run.code", format!("there is no file {}{hint}", code.file));
        }
        if code.memory_limit_bytes == Some(0) {
            self.error(at, "run.code.memoryLimitBytes", "must be a positive number");
        }
        for (index, host) in code.allowed_hosts.iter().enumerate() {
            if let Some(wrong) = wrong_host(host) {
                self.error(at, format!("run.code.allowedHosts[{index}]"), wrong);
            }
        }
    }
}

/// What is wrong with a host that code may reach.
pub(crate) fn wrong_host(host: &str) -> Option<String> {
    let message = || {
        format!("“{host}” is no host: write it as in `api.example.com`, `localhost:8080` or `*.example.com`")
    };
    (!is_host(host)).then(message)
}

/// A name or an address, with or without a port, or everything below a name.
fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let (name, port) = match name.rsplit_once(':') {
        Some((name, port)) if !name.ends_with(':') && (!name.contains(':') || name.ends_with(']')) => {
            (name, Some(port))
        }
        _ => (name, None),
    };
    let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let name_fits = match bare {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c)),
    };
    port_fits && name_fits
}
