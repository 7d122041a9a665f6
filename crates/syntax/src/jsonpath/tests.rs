use super::{error, is_simple, leading_fields};

#[test]
fn paths_are_checked() {
    for (path, expected) in [
        (".spec.replicas", None),
        (".status.conditions[?(@.type=='Ready')].status", None),
        (".status.conditions[?(@.type==\"Ready\")].status", None),
        (".status.nodes[0].name", None),
        (".status.nodes[-1]", None),
        (".status.nodes[0:2]", None),
        (".status.nodes[*].name", None),
        (".status..name", None),
        (".metadata.labels['app.kubernetes.io/name']", None),
        (".metadata.annotations.example\\.com/a", None),
        (".status.nodes[?(@.ready)]", None),
        (".status.nodes[?(@.weight>=3)]", None),
        ("spec", Some(1)),
        ("", Some(1)),
        (".", Some(2)),
        (".spec.", Some(7)),
        (".spec.a b", Some(8)),
        (".spec.list[", Some(11)),
        (".spec.list[]", Some(11)),
        (".spec.list[a]", Some(11)),
        (".spec.list[?(@.a = 1)]", Some(11)),
        (".spec.list[?(@.a=='b)]", Some(11)),
        (".spec.list[0]x", Some(14)),
    ] {
        assert_eq!(error(path).map(|error| error.column), expected, "{path}");
    }
}

#[test]
fn leading_fields_end_at_the_first_bracket() {
    assert_eq!(leading_fields(".a.b"), ["a", "b"]);
    assert_eq!(leading_fields(".a[0].b"), ["a"]);
    assert_eq!(leading_fields(".a..b"), ["a"]);
    assert_eq!(leading_fields(".a\\.b.c"), ["a.b", "c"]);
    assert!(leading_fields("a").is_empty());
}

#[test]
fn simple_paths_have_only_names() {
    for (path, expected) in [
        (".spec.replicas", true),
        (".spec.a-b", true),
        ("spec", false),
        (".spec.a[0]", false),
        (".spec.", false),
        ("", false),
        (".", false),
    ] {
        assert_eq!(is_simple(path), expected, "{path}");
    }
}
