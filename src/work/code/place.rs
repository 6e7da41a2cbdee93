//! The position of an error of sandboxed code in the deployment's own files.

use crate::definitions::Catalog;
use crate::sandbox::CodeError;

/// The modules with web APIs. An error in them is attributed to the caller.
const WEB: &str = "bobbin/";

/// The innermost position in the deployment's own files, as `tools/x.ts:5`. Packages and the runtime's
/// modules are skipped. If only those appear, the file that bundles them is named without a line.
pub(super) fn place(catalog: &Catalog, error: &CodeError) -> Option<String> {
    let own = error.filename.as_deref().zip(error.line);
    let stack = error.stack.as_deref().unwrap_or_default().lines().filter_map(frame);
    let mut within = None;
    for (file, line) in own.into_iter().chain(stack).filter(|(file, _)| !file.starts_with(WEB)) {
        let Some(source) = catalog.code.get(file) else { continue };
        match source.origin(file, line) {
            Some((file, line)) => return Some(format!("{file}:{line}")),
            None => within = within.or(Some(file)),
        }
    }
    within.map(str::to_owned)
}

/// Parses a line of a stack: `    at name (file:line:column)`.
fn frame(text: &str) -> Option<(&str, u32)> {
    let (_, place) = text.strip_suffix(')')?.rsplit_once(" (")?;
    let (place, _) = place.rsplit_once(':')?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::definitions::{Catalog, Source};
    use crate::sandbox::CodeError;
    use crate::work::code::place::place;

    /// An unbundled file, and a bundle: line 1 is imported, 2 and 3 are lines 7 and 8 of another file, 4 to 9
    /// are a package's, and the rest are its own.
    fn catalog() -> Catalog {
        let bundle = Source {
            lines: vec![(2, "lib/y.ts".into(), 7), (4, String::new(), 0), (10, "tools/b.ts".into(), 3)],
            ..Source::default()
        };
        let code = [("tools/a.ts".to_owned(), Source::default()), ("tools/b.ts".to_owned(), bundle)];
        Catalog { code: BTreeMap::from(code), ..Catalog::default() }
    }

    #[test]
    fn an_error_is_placed_in_the_innermost_file_of_the_deployments_own() {
        for (own, stack, expected) in [
            (Some(("tools/a.ts", 4)), "", Some("tools/a.ts:4")),
            (Some(("tools/b.ts", 3)), "", Some("lib/y.ts:8")),
            (Some(("tools/b.ts", 12)), "", Some("tools/b.ts:5")),
            (
                Some(("tools/b.ts", 6)),
                "E: x\n    at f (tools/b.ts:6:1)\n    at g (tools/b.ts:10:2)",
                Some("tools/b.ts:3"),
            ),
            (Some(("tools/b.ts", 6)), "E: a (tools/a.ts:x:1)\n    at f (tools/b.ts:6:1)", Some("tools/b.ts")),
            (
                Some(("bobbin/url.js", 1)),
                "E: x\n    at URL (bobbin/url.js:1:9)\n    at f (tools/a.ts:2:9)",
                Some("tools/a.ts:2"),
            ),
            (Some(("tools/b.ts", 1)), "", Some("tools/b.ts")),
            (Some(("<bobbin>", 9)), "    at default (<bobbin>:9:1)", None),
            (None, "", None),
        ] {
            let error = CodeError {
                line: own.map(|(_, line)| line),
                filename: own.map(|(file, _)| file.to_owned()),
                stack: Some(stack.to_owned()),
                ..CodeError::default()
            };
            assert_eq!(place(&catalog(), &error).as_deref(), expected, "{own:?} {stack}");
        }
    }
}
