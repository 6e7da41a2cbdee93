//! Running code (spec §17) from code that works in a thread.

use crate::error::Result;
use crate::sandbox::{CodeHandle, Function, Options, Thrown, Value};
use crate::sdk::ThreadState;

impl ThreadState {
    /// Runs an ES module in the sandbox (spec §17.1): TypeScript unless the options say otherwise, with nothing of the
    /// host's but what they give it. It starts at once; the handle gives its result, ends it, and must be held for as long
    /// as it is to run. There is no time limit: whoever wants one calls [`CodeHandle::terminate`].
    ///
    /// Whatever is wrong with the source or the options is a result, too.
    pub fn run_code(&self, source: &str, options: Options) -> CodeHandle {
        self.code_api().run_code(source, options)
    }
}

impl ThreadState {
    /// What this code needs to reach these hosts, and no others.
    pub(crate) fn web(&self, code: &str, allowed_hosts: Vec<String>) -> Web {
        self.code_api().web(code, allowed_hosts)
    }

    /// Names of what the prompt offers here.
    pub(crate) fn offered(&self) -> Result<Vec<String>> {
        self.code_api().offered()
    }
}

/// The thread behind it.
pub(crate) trait CodeApi {
    fn run_code(&self, source: &str, options: Options) -> CodeHandle;
    fn web(&self, code: &str, allowed_hosts: Vec<String>) -> Web;
    fn offered(&self) -> Result<Vec<String>>;
}

/// What code has of the web: modules, and the statements that bring their names in.
pub(crate) struct Web {
    /// Imports that bring the names in; they stand behind the code, where they move no line.
    pub(crate) imports: String,
    /// The modules that it names.
    pub(crate) modules: Vec<(String, String)>,
    /// A global, with its name: what the modules ask, or the one function that says that there is no network.
    pub(crate) global: (&'static str, Value),
}

impl Web {
    /// There is no network: `fetch` says why.
    pub(crate) fn closed(why: &'static str) -> Web {
        let fetch = Function::new("fetch", move |_| {
            let refused = Thrown { name: "TypeError".to_owned(), ..Thrown::new(why) };
            Box::pin(async { Err(refused) })
        });
        Web { imports: String::new(), modules: Vec::new(), global: ("fetch", fetch.into()) }
    }
}
