//! Plain Go tests in the output of a test executable with `-test.v`.

use std::collections::BTreeSet;

use super::report::Outcome;

/// Adds the tests without subtests to the outcome. The test that runs a Ginkgo suite is left out,
/// because Ginkgo reports the specs.
pub(super) fn count(output: &str, outcome: &mut Outcome) {
    let (mut current, mut suites) = ("", BTreeSet::new());
    let mut results = Vec::new();
    for line in output.lines().map(str::trim_start) {
        if let Some(name) = line.strip_prefix("=== RUN   ") {
            current = name;
        } else if line.starts_with("Running Suite: ") {
            suites.insert(current);
        } else if let Some((state, rest)) = line
            .strip_prefix("--- ")
            .and_then(|line| line.split_once(": "))
        {
            results.push((state, rest.split(' ').next().unwrap_or_default()));
        }
    }
    for (state, name) in &results {
        let is_parent = results.iter().any(|(_, other)| {
            let rest = other.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('/'))
        });
        if is_parent || suites.contains(name) {
            continue;
        }
        match *state {
            "PASS" => outcome.passed += 1,
            "SKIP" => outcome.skipped += 1,
            "FAIL" => outcome.failed.push((*name).to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_without_subtests_are_counted() {
        let output = "\
=== RUN   TestSuite
Running Suite: Client Suite - /pkg/client
--- FAIL: TestSuite (0.01s)
=== RUN   TestMapper
=== RUN   TestMapper/finds_a_kind
=== RUN   TestMapper/fails
--- FAIL: TestMapper (0.10s)
    --- PASS: TestMapper/finds_a_kind (0.00s)
    --- FAIL: TestMapper/fails (0.00s)
=== RUN   TestAlone
--- SKIP: TestAlone (0.00s)
--- a line of a test
FAIL
";
        let mut outcome = Outcome::default();
        count(output, &mut outcome);
        assert_eq!((outcome.passed, outcome.skipped), (1, 1));
        assert_eq!(outcome.failed, ["TestMapper/fails"]);
    }
}
