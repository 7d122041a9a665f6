use super::*;

#[test]
fn headers_are_read_as_the_server_writes_them() {
    let check = |header: &str, expected: &[&str]| {
        let texts: Vec<String> = parse(header)
            .into_iter()
            .map(|warning| warning.text)
            .collect();
        assert_eq!(texts, expected, "{header}");
    };
    check(
        r#"299 - "unknown field \"spec.a\"""#,
        &["unknown field \"spec.a\""],
    );
    check(r#"299 - "one", 299 - "two""#, &["one", "two"]);
    check(
        r#"299 - "one" "Wed, 21 Oct 2026 07:28:00 GMT", 299 - "two""#,
        &["one", "two"],
    );
    check(r#"199 - "other", 299 - "ours""#, &["ours"]);
    check(r#"299 - "never ends"#, &[]);
    check("nonsense", &[]);
    check("", &[]);
}

#[test]
fn a_text_is_new_once_and_memory_is_bounded() {
    let mut seen = Seen::default();
    assert!(seen.insert("a"));
    assert!(!seen.insert("a"));
    for number in 0..TEXTS_MAX {
        assert!(seen.insert(&number.to_string()));
    }
    assert_eq!(seen.texts.len(), TEXTS_MAX);
    assert!(seen.insert("a"), "the oldest is forgotten");
}
