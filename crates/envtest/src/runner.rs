//! Execution of one test on a control plane.

use std::future::Future;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use opkit_controller::Result;

use crate::{ControlPlane, TestError};

/// Runs `test` and panics if it fails; `#[opkit::test]` expands to a call of this function.
///
/// The environment selects the control plane. The control plane is shut down whether the test
/// passes, fails or panics.
#[expect(clippy::panic, reason = "a test fails by a panic")]
pub fn run<F: Future<Output = Result>>(
    module: &str,
    name: &str,
    test: impl FnOnce(ControlPlane) -> F,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(async {
            let plane = ControlPlane::from_env().await?;
            let outcome = AssertUnwindSafe(plane.guard(test(plane.clone())));
            let outcome = outcome.catch_unwind().await;
            if !matches!(&outcome, Ok(Ok(()))) {
                print_denied(&plane);
            }
            let stopped = plane.shutdown().await;
            match outcome {
                Ok(outcome) => outcome.and(stopped),
                Err(panic) => resume_unwind(panic),
            }
        }),
        Err(error) => Err(error.into()),
    };
    let Err(error) = outcome else { return };
    match error.downcast_ref::<TestError>() {
        // Written directly, because libtest hides the output of print macros when a test passes.
        Some(TestError::Skipped { reason }) => {
            let line = format!("SKIPPED {module}::{name}: {reason}\n");
            let _ = io::stderr().write_all(line.as_bytes());
        }
        // Keeps the line breaks of a report.
        Some(
            error @ (TestError::Timeout { .. }
            | TestError::Denied { .. }
            | TestError::DoesNotStay { .. }
            | TestError::Golden { .. }
            | TestError::Unsound { .. }),
        ) => panic!("{module}::{name}: {error}"),
        _ => panic!("{module}::{name}: {error}"),
    }
}

/// Prints the denied requests of operators, which may be the reason why a test fails.
#[expect(
    clippy::print_stderr,
    reason = "libtest shows the output of a failed test"
)]
fn print_denied(plane: &ControlPlane) {
    for request in plane.denied() {
        eprintln!("denied: {request}");
    }
}
