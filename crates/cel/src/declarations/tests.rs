use super::{FUNCTIONS, kubernetes, standard};
use crate::library::{self, formats};

#[test]
fn every_line_is_a_declaration() {
    let lines = |table: &str| table.lines().filter(|line| !line.trim().is_empty()).count();
    let declared: usize = FUNCTIONS.values().map(Vec::len).sum();
    assert_eq!(declared, lines(standard::TABLE) + lines(kubernetes::TABLE));
}

#[test]
fn every_function_has_an_implementation() {
    // The evaluator implements these itself.
    let special = [
        "_?_:_",
        "_&&_",
        "_||_",
        "@not_strictly_false",
        "_==_",
        "_!=_",
        "_[_]",
        "_[?_]",
        "_?._",
        "or",
        "orValue",
    ];
    for name in FUNCTIONS.keys().filter(|name| !special.contains(name)) {
        let is_known = library::find(name).is_some() || formats::constant(name).is_some();
        assert!(is_known, "{name}");
    }
}
