//! Bobbin's build tool, called by the scripts in the folder above. Each subcommand is a module.

mod bindgen;
mod catalog;
mod fuel;
mod schemas;

use std::process::ExitCode;

const USAGE: &str = "usage: bobbin-build <command>
  bindgen <input.wasm> <out folder>    generate the JavaScript side of the Worker's wasm
  catalog <request file> <answer file>
                                       compile definitions that scripts have read (package/compiler/src/request.rs)
  fuel [--quickjs] <input.wasm> <output.wasm>
                                       make a module that its host can stop anywhere; --quickjs: the sandbox's engine
  schemas [--check]                    write the JSON Schemas of definition files, or tell whether they are fresh";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["bindgen", input, out] => bindgen::run(input.as_ref(), out.as_ref()),
        ["catalog", request, answer] => catalog::run(request.as_ref(), answer.as_ref()),
        ["fuel", "--quickjs", input, out] => fuel::run(fuel::Kind::QuickJs, input.as_ref(), out.as_ref()),
        ["fuel", input, out] => fuel::run(fuel::Kind::Plain, input.as_ref(), out.as_ref()),
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
