use serde_json::{Value, json};

use super::{UsedNames, accept, establish, is_accepted};
use crate::crd::conditions;

fn crd(plural: &str, kind: &str, short_names: &[&str]) -> Value {
    let mut crd = json!({
        "spec": {"group": "g.dev", "names": {
            "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
            "listKind": format!("{kind}List"),
        }},
        "status": {"acceptedNames": {"plural": "", "kind": ""}, "conditions": null},
    });
    if !short_names.is_empty() {
        crd["spec"]["names"]["shortNames"] = json!(short_names);
    }
    crd
}

fn accepted(mut crd: Value, others: &[&Value]) -> Value {
    let used = UsedNames::of(others.iter().copied());
    accept(&mut crd, &used, "2026-01-01T00:00:00Z");
    establish(&mut crd, true, "2026-01-01T00:00:00Z");
    crd
}

fn reason(crd: &Value, type_: &str) -> String {
    let condition = conditions::find(crd, type_).unwrap();
    let text = |field: &str| condition[field].as_str().unwrap().to_owned();
    format!("{} {} {}", text("status"), text("reason"), text("message"))
}

#[test]
fn fresh_names_are_accepted_and_the_crd_is_established() {
    let one = accepted(crd("ones", "One", &["o"]), &[]);
    assert!(is_accepted(&one));
    assert_eq!(
        reason(&one, "NamesAccepted"),
        "True NoConflicts no conflicts found"
    );
    assert_eq!(
        reason(&one, "Established"),
        "True InitialNamesAccepted the initial names have been accepted"
    );
}

#[test]
fn names_of_another_crd_are_not_accepted() {
    let one = accepted(crd("ones", "One", &["o", "p"]), &[]);
    for (other, expected) in [
        (
            crd("o", "Other", &[]),
            "False PluralConflict \"o\" is already in use",
        ),
        (
            crd("twos", "Two", &["o", "p"]),
            "False ShortNamesConflict [\"o\" is already in use, \"p\" is already in use]",
        ),
        (
            crd("twos", "One", &[]),
            "False ListKindConflict \"OneList\" is already in use",
        ),
    ] {
        let other = accepted(other, &[&one]);
        assert_eq!(reason(&other, "NamesAccepted"), expected);
        assert_eq!(
            reason(&other, "Established"),
            "False NotAccepted not all names are accepted"
        );
        assert!(!is_accepted(&other));
        // The names are accepted as soon as the other CRD is gone.
        let other = accepted(other, &[]);
        assert!(conditions::is_true(&other, "Established"));
    }
}

#[test]
fn an_established_crd_stays_established_when_its_new_names_conflict() {
    let one = accepted(crd("ones", "One", &["o"]), &[]);
    let mut two = accepted(crd("twos", "Two", &[]), &[&one]);
    two["spec"]["names"]["shortNames"] = json!(["o"]);
    let two = accepted(two, &[&one]);
    assert_eq!(
        reason(&two, "NamesAccepted"),
        "False ShortNamesConflict \"o\" is already in use"
    );
    assert!(conditions::is_true(&two, "Established"));
    assert_eq!(two["status"]["acceptedNames"].get("shortNames"), None);
}
