//! The compile step of `runCode` (specification, section 17). TypeScript becomes ECMAScript by erasing its
//! types in place. The modules of a call are linked before any of them runs, so that every error has its line
//! and column in the caller's source.
//!
//! Nothing is evaluated or type-checked, and there is no state between calls.
//!
//! # Layout
//!
//! | file | concept |
//! |---|---|
//! | `request.rs` | the JSON of requests and answers |
//! | `module.rs` | one module: parser, scopes, eraser |
//! | `body.rs` | turns a model's code, which may be the body of a function, into a module |
//! | `erase/` | types become white space; other TypeScript becomes code on its own line |
//! | `edits.rs` | edits of a text that keep everything else in place |
//! | `text.rs` | positions in a text, tokens, comments |
//! | `record.rs` | the imports and exports of a module |
//! | `resolve.rs` | finds the module for a specifier |
//! | `link.rs` | checks that every imported name exists |
//! | `keyed.rs` | links for an engine that resolves specifiers itself |
//! | `emit.rs` | the text for the engine |
//! | `abi.rs` | the entries of the wasm |
//!
//! # The wasm
//!
//! Exports: `memory`, and these functions. All numbers are `i32`, except the packed `i64` (in JavaScript a
//! `BigInt`):
//!
//! | export | meaning |
//! |---|---|
//! | `alloc(length) → at` | allocates a request; 0: no memory |
//! | `dealloc(at, length)` | frees a request or an answer |
//! | `compile(at, length) → at << 32 \| length` | [`compile_json`]; the answer is UTF-8 |
//! | `resolve(at, length) → at << 32 \| length` | [`resolve_json`], in the same format |
//!
//! Imports: none. The memory may grow in any of them, so create new views of it after each call. A source
//! that is nested deeper than the stack allows traps and leaves the instance unusable: the caller drops it.
//! In V8 with its usual stack that takes more than 400 nested classes or namespaces, 800 parentheses, or
//! 3,000 members of a chain.
//!
//! ```js
//! const { memory, alloc, dealloc, compile } = instance.exports;
//! const request = new TextEncoder().encode(JSON.stringify(call));
//! const at = alloc(request.length);
//! new Uint8Array(memory.buffer, at, request.length).set(request);
//! const packed = BigInt.asUintN(64, compile(at, request.length));
//! const [from, length] = [Number(packed >> 32n), Number(packed & 0xffffffffn)];
//! const answer = JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, from, length)));
//! dealloc(from, length);
//! dealloc(at, request.length);
//! ```
//!
//! # Requests and answers
//!
//! [`Request`] → [`Answer`] or `{"error": `[`CompileError`]`}`; [`ResolveRequest`] → [`Resolved`] or the
//! same.
#![deny(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod abi;
mod body;
mod edits;
mod emit;
mod erase;
mod error;
mod keyed;
mod link;
mod module;
mod record;
mod request;
mod resolve;
mod text;

pub use edits::Moved;
pub use error::{CompileError, ErrorKind};
pub use request::{Answer, Compiled, Form, Language, Links, Main, Request, ResolveRequest, Resolved};

use request::Reply;

/// The limit on all sources of a call together, in bytes.
pub const MAX_SOURCE_BYTES: usize = 5 * 1024 * 1024;

/// Compiles and links the modules of one call.
///
/// # Errors
/// The first error: of the request, then of each module's text in order, then of the links between them.
pub fn compile(request: &Request) -> Result<Answer, CompileError> {
    let size =
        request.main.source.len() + request.modules.iter().map(|(_, source)| source.len()).sum::<usize>();
    if size > MAX_SOURCE_BYTES {
        return Err(CompileError::invalid(format!(
            "the sources have {size} bytes together, and {MAX_SOURCE_BYTES} are allowed"
        )));
    }
    let resolver = resolve::Resolver::new(request)?;
    let globals = emit::Globals::new(&request.globals)?;
    let read = |name: &str, source, language, form| {
        module::read(name, source, language, form)
            .map_err(|mistake| mistake.locate(text::Source(source), name))
    };
    let main = &request.main;
    let mut modules = vec![read(&main.filename, &main.source, main.language, main.form)?];
    for (specifier, source) in &request.modules {
        let name = resolve::name(specifier);
        modules.push(read(&name, source, resolve::language(&name, main.language), Form::Module)?);
    }
    let linked = link::Linker::new(&resolver, &request.imports, modules).link(&request.export)?;
    let keys = match request.links {
        Links::Written => None,
        Links::Keyed => {
            let names = linked.iter().map(|linked| linked.module.name.as_str());
            Some(keyed::Keys::new(names, request.imports.keys()))
        }
    };
    let modules = linked.into_iter().map(|linked| emit::write(linked, &globals, keys.as_ref()));
    let modules = modules.collect::<Result<_, _>>()?;
    Ok(Answer { modules, keys: keys.map(keyed::Keys::into_list).unwrap_or_default() })
}

/// [`compile`] from JSON to JSON.
pub fn compile_json(request: &[u8]) -> String {
    answer_json(request, |request| compile(&request))
}

/// Resolves a specifier that `import()` computed at run time, from JSON to JSON, by the rules of [`compile`].
pub fn resolve_json(request: &[u8]) -> String {
    answer_json(request, resolve::at_run_time)
}

fn answer_json<Q: serde::de::DeserializeOwned, A: serde::Serialize>(
    request: &[u8],
    answer: impl FnOnce(Q) -> Result<A, CompileError>,
) -> String {
    let result = serde_json::from_slice(request)
        .map_err(|error| CompileError::invalid(format!("the request is malformed: {error}")))
        .and_then(answer);
    serde_json::to_string(&Reply::from(result)).unwrap_or_else(|_| {
        // Only strings and numbers, which JSON can always represent.
        r#"{"error":{"name":"InvalidOptions","message":"the answer cannot be written"}}"#.to_owned()
    })
}
