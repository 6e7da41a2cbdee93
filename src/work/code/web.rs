//! What the web has, for code that a model wrote: the modules that files of code have (isolate/web/), where the code
//! mentions what is in them.

use std::rc::Rc;

use crate::engine::Thread;
use crate::spec::WEB_HTTP;
use crate::work::code::fetch::fetch;
use crate::work::code::file::sleep;
use crate::work::sandbox::Function;
use crate::work::sandbox::Thrown;
use crate::work::sandbox::Value;

/// The modules, and the names of theirs that such code has.
const MODULES: [(&str, &[&str]); 5] = [
    ("http.js", &["fetch", "Headers", "Request", "Response"]),
    ("form.js", &["FormData"]),
    ("url.js", &["URL", "URLSearchParams"]),
    ("encoding.js", &["TextEncoder", "TextDecoder", "atob", "btoa"]),
    ("events.js", &["AbortController", "AbortSignal"]),
];

/// See the module.
pub(crate) struct Web {
    /// What brings the names in, as further statements; it stands behind the code, where it moves no line.
    pub(crate) imports: String,
    /// The modules that it names.
    pub(crate) modules: Vec<(String, String)>,
    /// A global, with its name: what the modules ask, or the one function that says that there is no network.
    pub(crate) global: (&'static str, Value),
}

impl Thread {
    /// What this code needs of it, to reach these hosts and no others.
    pub(crate) fn web(self: &Rc<Self>, code: &str, allowed_hosts: Vec<String>) -> Web {
        if allowed_hosts.is_empty() {
            return Web::closed(
                "fetch: no host can be reached from here: the prompt lists execute_code without `allowedHosts`.",
            );
        }
        let modules = self.catalog.modules_of(&[WEB_HTTP]);
        if modules.is_empty() {
            return Web::closed(
                "fetch: the catalog was built without the modules of the web; `npm start` and `npm run deploy` build it with them.",
            );
        }
        let imports = imports(code);
        let modules = if imports.is_empty() { Vec::new() } else { modules };
        let (fetch, abort) = fetch(self, allowed_hosts);
        let host = Value::Object(vec![
            ("fetch".to_owned(), fetch.into()),
            ("abort".to_owned(), abort.into()),
            ("sleep".to_owned(), sleep(self.sleep()).into()),
        ]);
        Web { imports, modules, global: ("host", host) }
    }
}

impl Web {
    /// There is no network: `fetch` says why.
    fn closed(why: &'static str) -> Web {
        let fetch = Function::new("fetch", move |_| {
            let refused = Thrown { name: "TypeError".to_owned(), ..Thrown::new(why) };
            Box::pin(async { Err(refused) })
        });
        Web { imports: String::new(), modules: Vec::new(), global: ("fetch", fetch.into()) }
    }
}

/// Imports of the names that the code mentions.
fn imports(code: &str) -> String {
    let word = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
    let mentions = |name: &&&str| code.split(|char| !word(char)).any(|found| found == **name);
    let line = |(module, names): &(&str, &[&str])| {
        let names: Vec<&str> = names.iter().filter(mentions).copied().collect();
        (!names.is_empty()).then(|| format!("; import {{ {} }} from \"./bobbin/{module}\"", names.join(", ")))
    };
    MODULES.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use crate::work::code::web::imports;

    #[test]
    fn code_imports_the_names_that_it_mentions() {
        assert_eq!(imports("return prefetch(URLs, $URL)"), "");
        assert_eq!(
            imports("const a = await fetch(new URL(x)); return a instanceof Response"),
            "; import { fetch, Response } from \"./bobbin/http.js\"; import { URL } from \"./bobbin/url.js\""
        );
    }
}
