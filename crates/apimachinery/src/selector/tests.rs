use serde_json::{Value, json};

use super::*;

#[test]
fn label_selectors_match() {
    fn check(selector: &str, labels: Value, expected: bool) {
        let parsed = LabelSelector::parse(selector).unwrap();
        assert_eq!(
            parsed.matches(labels.as_object()),
            expected,
            "{selector} on {labels}"
        );
        let again = LabelSelector::parse(&parsed.to_string()).unwrap();
        assert_eq!(again, parsed, "{selector} printed as {parsed}");
    }
    check("", json!(null), true);
    check("a=b", json!({"a": "b"}), true);
    check("a==b", json!({"a": "c"}), false);
    check("a!=b", json!({}), true);
    check("a!=b", json!({"a": "b"}), false);
    check("a", json!({"a": ""}), true);
    check("!a", json!({"a": ""}), false);
    check("!a", json!(null), true);
    check("a in (b, c)", json!({"a": "c"}), true);
    check("a in (b,,c)", json!({"a": ""}), true);
    check("a in ()", json!({"a": ""}), true);
    check("a notin (b,c)", json!({}), true);
    check("a notin (b,c)", json!({"a": "b"}), false);
    check("in in (in,notin)", json!({"in": "notin"}), true);
    check("a=", json!({"a": ""}), true);
    check("a>1,b<5", json!({"a": "2", "b": "4"}), true);
    check("a>1", json!({"a": "x"}), false);
    check(" x.io/a = b , c ", json!({"x.io/a": "b", "c": "d"}), true);
}

#[test]
fn label_selectors_are_rejected_in_kubernetes_words() {
    fn check(selector: &str, expected: &str) {
        assert_eq!(
            LabelSelector::parse(selector).unwrap_err().to_string(),
            expected
        );
    }
    check(
        "=a",
        "found '=', expected: !, identifier, or 'end of string'",
    );
    check("a=b,", "found '', expected: identifier after ','");
    check(
        "a b",
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    );
    check(
        "a in b",
        "unable to parse requirement: found 'b' expected: '('",
    );
    check(
        "a in (b",
        "unable to parse requirement: found '', expected: ',' or ')'",
    );
    check("a=b c", "found 'c', expected: ',' or 'end of string'");
    check(
        "a>b",
        "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
    );
}

#[test]
fn selectors_of_specs() {
    fn check(selector: Value, labels: Value, expected: bool) {
        let parsed = LabelSelector::from_object(&selector).unwrap();
        assert_eq!(
            parsed.matches(labels.as_object()),
            expected,
            "{selector} on {labels}"
        );
    }
    check(json!(null), json!({"a": "b"}), false);
    check(json!({}), json!(null), true);
    check(json!({"matchLabels": {"a": "b"}}), json!({"a": "b"}), true);
    check(json!({"matchLabels": {"a": "b"}}), json!({"a": "c"}), false);
    let expressions = json!({"matchExpressions": [
        {"key": "a", "operator": "In", "values": ["b", "c"]},
        {"key": "d", "operator": "DoesNotExist"},
    ]});
    check(expressions.clone(), json!({"a": "c"}), true);
    check(expressions, json!({"a": "c", "d": ""}), false);
    let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let error = LabelSelector::from_object(&wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"Near\" is not a valid label selector operator"
    );
}

#[test]
fn field_selectors() {
    fn check(selector: &str, printed: &str, matches: bool) {
        let parsed = FieldSelector::parse(selector).unwrap();
        assert_eq!(parsed.to_string(), printed);
        let lookup = |field: &str| match field {
            "metadata.name" => Some("a".to_owned()),
            "odd" => Some("x,y=z".to_owned()),
            _ => None,
        };
        assert_eq!(parsed.matches(lookup), matches, "{selector}");
    }
    check("", "", true);
    check("metadata.name=a", "metadata.name=a", true);
    check(
        "metadata.name==a,metadata.name!=b",
        "metadata.name=a,metadata.name!=b",
        true,
    );
    check("metadata.name!=a", "metadata.name!=a", false);
    check("missing=", "missing=", true);
    check(r"odd=x\,y\=z", r"odd=x\,y\=z", true);
}

#[test]
fn field_selectors_are_rejected_in_kubernetes_words() {
    fn check(selector: &str, expected: &str) {
        assert_eq!(
            FieldSelector::parse(selector).unwrap_err().to_string(),
            expected
        );
    }
    check("a", "invalid selector: 'a'; can't understand 'a'");
    check("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'");
    check(
        r"a=\x",
        r"invalid field selector: invalid escape sequence: \x",
    );
    check(
        "a=b=c",
        "invalid field selector: unescaped character in value: 61",
    );
}
