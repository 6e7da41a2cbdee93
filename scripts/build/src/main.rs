//! Bobbin's build tool, run by the scripts in the folder above: one subcommand, one module.

mod bindgen;
mod catalog;
mod fuel;
mod openapi;
mod schemas;

use std::process::ExitCode;

const USAGE: &str = "usage: bobbin-build <command>
  bindgen <input.wasm> <out folder>    generate the JavaScript side of the Worker's wasm
  catalog [--strict] [--own-natives] <agents folder> <out file> [<bundles file>]
                                       compile the definitions of a folder; --strict: warnings count as errors;
                                       --own-natives: a crate of one's own registers natives that are not here;
                                       bundles: code with its dependencies (scripts/code.mjs)
  fuel [--quickjs] <input.wasm> <output.wasm>
                                       make a module that its host can stop anywhere; --quickjs: the sandbox's engine
  openapi [--check]                    write the description of the HTTP API, or tell whether it is fresh
  schemas [--check]                    write the JSON Schemas of definition files, or tell whether they are fresh";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["bindgen", input, out] => bindgen::run(input.as_ref(), out.as_ref()),
        ["catalog", rest @ ..] => {
            let (flags, places): (Vec<&str>, Vec<&str>) = rest.iter().partition(|arg| arg.starts_with("--"));
            let settings = catalog::Settings {
                strict: flags.contains(&"--strict"),
                own_natives: flags.contains(&"--own-natives"),
            };
            let known = flags.iter().all(|flag| ["--strict", "--own-natives"].contains(flag));
            match places.as_slice() {
                [agents, out] if known => catalog::run(agents.as_ref(), out.as_ref(), None, settings),
                [agents, out, bundles] if known => {
                    catalog::run(agents.as_ref(), out.as_ref(), Some(bundles.as_ref()), settings)
                }
                _ => return usage(),
            }
        }
        ["fuel", "--quickjs", input, out] => fuel::run(fuel::Kind::QuickJs, input.as_ref(), out.as_ref()),
        ["fuel", input, out] => fuel::run(fuel::Kind::Plain, input.as_ref(), out.as_ref()),
        ["openapi"] => openapi::run(false),
        ["openapi", "--check"] => openapi::run(true),
        ["schemas"] => schemas::run(false),
        ["schemas", "--check"] => schemas::run(true),
        _ => return usage(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
