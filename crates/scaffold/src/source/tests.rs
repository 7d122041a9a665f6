use super::*;

#[test]
fn positions_are_bytes_with_any_line_ending() {
    let text = "//! ä€\r\nmod a;\r\n\r\n/// ö\r\n#[cfg(x)]\r\nmod b; // ü\r\n";
    let source = Source::parse("src/lib.rs", text).unwrap();
    let [a, b] = source.file.items.as_slice() else {
        panic!("two items");
    };
    assert_eq!(source.text_of(a), "mod a;");
    assert_eq!(source.text_of(b), "/// ö\r\n#[cfg(x)]\r\nmod b;");
    let end = source.range(b).end;
    assert_eq!(source.comment_end(end), Some(text.len() - 2));
    let mut edits = Edits::default();
    edits.insert(source.next_line(end), "mod c;\n");
    assert_eq!(edits.apply(text), format!("{text}mod c;\r\n"));
}

#[test]
fn an_item_is_removed_with_its_comments_and_a_blank_line() {
    let check = |text: &str, expected: &str| {
        let source = Source::parse("src/lib.rs", text).unwrap();
        let item = source.file.items.iter().find(|item| {
            let text = tokens(item);
            text.contains("gone")
        });
        let mut edits = Edits::default();
        edits.delete(source.lines_of(item.unwrap()));
        assert_eq!(edits.apply(text), expected);
    };
    check("mod a;\nmod gone; // x\nmod b;\n", "mod a;\nmod b;\n");
    check(
        "fn a() {}\n\n// Why.\n/// What.\nfn gone() {}\n\nfn b() {}\n",
        "fn a() {}\n\nfn b() {}\n",
    );
    check("fn a() {}\n\nfn gone() {}\n", "fn a() {}\n");
    check("fn a() {}\n\nfn gone() {}", "fn a() {}\n");
    check("mod a; mod gone; mod b;", "mod a;  mod b;");
}

#[test]
fn invalid_rust_is_refused_with_its_line() {
    let error = Source::parse("src/lib.rs", "mod a;\nfn (\n").unwrap_err();
    assert!(error.to_string().starts_with("src/lib.rs:2: "), "{error}");
}
