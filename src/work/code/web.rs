//! Web APIs for code that a model wrote: the modules that files of code have (isolate/web/), as far as the
//! code mentions their names.

use std::rc::Rc;

use crate::definitions::WEB_HTTP;
use crate::sandbox::Value;
use crate::sdk::code::Web;
use crate::work::WorkContext;
use crate::work::code::fetch::fetch;
use crate::work::code::file::sleep;

/// The modules, and their names for such code.
const MODULES: [(&str, &[&str]); 5] = [
    ("http.js", &["fetch", "Headers", "Request", "Response"]),
    ("form.js", &["FormData"]),
    ("url.js", &["URL", "URLSearchParams"]),
    ("encoding.js", &["TextEncoder", "TextDecoder", "atob", "btoa"]),
    ("events.js", &["AbortController", "AbortSignal"]),
];

/// The network access of this code, limited to these hosts.
pub(crate) fn web(context: &Rc<dyn WorkContext>, code: &str, allowed_hosts: Vec<String>) -> Web {
    if allowed_hosts.is_empty() {
        return Web::closed(
            "fetch: no host can be reached from here: the prompt lists execute_code without `allowedHosts`.",
        );
    }
    let modules = context.catalog().modules_of(&[WEB_HTTP]);
    if modules.is_empty() {
        return Web::closed(
            "fetch: the catalog was built without the modules of the web; `npm start` and `npm run deploy` build it with them.",
        );
    }
    let imports = imports(code);
    let modules = if imports.is_empty() { Vec::new() } else { modules };
    let (fetch, abort) = fetch(context, allowed_hosts);
    let host = Value::Object(vec![
        ("fetch".to_owned(), fetch.into()),
        ("abort".to_owned(), abort.into()),
        ("sleep".to_owned(), sleep(context.sleep()).into()),
    ]);
    Web { imports, modules, global: ("host", host) }
}

/// Imports of the names that the code mentions.
fn imports(code: &str) -> String {
    let word = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
    let mentions = |name: &&&str| code.split(|char| !word(char)).any(|found| found == **name);
    let line = |(module, names): &(&str, &[&str])| {
        let names: Vec<&str> = names.iter().filter(mentions).copied().collect();
        (!names.is_empty()).then(|| format!("import {{ {} }} from \"./bobbin/{module}\"; ", names.join(", ")))
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
            "import { fetch, Response } from \"./bobbin/http.js\"; import { URL } from \"./bobbin/url.js\"; "
        );
    }
}
