use super::*;

fn check(before: Option<&str>, after: Option<&str>, expected: &str) {
    let change = Change {
        path: "src/lib.rs".into(),
        before: before.map(Into::into),
        after: after.map(Into::into),
    };
    assert_eq!(unified(&change), expected);
}

#[test]
fn a_created_file_has_no_name_before() {
    let expected = "--- /dev/null\n+++ b/src/lib.rs\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    check(None, Some("a\nb\n"), expected);
    let expected = "--- a/src/lib.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    check(Some("a\n"), None, expected);
}

#[test]
fn far_changes_are_hunks_of_their_own() {
    let before: String = (1..=20).map(|line| format!("{line}\n")).collect();
    let after = before.replace("\n2\n", "\n2\ntwo\n").replace("19\n", "");
    let expected = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,5 +1,6 @@\n 1\n 2\n+two\n 3\n 4\n 5\n\
                    @@ -16,5 +17,4 @@\n 16\n 17\n 18\n-19\n 20\n";
    check(Some(&before), Some(&after), expected);
}

#[test]
fn a_missing_newline_at_the_end_is_shown() {
    let expected = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1 +1,2 @@\n\
                    -a\n\\ No newline at end of file\n+a\n+b\n";
    check(Some("a"), Some("a\nb\n"), expected);
}
