//! Running code (spec §17) from code that works in a thread.

use crate::error::Result;
use crate::sandbox::{CodeHandle, Exception, Function, Options, Value};
use crate::sdk::ThreadState;

impl ThreadState {
    /// Runs an ES module in the sandbox (spec §17.1), as TypeScript unless the options say otherwise. It can
    /// use only what the options give it. It starts at once. The handle returns its result and can end it;
    /// keep the handle for as long as the code is to run. There is no time limit; use
    /// [`CodeHandle::terminate`].
    ///
    /// Errors in the source or the options are results, too.
    pub fn run_code(&self, source: &str, options: Options) -> CodeHandle {
        self.code_api().run_code(source, options)
    }
}

impl ThreadState {
    /// Network access of this code, limited to these hosts.
    pub(crate) fn web(&self, code: &str, allowed_hosts: Vec<String>) -> Web {
        self.code_api().web(code, allowed_hosts)
    }

    /// Names of everything that the prompt offers here.
    pub(crate) fn offered(&self) -> Result<Vec<String>> {
        self.code_api().offered()
    }
}

/// The thread's side of running code.
pub(crate) trait CodeApi {
    fn run_code(&self, source: &str, options: Options) -> CodeHandle;
    fn web(&self, code: &str, allowed_hosts: Vec<String>) -> Web;
    fn offered(&self) -> Result<Vec<String>>;
}

/// Network access of code: modules, and statements that import them.
pub(crate) struct Web {
    /// Imports of the modules. They come after the code, so that its line numbers stay the same.
    pub(crate) imports: String,
    /// The imported modules, by name.
    pub(crate) modules: Vec<(String, String)>,
    /// A global and its name: the host function behind the modules, or a `fetch` that always fails.
    pub(crate) global: (&'static str, Value),
}

impl Web {
    /// No network: `fetch` fails with the reason.
    pub(crate) fn closed(why: &'static str) -> Web {
        let fetch = Function::new("fetch", move |_| {
            let refused = Exception { name: "TypeError".to_owned(), ..Exception::new(why) };
            Box::pin(async { Err(refused) })
        });
        Web { imports: String::new(), modules: Vec::new(), global: ("fetch", fetch.into()) }
    }
}
