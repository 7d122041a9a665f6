use syn::parse_quote;

use super::{Number, json};

#[test]
fn literals_become_json() {
    let check = |expr: syn::Expr, expected: Option<&str>| {
        assert_eq!(json(&expr).unwrap().as_deref(), expected);
    };
    check(parse_quote!(-1), Some("-1"));
    check(parse_quote!(1.5), Some("1.5"));
    check(parse_quote!(true), Some("true"));
    check(parse_quote!("a\"b\n"), Some(r#""a\"b\u000a""#));
    check(parse_quote!(["a", "b"]), Some(r#"["a","b"]"#));
    check(parse_quote!(Region::Eu), None);
    check(parse_quote!([Region::Eu]), None);
}

#[test]
fn numbers_are_compared_by_value() {
    assert!(Number::Integer(1) < Number::Float(1.5));
    assert!(Number::Integer(2) == Number::Float(2.0));
    assert!(Number::Integer(9).is_multiple_of(Number::Integer(3)));
    assert!(!Number::Integer(10).is_multiple_of(Number::Integer(3)));
    assert!(Number::Float(0.3).is_multiple_of(Number::Float(0.1)));
}
