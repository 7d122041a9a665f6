//! Expansion target of `#[opkit::main]`. Not part of the API.

use std::future::Future;
use std::process::ExitCode;
use std::sync::OnceLock;

use opkit_controller::Error;

static VERSION: OnceLock<&'static str> = OnceLock::new();

/// Returns the version of the binary's package, if `#[opkit::main]` set it.
pub(crate) fn version() -> Option<&'static str> {
    VERSION.get().copied()
}

/// Runs `main` on a tokio runtime. An error is printed in one line and becomes exit code 1.
#[doc(hidden)]
#[expect(clippy::print_stderr, reason = "this is the end of the process")]
pub fn main<F>(version: &'static str, main: impl FnOnce() -> F) -> ExitCode
where
    F: Future<Output = Result<(), Error>>,
{
    let _ = VERSION.set(version);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match &runtime {
        Ok(runtime) => runtime.block_on(Box::pin(main())),
        Err(cause) => Err(Error::msg(format!(
            "cannot start the async runtime: {cause}"
        ))),
    };
    if let Ok(runtime) = runtime {
        // Tasks that were not joined must not keep the process alive.
        runtime.shutdown_background();
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", binary());
            ExitCode::FAILURE
        }
    }
}

fn binary() -> String {
    let path = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = path.as_deref().and_then(|path| path.file_stem());
    name.map_or_else(
        || "operator".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
