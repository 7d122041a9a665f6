use super::unified;

#[test]
fn equal_texts_have_no_difference() {
    assert_eq!(unified("a\nb", "a\nb"), "");
}

#[test]
fn a_change_has_three_lines_around_it() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9";
    let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9";
    let expected = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
    assert_eq!(unified(old, new), expected);
}

#[test]
fn distant_changes_have_hunks_of_their_own() {
    let lines: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let (old, mut changed) = (lines.join("\n"), lines);
    changed[1] = "one".to_owned();
    changed.remove(17);
    let expected = "@@ -1,5 +1,5 @@\n 0\n-1\n+one\n 2\n 3\n 4\n@@ -15,6 +15,5 @@\n 14\n 15\n 16\n\
                    -17\n 18\n 19\n";
    assert_eq!(unified(&old, &changed.join("\n")), expected);
}
