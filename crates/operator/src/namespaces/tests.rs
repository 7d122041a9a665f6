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
fn what_is_asked_for_comes_before_the_operators_choice() {
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
fn an_empty_name_asks_for_nothing() {
    check(&[""], &["b"], &["b"]);
    check(&[" "], &[""], &[]);
}
