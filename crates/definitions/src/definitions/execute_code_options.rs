//! Limits of `execute_code`: the `options` of the prompt's entry. Validation of the catalog uses the same
//! parser.

use std::fmt;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::validate::hint;

/// See docs/run-code.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum bytes of code.
    pub max_code_size: u64,
    /// Maximum bytes of the result and the output together.
    pub max_output_size: u64,
    /// Time limit in milliseconds.
    pub code_timeout_ms: u64,
    /// Maximum number of tool calls.
    pub max_tool_calls: u64,
    /// Hosts that `fetch` may reach.
    pub allowed_hosts: Vec<String>,
    /// The directory of the thread's files that the code may read and write.
    pub working_directory: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_code_size: 50 << 10,
            max_output_size: 1 << 20,
            code_timeout_ms: 60_000,
            max_tool_calls: 25,
            allowed_hosts: Vec::new(),
            working_directory: "/sandbox".to_owned(),
        }
    }
}

const NAMES: [&str; 6] =
    ["maxCodeSize", "maxOutputSize", "codeTimeoutMs", "maxToolCalls", "allowedHosts", "workingDirectory"];

/// An invalid option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongOption {
    /// Such as `allowedHosts[0]`.
    pub name: String,
    /// The error, and the valid values.
    pub why: String,
}

impl fmt::Display for WrongOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl Settings {
    /// Parses the options of an entry.
    ///
    /// # Errors
    /// All invalid options.
    pub fn of(options: &Map<String, Value>) -> Result<Settings, Vec<WrongOption>> {
        let mut settings = Settings::default();
        let mut wrong = Vec::new();
        for (name, value) in options {
            if let Err(error) = settings.take(name, value) {
                wrong.push(error);
            }
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    /// Hosts that the code may reach.
    pub fn allowed_hosts(&self) -> &[String] {
        &self.allowed_hosts
    }

    fn take(&mut self, name: &str, value: &Value) -> Result<(), WrongOption> {
        match name {
            "maxCodeSize" => self.max_code_size = whole(name, value, 1..=u64::MAX)?,
            "maxOutputSize" => self.max_output_size = whole(name, value, 0..=u64::MAX)?,
            "codeTimeoutMs" => self.code_timeout_ms = whole(name, value, 1..=600_000)?,
            "maxToolCalls" => self.max_tool_calls = whole(name, value, 0..=u64::MAX)?,
            "allowedHosts" => self.allowed_hosts = hosts(name, value)?,
            "workingDirectory" => self.working_directory = directory(name, value)?,
            _ => return Err(wrong(name, format!("there is no such option{}", hint(name, &NAMES)))),
        }
        Ok(())
    }
}

fn wrong(name: &str, why: impl Into<String>) -> WrongOption {
    WrongOption { name: name.to_owned(), why: why.into() }
}

fn whole(name: &str, value: &Value, allowed: RangeInclusive<u64>) -> Result<u64, WrongOption> {
    value.as_u64().filter(|number| allowed.contains(number)).ok_or_else(|| {
        let (least, most) = (allowed.start(), allowed.end());
        wrong(
            name,
            match *most {
                u64::MAX => format!("must be a whole number, {least} or more, not {value}"),
                _ => format!("must be a whole number from {least} to {most}, not {value}"),
            },
        )
    })
}

fn hosts(name: &str, value: &Value) -> Result<Vec<String>, WrongOption> {
    let listed = value.as_array().ok_or_else(|| wrong(name, "must be a list of hosts"))?;
    let host = |(index, host): (usize, &Value)| {
        let at = format!("{name}[{index}]");
        let host = host.as_str().ok_or_else(|| wrong(&at, "must be a text"))?;
        match wrong_host(host) {
            Some(why) => Err(wrong(&at, why)),
            None => Ok(host.to_owned()),
        }
    };
    listed.iter().enumerate().map(host).collect()
}

/// Normalizes the path, because the code's paths are compared with it.
fn directory(name: &str, value: &Value) -> Result<String, WrongOption> {
    let path = value.as_str().filter(|path| path.starts_with('/')).unwrap_or(".");
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| matches!(*part, "." | "..") || part.contains(char::is_control)) {
        return Err(wrong(name, "must be an absolute path without `.` and `..`, such as `/sandbox`"));
    }
    Ok(format!("/{}", parts.join("/")))
}

/// The error for an invalid host; `None` for a valid one.
pub fn wrong_host(host: &str) -> Option<String> {
    let message = || {
        format!("“{host}” is no host: write it as in `api.example.com`, `localhost:8080` or `*.example.com`")
    };
    (!is_host(host)).then(message)
}

/// Whether a text is a name or an address, with or without a port, or a wildcard below a name.
pub fn is_host(text: &str) -> bool {
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
