//! Bobbin's build tool, run by the scripts in the folder above: one subcommand, one module.

mod bindgen;

use std::process::ExitCode;

const USAGE: &str = "usage: bobbin-build <command>
  bindgen <input.wasm> <out folder>    generate the JavaScript side of the Worker's wasm
  catalog <agents folder> <out file>   compile the definitions of a folder";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["bindgen", input, out] => bindgen::run(input.as_ref(), out.as_ref()),
        // Replaced by the catalog compiler.
        ["catalog", _agents, out] => std::fs::write(out, "{}").map_err(Into::into),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
