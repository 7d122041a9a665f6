use serde_json::json;

#[test]
fn values_print_as_go_prints_them() {
    fn check(value: serde_json::Value, expected: &str) {
        assert_eq!(super::value(&value), expected);
    }
    check(json!("a\"b\n\u{1}"), r#""a\"b\n\x01""#);
    check(json!(1), "1");
    check(json!(1.0), "1");
    check(json!(0.5), "0.5");
    check(json!(1e21), "1e+21");
    check(json!(1e20), "100000000000000000000");
    check(json!(1.5e-7), "1.5e-07");
    check(json!(true), "true");
    check(json!(null), "null");
    check(json!({"a": "<b>"}), r#"{"a":"\u003cb\u003e"}"#);
    check(json!("é <"), "\"é <\"");
}

#[test]
fn values_print_in_all_of_gos_ways() {
    fn check(value: serde_json::Value, plain: &str, syntax: &str, type_name: &str) {
        assert_eq!(super::plain(&value), plain);
        assert_eq!(super::syntax(&value), syntax);
        assert_eq!(super::type_name(&value), type_name);
    }
    check(json!("a b"), "a b", "\"a b\"", "string");
    check(json!(1), "1", "1", "int64");
    check(json!(null), "<nil>", "interface {}(nil)", "<nil>");
    check(
        json!({"a": [1, "x"], "b": true}),
        "map[a:[1 x] b:true]",
        "map[string]interface {}{\"a\":[]interface {}{1, \"x\"}, \"b\":true}",
        "map[string]interface {}",
    );
}
