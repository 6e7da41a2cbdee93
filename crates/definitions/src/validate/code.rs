//! Files that run in the sandbox.

use crate::definitions::execute_code_options::wrong_host;
use crate::definitions::tool::Code;
use crate::names::hint;
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn code(&mut self, at: Subject<'_>, code: &Code) {
        if !self.catalog.code.contains_key(&code.file) {
            let hint = hint(&code.file, &self.code_files(&code.file));
            self.error(at, "run.code", format!("there is no file {}{hint}", code.file));
        } else if let Some(exports) = self.sources.code.get(&code.file)
            && !exports.iter().any(|name| name == "default")
        {
            let named = match exports.as_slice() {
                [] => "it exports nothing".to_owned(),
                names => format!("it exports {}", names.join(", ")),
            };
            let text = format!(
                "{} has no default export, which is the function that is called ({named}): write `export default`",
                code.file
            );
            self.error(at, "run.code", text);
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

impl Check<'_> {
    /// Candidates for a hint: files with the same name, else in the same folder, else all.
    fn code_files(&self, wanted: &str) -> Vec<&str> {
        let folder = |file: &str| file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let known = self.catalog.code.keys().chain(self.sources.code.keys()).map(String::as_str);
        let mut all: Vec<&str> = known.filter(|file| !file.starts_with(RESERVED_FOLDER)).collect();
        all.sort_unstable();
        all.dedup();
        // The same name in another folder is nearer than another name of the same length.
        let name = |file: &str| file.rsplit('/').next().map(str::to_owned);
        let namesakes: Vec<&str> = all.iter().copied().filter(|file| name(file) == name(wanted)).collect();
        let beside: Vec<&str> = all.iter().copied().filter(|file| folder(file) == folder(wanted)).collect();
        [namesakes, beside, all].into_iter().find(|files| !files.is_empty()).unwrap_or_default()
    }
}

/// Folder of the modules with web APIs.
const RESERVED_FOLDER: &str = "bobbin/";
