use proc_macro2::Span;
use syn::LitStr;

use super::{Scope, ScopeField, parse};

fn scope() -> Scope {
    let field = |json: &str, is_optional| ScopeField {
        json: json.to_owned(),
        cel: json.to_owned(),
        is_optional,
    };
    Scope {
        name: "RobotSpec".to_owned(),
        fields: vec![
            field("replicas", false),
            field("minReplicas", true),
            field("maxReplicas", true),
            field("__namespace__", true),
        ],
    }
}

fn error(rule: &str) -> Option<String> {
    let rule = LitStr::new(rule, Span::call_site());
    let checked = scope().check(&rule, false);
    checked.err().map(|error| error.to_string())
}

#[test]
fn guarded_fields_are_valid() {
    for rule in [
        "self.replicas > 0",
        "!has(self.minReplicas) || self.minReplicas <= self.replicas",
        "has(self.minReplicas) && self.minReplicas > 0",
        "self.minReplicas > 0 && has(self.minReplicas)",
        "has(self.minReplicas) ? self.minReplicas > 0 : true",
        "!has(self.minReplicas) ? true : self.minReplicas > 0",
        "!(has(self.minReplicas) && has(self.maxReplicas)) || self.minReplicas < self.maxReplicas",
        "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas < self.maxReplicas",
        "has(self.minReplicas) && has(self.maxReplicas) && self.minReplicas < self.maxReplicas",
        "self.?minReplicas.orValue(0) < 3",
        "has(self.minReplicas) == has(oldSelf.minReplicas)",
        "!has(oldSelf.minReplicas) || oldSelf.minReplicas > 0",
        "[1].all(x, !has(self.minReplicas) || self.minReplicas > x)",
        "!has(self.__namespace__) || self.__namespace__ != ''",
        "true",
    ] {
        assert_eq!(error(rule), None, "{rule}");
    }
}

#[test]
fn unguarded_and_unknown_fields_are_errors() {
    let unguarded = "is optional: guard it with";
    for (rule, expected) in [
        (
            "self.minReplicas <= self.replicas",
            format!("CEL, column 1: minReplicas {unguarded} has(self.minReplicas)"),
        ),
        (
            "has(self.maxReplicas) || self.minReplicas > 0",
            format!("CEL, column 26: minReplicas {unguarded} has(self.minReplicas)"),
        ),
        (
            "(has(self.minReplicas) || self.replicas > 1) && self.minReplicas > 0",
            format!("CEL, column 49: minReplicas {unguarded} has(self.minReplicas)"),
        ),
        (
            "!has(self.minReplicas) || oldSelf.minReplicas > 0",
            format!("CEL, column 27: minReplicas {unguarded} has(oldSelf.minReplicas)"),
        ),
        (
            "self.replica > 0",
            "CEL, column 1: RobotSpec has no field `replica`: did you mean `replicas`?".to_owned(),
        ),
        (
            "true\n&& self.color == 'red'",
            "CEL, line 2, column 4: RobotSpec has no field `color`; it has replicas, minReplicas, \
             maxReplicas, __namespace__"
                .to_owned(),
        ),
    ] {
        assert_eq!(error(rule), Some(expected), "{rule}");
    }
}

#[test]
fn syntax_errors_name_the_column() {
    let error = |text: &str| {
        let parsed = parse(&LitStr::new(text, Span::call_site()));
        parsed
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(error("self.a >").starts_with("CEL, column 9: Syntax error"));
    assert!(error("self.a == 'b").starts_with("CEL, column 11: Syntax error"));
    assert!(error("").starts_with("CEL"));
}
