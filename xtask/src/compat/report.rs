//! Results of a suite: a line for each package, the failed tests, and the sums.

use std::time::Duration;

/// Result of one package on one control plane.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) passed: usize,
    pub(super) skipped: usize,
    /// Names of the failed tests.
    pub(super) failed: Vec<String>,
    /// Names of the passed tests to print.
    pub(super) checked: Vec<String>,
    pub(super) time: Duration,
}

/// A test that is known to fail on the embedded API server.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) package: &'static str,
    /// Name of the test, as [`Outcome::failed`] has it.
    pub(super) test: &'static str,
    /// The missing feature.
    pub(super) reason: &'static str,
}

/// Prints the results of a suite while its packages are run.
#[derive(Debug)]
pub(super) struct Report {
    expected: &'static [Expected],
    total: Outcome,
    total_real: Option<Outcome>,
    is_success: bool,
}

impl Report {
    /// Prints the title of the suite.
    pub(super) fn new(title: &str, expected: &'static [Expected]) -> Self {
        println!("{title}");
        Self {
            expected,
            total: Outcome::default(),
            total_real: None,
            is_success: true,
        }
    }

    /// Prints the result of a package, beside that of the real control plane if the package was run
    /// there, and adds it to the sums.
    pub(super) fn add(&mut self, package: &str, outcome: Outcome, real: Option<Outcome>) {
        print(package, &outcome, real.as_ref());
        if outcome.passed + outcome.skipped + outcome.failed.len() == 0 {
            println!("    no tests");
        }
        for name in &outcome.checked {
            println!("    {name}");
        }
        let (lines, is_success) = compare(self.expected, package, &outcome.failed);
        for line in lines {
            println!("    {line}");
        }
        self.is_success &= is_success;
        for name in real.iter().flat_map(|real| &real.failed) {
            println!("    real: {name}");
        }
        add(&mut self.total, outcome);
        if let Some(real) = real {
            add(self.total_real.get_or_insert_default(), real);
        }
    }

    /// Prints the sums. Returns whether exactly the expected tests failed on the stand-ins.
    pub(super) fn finish(self) -> bool {
        print("all", &self.total, self.total_real.as_ref());
        self.is_success
    }
}

/// Compares the failed tests of a package with the expected ones. Returns a line for each failed
/// test and for each expected failure that did not happen, and whether both sets are equal.
fn compare(expected: &[Expected], package: &str, failed: &[String]) -> (Vec<String>, bool) {
    let expected = || expected.iter().filter(|entry| entry.package == package);
    let mut is_equal = true;
    let mut lines = Vec::new();
    for name in failed {
        match expected().find(|entry| entry.test == name) {
            Some(entry) => lines.push(format!("{name}, as expected: {}", entry.reason)),
            None => {
                lines.push(format!("FAILED {name}"));
                is_equal = false;
            }
        }
    }
    for entry in expected().filter(|entry| !failed.iter().any(|name| name == entry.test)) {
        lines.push(format!(
            "UNEXPECTED {} did not happen ({}): remove it from the expected failures",
            entry.test, entry.reason
        ));
        is_equal = false;
    }
    (lines, is_equal)
}

fn print(package: &str, outcome: &Outcome, real: Option<&Outcome>) {
    let line = |outcome: &Outcome| {
        format!(
            "{:>4} passed {:>3} failed {:>3} skipped {:>6.1} s",
            outcome.passed,
            outcome.failed.len(),
            outcome.skipped,
            outcome.time.as_secs_f64()
        )
    };
    let real = real.map(|real| format!("   real: {}", line(real)));
    println!(
        "{package:<60} {}{}",
        line(outcome),
        real.unwrap_or_default()
    );
}

fn add(total: &mut Outcome, outcome: Outcome) {
    total.passed += outcome.passed;
    total.skipped += outcome.skipped;
    total.failed.extend(outcome.failed);
    total.time += outcome.time;
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: [Expected; 2] = [
        Expected {
            package: "pkg/webhook",
            test: "calls a webhook (failed)",
            reason: "needs admission webhooks",
        },
        Expected {
            package: "pkg/client",
            test: "calls a webhook (failed)",
            reason: "needs admission webhooks",
        },
    ];

    fn check(failed: &[&str], lines: &[&str], is_equal: bool) {
        let failed: Vec<String> = failed.iter().map(|&name| name.to_owned()).collect();
        let found = compare(&EXPECTED, "pkg/webhook", &failed);
        assert_eq!(
            found,
            (lines.iter().map(|&l| l.to_owned()).collect(), is_equal)
        );
    }

    #[test]
    fn exactly_the_expected_failures_are_a_success() {
        let expected = "calls a webhook (failed), as expected: needs admission webhooks";
        check(&["calls a webhook (failed)"], &[expected], true);
        check(
            &["calls a webhook (failed)", "reads (failed)"],
            &[expected, "FAILED reads (failed)"],
            false,
        );
        check(
            &[],
            &[
                "UNEXPECTED calls a webhook (failed) did not happen (needs admission webhooks): \
               remove it from the expected failures",
            ],
            false,
        );
    }
}
