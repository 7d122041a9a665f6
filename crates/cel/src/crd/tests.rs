use opkit_apimachinery::schema::Schema;
use serde_json::json;

use super::escape::{escape, unescape};
use super::field_path::field_path;

#[test]
fn names_of_fields_are_escaped() {
    for (name, escaped) in [
        ("a", Some("a")),
        ("a_b", Some("a_b")),
        ("a__b", Some("a__underscores__b")),
        ("___", Some("__underscores___")),
        ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
        ("in", Some("__in__")),
        ("namespace", Some("__namespace__")),
        ("__in__", Some("__underscores__in__underscores__")),
        ("1a", None),
        ("", None),
        ("a b", None),
        ("é", None),
    ] {
        assert_eq!(escape(name).as_deref(), escaped, "{name}");
        if let Some(escaped) = escaped {
            assert_eq!(unescape(escaped).as_deref(), Some(name), "{escaped}");
        }
    }
    assert_eq!(unescape("__nope__"), None);
    assert_eq!(unescape("a__in__"), None);
}

#[test]
fn field_paths_refer_to_fields() {
    let schema = Schema::parse(&json!({
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "l": {"type": "array", "items": {"type": "string"}},
        },
    }))
    .unwrap();
    for (path, expected) in [
        (".a", Some("a")),
        (".a['b.c']", Some("a.b.c")),
        (".m.x", Some("m[x]")),
        (".m['x\\'y']", Some("m[x'y]")),
        ("a", None),
        (".nope", None),
        (".l[0]", None),
        (".a['b.c'", None),
    ] {
        assert_eq!(field_path(path, &schema).as_deref(), expected, "{path}");
    }
}
