//! The stand-in for kubectl, written if no real kubectl was found: it ends with an error.

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "this is the program's error output")]
pub(super) fn run() -> ExitCode {
    eprintln!(
        "this kubectl is a placeholder that `opkit envtest assets` wrote: install kubectl, and run \
         `opkit envtest assets` again"
    );
    ExitCode::FAILURE
}
