use serde_json::{Value, json};

use super::parse;

#[test]
fn the_last_of_two_fields_is_used_and_the_path_is_reported() {
    let (value, duplicates) = parse(br#"{"a":{"b":1,"b":2},"l":[{"c":1,"c":2}],"a":3}"#).unwrap();
    assert_eq!(value, json!({"a": 3, "l": [{"c": 2}]}));
    assert_eq!(duplicates, ["a.b", "l[0].c", "a"]);
}

#[test]
fn values_are_those_of_the_usual_parser() {
    let text = r#"{"a":[1,-2,3.5,18446744073709551615,"x\n",true,null,{}],"b":""}"#;
    let expected: Value = serde_json::from_str(text).unwrap();
    assert_eq!(parse(text.as_bytes()).unwrap(), (expected, Vec::new()));
}

#[test]
fn text_after_the_value_is_an_error() {
    assert!(parse(b"{} x").is_err());
    assert!(parse(b"{").unwrap_err().is_eof());
}
