//! The options of `runCode` (spec §17.2).

use serde::Serialize;

use crate::definitions::tool::Engine;
use crate::limits;
use crate::sandbox::result::CodeError;
use crate::sandbox::value::{Function, Value};

/// The language of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Types are erased, not checked.
    #[default]
    Typescript,
    /// Unchanged.
    Javascript,
}

/// The form of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A module.
    #[default]
    Module,
    /// The body of an async function, a function, or a module, as models write it. A function is called.
    /// Without a `return` the value of the last expression is the result. A result that cannot be copied is
    /// described as text.
    Body,
}

/// Values that the code reports before it ends.
#[derive(Clone, Debug, Default)]
pub enum Reports {
    /// None.
    #[default]
    No,
    /// By `report(value)`, a name at module scope. They are in the result.
    Kept,
    /// Like `Kept`, and this function is called with each value as it arrives.
    Told(Function),
}

/// An error in the options. The text names the option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongOptions(String);

impl From<WrongOptions> for CodeError {
    fn from(wrong: WrongOptions) -> CodeError {
        CodeError::new("InvalidCodeExecutionOptions", wrong.0)
    }
}

fn wrong(message: impl Into<String>) -> WrongOptions {
    WrongOptions(message.into())
}

/// The options of a run. Omitted ones have defaults.
#[derive(Clone)]
pub struct Options {
    /// The engine that runs the code.
    pub engine: Engine,
    /// Language of the source and its modules.
    pub language: Language,
    /// Form of the source.
    pub form: Form,
    /// The exported function to run.
    pub function: String,
    /// Its arguments; only for a function.
    pub args: Vec<Value>,
    /// Modules of the host, by bare specifier, with their exports.
    pub imports: Vec<(String, Vec<(String, Value)>)>,
    /// Modules of source, by relative specifier.
    pub modules: Vec<(String, String)>,
    /// Names at module scope.
    pub globals: Vec<(String, Value)>,
    /// Bytes of heap; 16 MB by default, and at most 64 MB: larger values are lowered to that.
    pub memory_limit_bytes: f64,
    /// Name of the source, for errors and `import.meta.url`.
    pub filename: String,
    /// Whether the code can report values.
    pub report: Reports,
    /// Maximum fuel, in loop iterations and calls of the engine (docs/run-code.md); unlimited by default.
    pub fuel: Option<u64>,
    /// Whether the result waits until no call to a host function is active. Otherwise calls that the code did
    /// not await end with it.
    pub awaits_calls: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            engine: Engine::default(),
            language: Language::default(),
            form: Form::default(),
            function: "default".to_owned(),
            args: Vec::new(),
            imports: Vec::new(),
            modules: Vec::new(),
            globals: Vec::new(),
            memory_limit_bytes: limits::CODE_MEMORY_BYTES as f64,
            filename: "<runCode>".to_owned(),
            report: Reports::default(),
            fuel: None,
            awaits_calls: false,
        }
    }
}

impl Options {
    /// Adds a name at module scope.
    #[must_use]
    pub fn global(mut self, name: &str, value: impl Into<Value>) -> Options {
        self.globals.push((name.to_owned(), value.into()));
        self
    }

    /// Validates the options. The compiler checks the names of modules and exports.
    pub(super) fn check(&self) -> Result<(), WrongOptions> {
        let limit = self.memory_limit_bytes;
        if !(limit.is_finite() && limit > 0.0) {
            return Err(wrong(format!("memoryLimitBytes must be a positive number, not {limit}.")));
        }
        if self.function.trim().is_empty() {
            return Err(wrong("execute.fn must name an export."));
        }
        if self.filename.is_empty() {
            return Err(wrong("filename must not be empty."));
        }
        for (name, _) in &self.globals {
            if !is_identifier(name) {
                return Err(wrong(format!("globals: “{name}” is no name of a variable.")));
            }
        }
        Ok(())
    }

    /// Parses the options of a call from sandboxed code (`state.runCode`).
    ///
    /// # Errors
    /// The error names the option.
    pub fn from_value(value: Value) -> Result<Options, WrongOptions> {
        let mut options = Options::default();
        for (key, value) in object("the options", value)? {
            if matches!(value, Value::Undefined) {
                continue;
            }
            match key.as_str() {
                "language" => options.language = language(&value)?,
                "engine" => options.engine = engine(&value)?,
                "execute" => options.execute(value)?,
                "imports" => {
                    for (specifier, namespace) in object("imports", value)? {
                        let namespace = object(&format!("imports[\"{specifier}\"]"), namespace)?;
                        options.imports.push((specifier, namespace));
                    }
                }
                "modules" => {
                    for (specifier, source) in object("modules", value)? {
                        let source = text(&format!("modules[\"{specifier}\"]"), source)?;
                        options.modules.push((specifier, source));
                    }
                }
                "globals" => options.globals = object("globals", value)?,
                "memoryLimitBytes" => options.memory_limit_bytes = number("memoryLimitBytes", &value)?,
                "fuel" => options.fuel = Some(number("fuel", &value)?.max(1.0) as u64),
                "filename" => options.filename = text("filename", value)?,
                "report" => {
                    options.report = match value {
                        Value::Function(report) => Reports::Told(report),
                        _ => return Err(wrong("report must be a function.")),
                    };
                }
                _ => return Err(wrong(format!("There is no option “{key}”."))),
            }
        }
        Ok(options)
    }

    fn execute(&mut self, value: Value) -> Result<(), WrongOptions> {
        for (key, value) in object("execute", value)? {
            match (key.as_str(), value) {
                (_, Value::Undefined) => {}
                ("fn", value) => self.function = text("execute.fn", value)?,
                ("args", Value::Array(args)) => self.args = args,
                ("args", _) => return Err(wrong("execute.args must be an array.")),
                (key, _) => return Err(wrong(format!("There is no option “execute.{key}”."))),
            }
        }
        Ok(())
    }
}

fn object(what: &str, value: Value) -> Result<Vec<(String, Value)>, WrongOptions> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(wrong(format!("{what} must be an object."))),
    }
}

fn text(what: &str, value: Value) -> Result<String, WrongOptions> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(wrong(format!("{what} must be a string."))),
    }
}

fn number(what: &str, value: &Value) -> Result<f64, WrongOptions> {
    match value {
        Value::Number(number) => Ok(*number),
        _ => Err(wrong(format!("{what} must be a positive number."))),
    }
}

fn language(value: &Value) -> Result<Language, WrongOptions> {
    match value.text() {
        Some("typescript") => Ok(Language::Typescript),
        Some("javascript") => Ok(Language::Javascript),
        _ => Err(wrong("language must be \"typescript\" or \"javascript\".")),
    }
}

fn engine(value: &Value) -> Result<Engine, WrongOptions> {
    match value.text() {
        Some("quickjs") => Ok(Engine::Quickjs),
        Some("v8") => Ok(Engine::V8),
        _ => Err(wrong("engine must be \"quickjs\" or \"v8\".")),
    }
}

/// Whether a name can be a variable's. The compiler finds reserved words.
fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let starts = |first: char| first == '$' || first == '_' || first.is_alphabetic();
    chars.next().is_some_and(starts) && chars.all(|char| starts(char) || char.is_numeric())
}
