use crate::{Environment, Type};

fn checked(source: &str) -> String {
    let environment = Environment::new()
        .variable("s", Type::String)
        .variable("i", Type::Int)
        .variable("l", Type::list(Type::Int))
        .variable("m", Type::map(Type::String, Type::Int))
        .variable("d", Type::Dyn);
    match environment.compile(source) {
        Ok(program) => program.result_type().to_string(),
        Err(error) => error.to_string().lines().next().unwrap().to_owned(),
    }
}

#[test]
fn types_are_inferred() {
    for (source, expected) in [
        ("i + 1", "int"),
        ("l.map(x, string(x))", "list(string)"),
        ("m.map(k, m[k])", "list(int)"),
        ("l + []", "list(int)"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("{'a': [1]}", "map(string, list(int))"),
        (
            "[1, d]",
            "ERROR: <input>:1:5: expected type 'int' but found 'dyn'",
        ),
        ("true ? 1 : d", "dyn"),
        ("d.a.b", "dyn"),
        ("m.?a", "optional_type(int)"),
        ("m.?a.optMap(x, x > 1)", "optional_type(bool)"),
        ("l[?0].orValue(1)", "int"),
        ("optional.none()", "optional_type(dyn)"),
        ("type(i)", "type(int)"),
        (
            "timestamp('2020-01-01T00:00:00Z') - duration('1s')",
            "timestamp",
        ),
        ("quantity('1')", "kubernetes.Quantity"),
        ("ip('::1')", "net.IP"),
        ("url('https://a').getQuery()", "map(string, list(string))"),
        ("l.transformMapEntry(i, v, {v: 'x'})", "map(int, string)"),
        ("format.uuid().validate(s)", "optional_type(list(string))"),
        ("l.sortBy(x, -x)", "list(int)"),
    ] {
        assert_eq!(checked(source), expected, "{source}");
    }
}

#[test]
fn type_errors_have_the_texts_of_cel_go() {
    for (source, expected) in [
        ("x", "1:1: undeclared reference to 'x' (in container '')"),
        ("x()", "1:2: undeclared reference to 'x' (in container '')"),
        (
            "i + s",
            "1:3: found no matching overload for '_+_' applied to '(int, string)'",
        ),
        (
            "s.startsWith(i)",
            "1:13: found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        ("i && true", "1:1: expected type 'bool' but found 'int'"),
        ("i.x", "1:2: type 'int' does not support field selection"),
        (
            "i.all(x, true)",
            "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, \
             or dynamic)",
        ),
        ("l.all(x, x)", "1:10: expected type 'bool' but found 'int'"),
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        (
            "{'a': 1, 2: 2}",
            "1:10: expected type 'string' but found 'int'",
        ),
        (
            "[?i]",
            "1:3: expected type 'optional_type(int)' but found 'int'",
        ),
        ("duration('x')", "1:10: invalid duration argument"),
        ("s.matches('[')", "1:11: invalid matches argument"),
        (
            "quantity('1').x",
            "1:14: unexpected failed resolution of 'kubernetes.Quantity'",
        ),
        ("T{}", "1:2: undeclared reference to 'T' (in container '')"),
        (
            "'%d'.format([s])",
            "1:14: error during formatting: decimal clause can only be used on integers, was given \
             string",
        ),
    ] {
        assert_eq!(
            checked(source),
            format!("ERROR: <input>:{expected}"),
            "{source}"
        );
    }
}
