//! Files for a model's code, limited to its working directory.

use std::rc::Rc;

use crate::sandbox::{Exception, Function, Value};
use crate::sdk::ThreadState;
use crate::store::file_record::FileOptions;

type FileFunction = fn(&ThreadState, &str, Option<&Value>) -> Result<Value, Exception>;

/// The global `files`: `read`, `write`, `list`.
pub(super) fn door(state: &ThreadState, directory: &str) -> Value {
    let directory: Rc<str> = Rc::from(directory.trim_end_matches('/'));
    let function = |name: &'static str, act: FileFunction| {
        let (state, directory) = (state.clone(), directory.clone());
        let function = Function::new(name, move |args| {
            let path = args.first().and_then(Value::text).unwrap_or_default();
            let done =
                within(&directory, path).and_then(|path| match path == *directory && name == "write" {
                    // A file in place of the directory would block all others.
                    true => Err(Exception::new(format!(
                        "files.write(): “{path}” is the working directory; name a file in it."
                    ))),
                    false => act(&state, &path, args.get(1)),
                });
            Box::pin(std::future::ready(done))
        });
        (name.to_owned(), Value::from(function))
    };
    Value::Object(vec![function("read", read), function("write", write), function("list", list)])
}

fn read(state: &ThreadState, path: &str, _: Option<&Value>) -> Result<Value, Exception> {
    match state.read_file(path)? {
        None => Ok(Value::Null),
        Some(bytes) => match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(Exception::new(format!("{path} is no text."))),
        },
    }
}

fn write(state: &ThreadState, path: &str, content: Option<&Value>) -> Result<Value, Exception> {
    let Some(text) = content.and_then(Value::text) else {
        return Err(Exception::new("files.write(path, text): the text must be a string."));
    };
    state.write_file(path, text, "text/plain", FileOptions::default())?;
    Ok(Value::Undefined)
}

fn list(state: &ThreadState, path: &str, _: Option<&Value>) -> Result<Value, Exception> {
    let entries = state.readdir_file(path)?;
    let name = |path: &str, is_directory| if is_directory { format!("{path}/") } else { path.to_owned() };
    Ok(Value::Array(
        entries.iter().map(|entry| Value::String(name(&entry.path, entry.is_directory))).collect(),
    ))
}

/// Resolves a path against the directory. An absolute path must be below it.
fn within(directory: &str, path: &str) -> Result<String, Exception> {
    let refused =
        || Exception::new(format!("The path “{path}” is not below {directory}, where this code may work."));
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{directory}/{path}") };
    let mut steps: Vec<&str> = Vec::new();
    for step in whole.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop().ok_or_else(refused)?;
            }
            step => steps.push(step),
        }
    }
    let plain = format!("/{}", steps.join("/"));
    let below = plain.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if below { Ok(plain) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use crate::work::native::tools::execute::files::within;

    #[test]
    fn no_path_leads_out_of_the_working_directory() {
        for (path, whole) in [
            ("a.txt", "/sandbox/a.txt"),
            ("x//y/./a.txt", "/sandbox/x/y/a.txt"),
            ("/sandbox/a.txt", "/sandbox/a.txt"),
            ("x/../a.txt", "/sandbox/a.txt"),
            ("", "/sandbox"),
            ("/sandbox/", "/sandbox"),
        ] {
            assert_eq!(within("/sandbox", path).unwrap(), whole, "{path}");
        }
        for path in [
            "/",
            "/etc/a",
            "../a",
            "x/../../a",
            "/sandbox/../a",
            "/sandboxes/a",
            "/../sandbox2/a",
            "../../../..",
        ] {
            assert!(within("/sandbox", path).is_err(), "{path}");
        }
    }
}
