use super::*;

fn row(sign: char, object: &str, fields: &[&str], note: &str) -> Row {
    Row {
        sign,
        object: object.to_owned(),
        fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        note: note.to_owned(),
        details: Vec::new(),
    }
}

#[test]
fn columns_are_aligned_and_fields_have_their_own_lines() {
    let mut crd = row(
        '~',
        "crd/robots.opkit.dev",
        &[".spec.versions + v1"],
        "BREAKS",
    );
    crd.details = vec!["BREAKS  v1  .size  maximum  100 -> 50".to_owned()];
    let rows = [
        crd,
        row('~', "deployment/op", &[".a 1 -> 2", ".b - 3"], ""),
        row('-', "service/op", &[], ""),
    ];
    let expected = "   ~ crd/robots.opkit.dev   .spec.versions + v1   BREAKS
                            BREAKS  v1  .size  maximum  100 -> 50
   ~ deployment/op          .a 1 -> 2
                            .b - 3
   - service/op
";
    assert_eq!(lines(&rows), expected);
}

#[test]
fn many_fields_are_cut_and_control_characters_are_escaped() {
    let fields: Vec<String> = (0..15).map(|number| format!(".f{number} + 1")).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let text = lines(&[row('~', "a/b\u{1b}[0m", &fields, "")]);
    assert_eq!(text.lines().count(), FIELDS_MAX + 1);
    assert!(text.trim_end().ends_with("and 3 more"), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn changes_are_counted() {
    assert_eq!(count(0), "no changes");
    assert_eq!(count(1), "1 change");
    assert_eq!(count(2), "2 changes");
}
