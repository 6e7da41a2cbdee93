//! Custom endpoints.

use crate::spec::references::Kind;
use crate::validate::{Check, Place};

impl Check<'_> {
    pub(crate) fn endpoints(&mut self) {
        for (route, endpoint) in &self.catalog.endpoints {
            let name = route.to_string();
            let at = Place { kind: Kind::Endpoint, name: &name };
            if let Some(hidden) = route.hides() {
                let message = format!(
                    "{name} would hide the runtime's own {hidden}; name the file or its folder otherwise"
                );
                self.error(at, "", message);
            }
            self.run(at, &endpoint.run, &self.natives.endpoints, endpoint.timeout_ms);
            self.variables(at, &endpoint.variables);
        }
    }
}
