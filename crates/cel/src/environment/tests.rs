use serde_json::json;

use super::Environment;
use crate::{Authorizer, Bindings, Budget, Check, CheckTarget, Decision, Object, Type, Value};

fn evaluated(source: &str) -> String {
    let object = json!({"a": "x", "n": 3, "list": [1, 2, 3], "d": 1.5});
    let environment = Environment::new().variable("object", Type::Dyn);
    let program = match environment.compile(source) {
        Ok(program) => program,
        Err(error) => return error.to_string().lines().next().unwrap().to_owned(),
    };
    let bindings = Bindings::new().json("object", &object);
    match program.evaluate(&bindings, &mut Budget::new(100_000)) {
        Ok(value) => value
            .to_json()
            .map_or_else(|| value.to_string(), |json| json.to_string()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn untyped_objects_are_dynamic() {
    for (source, expected) in [
        ("object.a + 'y'", "\"xy\""),
        ("object.n + 1", "4"),
        ("object.n == 3.0", "true"),
        ("object.d > 1", "true"),
        ("object.zz", "no such key: zz"),
        ("object.a.b", "no such key: b"),
        ("object.n + 'a'", "no such overload"),
        ("object.list[7]", "index out of bounds: 7"),
        ("size(object.n)", "no such overload: size"),
        (
            "object.n.all(x, true)",
            "got 'types.Int', expected iterable type",
        ),
        ("object.?zz.orValue('none')", "\"none\""),
        ("object.list.map(x, x * 2)", "[2,4,6]"),
        ("object.map(k, k)", "[\"a\",\"d\",\"list\",\"n\"]"),
        ("has(object.zz) || object.zz == 1 || true", "true"),
        ("1 / 0", "division by zero"),
        ("int('x')", "type conversion error from 'string' to 'int'"),
        (
            "timestamp(object.a)",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            "nope",
            "ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')",
        ),
    ] {
        assert_eq!(evaluated(source), expected, "{source}");
    }
}

#[test]
fn nested_expressions_of_the_maximum_depth_run() {
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("dyn(", "1", ")"),
        ("!(", "true", ")"),
        ("true ? (", "1", ") : 2"),
    ] {
        let depth = 249;
        let source = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
        assert!(!evaluated(&source).contains("ERROR"), "{open}");
    }
    for chain in [
        format!("1{}", "+1".repeat(250)),
        format!("object{}", ".a".repeat(249)),
    ] {
        assert!(!evaluated(&chain).contains("ERROR"), "{chain}");
    }
    let source = format!("{}true{}", "[1].all(x, ".repeat(249), ")".repeat(249));
    assert_eq!(evaluated(&source), "true");
}

#[test]
fn long_accumulations_are_linear() {
    let source = "lists.range(6000).map(x, x).filter(x, x > 1).size()";
    assert_eq!(
        evaluated(source),
        "operation cancelled: actual cost limit exceeded"
    );
    assert_eq!(evaluated("lists.range(3000).map(x, x).size()"), "3000");
}

#[test]
fn the_json_patch_library_is_optional() {
    let source = "jsonpatch.escapeKey('a/b~c')";
    assert!(Environment::new().compile(source).is_err());
    let program = Environment::new().mutation().compile(source).unwrap();
    let value = program
        .evaluate(&Bindings::new(), &mut Budget::new(100))
        .unwrap();
    assert_eq!(value.as_str(), Some("a~1b~0c"));
}

#[derive(Debug)]
struct Rights;

impl Authorizer for Rights {
    fn authorize(&self, check: &Check<'_>) -> Decision {
        match (check.target, check.verb, check.service_account) {
            (CheckTarget::Path("/healthz"), "get", None) => Decision::allow(),
            (CheckTarget::Resource(resource), "list", Some(("ns", "sa"))) => {
                match (resource.resource.as_str(), resource.subresource.as_str()) {
                    ("pods", "log") if resource.namespace == "n" => Decision::allow(),
                    _ => Decision::failed("broken"),
                }
            }
            _ => Decision::no_opinion("no"),
        }
    }
}

#[test]
fn authorizers_are_asked() {
    let environment = Environment::new().variable("authorizer", Type::authorizer());
    for (source, expected) in [
        ("authorizer.path('/healthz').check('get').allowed()", "true"),
        ("authorizer.path('/x').check('get').reason()", "\"no\""),
        (
            "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').subresource('log')\
             .namespace('n').check('list').allowed()",
            "true",
        ),
        (
            "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').check('list').error()",
            "\"broken\"",
        ),
        (
            "authorizer.serviceAccount('ns', '!').group('') == null",
            "Invalid service account name",
        ),
        (
            "authorizer.path(' ').check('get').allowed()",
            "path must not be empty",
        ),
    ] {
        let program = environment.compile(source).unwrap();
        let bindings = Bindings::new().authorizer("authorizer", &Rights);
        let shown = match program.evaluate(&bindings, &mut Budget::new(1_000_000)) {
            Ok(value) => value.to_json().unwrap().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "{source}");
    }
}

#[test]
fn object_literals_are_for_mutating_policies_only() {
    let source = "Object{spec: Object.spec{size: 3}, ?absent: optional.none()}";
    let error = Environment::new().compile(source).unwrap_err().to_string();
    assert!(
        error.contains("undeclared reference to 'Object'"),
        "{error}"
    );
    let environment = Environment::new().mutation();
    let program = environment.compile(source).unwrap();
    let value = program
        .evaluate(&Bindings::new(), &mut Budget::new(1_000))
        .unwrap();
    assert_eq!(value.to_json(), Some(json!({"spec": {"size": 3}})));
    let bad = environment
        .compile("JSONPatch{op: 1, verb: ''}")
        .unwrap_err();
    let bad = bad.to_string();
    assert!(bad.contains("expected type of field 'op' is 'string' but provided type is 'int'"));
    assert!(bad.contains("undefined field 'verb'"), "{bad}");
}

#[test]
fn an_object_in_a_field_has_the_type_of_the_field() {
    let environment = Environment::new().mutation();
    let check = |source: &str| {
        let program = environment.compile(source).unwrap();
        let value = program.evaluate(&Bindings::new(), &mut Budget::new(1_000));
        match value.unwrap() {
            Value::Object(Object::Literal(literal)) => literal.check_types(),
            other => panic!("{other}"),
        }
    };
    assert_eq!(
        check("Object{spec: Object.spec{a: [Object.spec.a{b: 1}]}}"),
        Ok(())
    );
    let error = check("Object{spec: Object.status{}}").unwrap_err();
    assert!(
        error.contains("unexpected type name \"Object.status\""),
        "{error}"
    );
}
