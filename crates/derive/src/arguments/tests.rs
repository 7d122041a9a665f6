use quote::quote;

use super::*;

#[test]
fn an_unknown_argument_is_compared_with_those_of_its_place() {
    for (name, expected) in [
        ("max_lenght", Some("max_length")),
        ("maxlength", Some("max_length")),
        ("defualt", Some("default")),
        ("mn", Some("min")),
        ("something", None),
    ] {
        let arguments = ARGUMENTS
            .iter()
            .filter(|(_, allowed)| allowed.overlaps(FIELD));
        let nearest = nearest(name, arguments.map(|(argument, _)| *argument));
        assert_eq!(nearest, expected, "{name}");
    }
}

#[test]
fn values_are_parsed_by_type() {
    let arguments = parse(quote!(min = -3, max = 7, default = "x", nullable), FIELD).unwrap();
    let [min, max, default, nullable] = &arguments[..] else {
        panic!("four arguments");
    };
    assert_eq!(min.integer().unwrap(), -3);
    assert!(min.count().is_err());
    assert_eq!(max.count().unwrap(), 7);
    assert_eq!(default.string().unwrap().value(), "x");
    assert!(default.integer().is_err());
    assert!(nullable.flag().is_ok() && max.flag().is_err());
}

#[test]
fn every_unknown_argument_of_a_list_is_reported() {
    let error = parse(quote!(mni = 1, mxa = 2, min = 3), FIELD)
        .err()
        .unwrap();
    assert_eq!(error.into_iter().count(), 2);
}
