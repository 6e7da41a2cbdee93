//! The files that definitions run in the sandbox: their names and contents.

use std::collections::BTreeMap;

use bobbin_definitions::definitions::{Catalog, Code, Implementation, Source, WEB_HTTP};
use bobbin_definitions::validate::Sources;
use serde::Deserialize;
use serde_json::Value;

use crate::files::Files;

/// Extensions of files that can run in the sandbox.
const EXTENSIONS: [&str; 5] = ["ts", "mts", "js", "mjs", "tsx"];

/// Endings of the stem for files that cannot run: declarations hold no code, and tests run elsewhere.
const ASIDE: [&str; 3] = [".d", ".test", ".spec"];

/// Returns whether a file can run in the sandbox. code.mjs beside this crate bundles these files.
pub(super) fn is_code(file: &str) -> bool {
    let aside = |name: &str| ASIDE.iter().any(|aside| name.ends_with(aside));
    is_beside(file) && file.rsplit_once('.').is_some_and(|(name, _)| !aside(name))
}

/// Returns whether a file is code or belongs to code.
pub(super) fn is_beside(file: &str) -> bool {
    file.rsplit_once('.').is_some_and(|(name, extension)| !name.is_empty() && EXTENSIONS.contains(&extension))
}

/// Replaces the file of `run.code` by its path below the folder of definitions. In the definition it is
/// relative to the definition's file. If the path leads out of that folder, the error is the field's value.
pub(super) fn locate(definition: &str, value: &mut Value) -> Result<(), String> {
    let Some(code) = value.pointer_mut("/run/code") else { return Ok(()) };
    let file = if code.is_object() { code.get_mut("file") } else { Some(code) };
    let Some(Value::String(file)) = file else { return Ok(()) };
    let mut path: Vec<&str> = definition.split('/').collect();
    path.pop();
    for step in file.split('/') {
        match step {
            "" | "." => {}
            ".." if path.pop().is_none() => {
                return Err(format!("{file} is not in the folder of definitions"));
            }
            ".." => {}
            step => path.push(step),
        }
    }
    *file = path.join("/");
    Ok(())
}

/// A bundled file from code.mjs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bundle {
    source: String,
    #[serde(default)]
    uses: Vec<String>,
    #[serde(default)]
    lines: Vec<(u32, String, u32)>,
    /// The exported names. Absent for the modules that provide the web's names.
    #[serde(default)]
    exports: Option<Vec<String>>,
}

impl From<Bundle> for Source {
    fn from(Bundle { source, uses, lines, .. }: Bundle) -> Source {
        Source { source, uses, lines }
    }
}

/// Adds the named files to the catalog, bundled or unchanged.
pub(super) fn gather(
    files: &Files,
    mut bundles: BTreeMap<String, Bundle>,
    catalog: &mut Catalog,
    sources: &mut Sources,
) {
    for (file, Bundle { exports, .. }) in &bundles {
        if let Some(exports) = exports {
            sources.insert_code(file, exports.clone());
        }
    }
    let mut wanted: Vec<String> = named(catalog).map(|code| code.file.clone()).collect();
    let answers = catalog.endpoints.values().any(|endpoint| matches!(endpoint.run, Implementation::Code(_)));
    if answers || catalog.lets_models_fetch() {
        // Endpoints receive a `Request` even if they do not name it. Code of models is not known yet and may
        // use any name.
        wanted.push(WEB_HTTP.to_owned());
    }
    while let Some(file) = wanted.pop() {
        if catalog.code.contains_key(&file) || !(is_code(&file)) {
            continue;
        }
        let raw = || files.raw(&file).map(|source| Source { source: source.to_owned(), ..Source::default() });
        // A missing file is reported where it is named.
        let Some(source) = bundles.remove(&file).map(Source::from).or_else(raw) else { continue };
        wanted.extend(source.uses.iter().cloned());
        catalog.code.insert(file, source);
    }
}

fn named(catalog: &Catalog) -> impl Iterator<Item = &Code> {
    let tools = catalog.tools.values().map(|tool| &tool.run);
    let effects = catalog.effects.values().map(|effect| &effect.run);
    let hooks = catalog.hooks.values().map(|hook| &hook.run);
    let endpoints = catalog.endpoints.values().map(|endpoint| &endpoint.run);
    tools.chain(effects).chain(hooks).chain(endpoints).filter_map(|run| match run {
        Implementation::Code(code) => Some(code),
        Implementation::Native(_)
        | Implementation::Http(_)
        | Implementation::Client(_)
        | Implementation::Mcp(_) => None,
    })
}
