use super::*;

#[test]
fn a_merged_decision_has_everything_of_both() {
    let mut first = Admission::allowed();
    first.warn("a").invalid("spec.a", "x", "must be short");
    let mut second = Admission::denied("no");
    second
        .warn("b")
        .audit_annotation("key", "value")
        .duplicate("spec.b", 1);
    first.merge(second);
    assert!(!first.is_allowed());
    assert_eq!(first.warnings(), ["a", "b"]);
    assert_eq!(first.invalid_fields(), ["spec.a", "spec.b"]);
    assert_eq!(first.message().as_deref(), Some("no"));
    assert_eq!(first.audit_annotations()["key"], "value");
    // The first refusal stays.
    first.merge(Admission::denied("never"));
    assert_eq!(first.message().as_deref(), Some("no"));
}

#[test]
fn errors_of_fields_have_the_texts_of_kubernetes() {
    let mut admission = Admission::allowed();
    assert_eq!(admission.message(), None);
    admission.not_supported("spec.colour", "green", &["red", "blue"]);
    let text = "spec.colour: Unsupported value: \"green\": supported values: \"red\", \"blue\"";
    assert_eq!(admission.message().as_deref(), Some(text));
    admission.forbidden("spec.region", "may not be changed");
    let message = admission.message().unwrap();
    assert!(
        message.starts_with('[') && message.ends_with(']'),
        "{message}"
    );
    let subject = Subject {
        group: "robot.opkit.dev",
        kind: "Robot",
        name: "one",
    };
    let status = admission.status(&subject);
    let expected = format!("Robot.robot.opkit.dev \"one\" is invalid: {message}");
    assert_eq!(status["message"], expected);
}

#[test]
fn a_status_code_is_always_an_error() {
    let subject = Subject {
        group: "",
        kind: "Pod",
        name: "",
    };
    assert_eq!(
        Admission::refused(200, "OK", "").status(&subject)["code"],
        400
    );
    assert_eq!(
        Admission::refused(409, "Conflict", "").status(&subject)["code"],
        409
    );
    assert!(!Admission::refused(200, "OK", "").is_allowed());
}
