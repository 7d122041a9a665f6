use super::*;

#[track_caller]
fn check(asked: &[&str], own: &[&str], expected: &[&str]) {
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected = match expected {
        [] => Scope::All,
        names => Scope::Namespaces(owned(names)),
    };
    assert_eq!(scope(&owned(asked), &owned(own)), expected);
}

#[test]
fn flags_override_the_operators_choice() {
    check(&["a"], &["b"], &["a"]);
    check(&[], &["b"], &["b"]);
    check(&[], &[], &[]);
}

#[test]
fn each_namespace_is_watched_once() {
    check(&["a", " b ", "", "a", "b"], &[], &["a", "b"]);
    check(&[], &["a", "a"], &["a"]);
}

#[test]
fn empty_names_are_dropped() {
    check(&[""], &["b"], &["b"]);
    check(&[" "], &[""], &[]);
}
