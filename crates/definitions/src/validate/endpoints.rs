//! Custom endpoints.

use crate::definitions::references::Kind;
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn endpoints(&mut self) {
        for (route, endpoint) in &self.catalog.endpoints {
            let name = route.to_string();
            let at = Subject { kind: Kind::Endpoint, name: &name };
            if let Some(hidden) = route.hides() {
                let of_thread = route.path.is_empty();
                let hint = if of_thread {
                    "the thread itself answers there, so put the file into a folder, such as `info/index`"
                } else {
                    "name the file or its folder otherwise"
                };
                let message = format!("{name} would hide the runtime's own {hidden}; {hint}");
                self.error(at, "", message);
            }
            self.run(at, &endpoint.run, &self.natives.endpoints, endpoint.timeout_ms);
            self.variables(at, &endpoint.variables);
        }
    }
}
