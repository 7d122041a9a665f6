use serde_json::{Value, json};

use super::{Action, RULES, Rule, TEXT, apply, functions, generate};
use crate::kinds::{Catalog, sections};

/// Pairs of objects, one pair per line: as sent to a real server, and as returned by it. Edited by
/// hand where a value is not a default:
///
/// - removed from the returned object: UID, times and managed fields, the finalizers that protect
///   volumes, the taints of new nodes, allocated addresses, IP families and node ports, the status
///   of a CRD, the transition time of a volume, the fields that admission plugins set in a Pod;
/// - added to the sent object: the namespace of the request, the UID of a Job, the priority from a
///   PriorityClass, and quantities as text (the server turns numbers into text);
/// - removed from both: empty lists, which the server returns as null.
const PAIRS: &str = include_str!("../fixtures/defaults.json");

#[test]
fn objects_become_those_of_a_real_server() {
    let catalog = Catalog::builtin();
    let pairs: Vec<(Value, Value)> = serde_json::from_str(PAIRS).unwrap();
    let mut wrong = Vec::new();
    for (mut object, real) in pairs {
        let api_version = object["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = catalog
            .all()
            .into_iter()
            .find(|kind| {
                kind.group == group && kind.version == version && object["kind"] == *kind.kind
            })
            .unwrap();
        apply(&kind, &mut object);
        generate(&kind, &mut object);
        compare(
            &format!("{} {}", kind.kind, object["metadata"]["name"]),
            &object,
            &real,
            &mut wrong,
        );
        let once = object.clone();
        apply(&kind, &mut object);
        assert_eq!(once, object, "applying twice changes nothing");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Adds the paths where `ours` and `real` differ to `wrong`. A null of the real server counts as a
/// field that is not set.
fn compare(path: &str, ours: &Value, real: &Value, wrong: &mut Vec<String>) {
    match (ours, real) {
        (Value::Object(a), Value::Object(b)) => {
            let fields: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for field in fields {
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(field).cloned().unwrap_or_default()
                };
                compare(&format!("{path}.{field}"), &of(a), &of(b), wrong);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, wrong);
            }
        }
        _ if ours == real => {}
        _ => wrong.push(format!("{path}: ours {ours}, real {real}")),
    }
}

#[test]
fn every_line_is_a_rule_of_a_known_resource() {
    let catalog = Catalog::builtin();
    for (section, lines) in sections(TEXT) {
        if !section.starts_with('@') {
            let known = catalog
                .all()
                .iter()
                .any(|kind| kind.resource_line() == section);
            assert!(known, "{section}");
        }
        for line in lines.into_iter().filter(|line| !line.starts_with('#')) {
            let rule = Rule::parse(line).unwrap_or_else(|| panic!("{section}: {line}"));
            if let Action::Apply(name) = rule.action {
                assert!(
                    RULES.contains_key(name) || functions::find(name).is_some(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn pull_policy_follows_the_tag() {
    let check = |image: &str, policy: &str| {
        let mut pod = json!({"spec": {"containers": [{"image": image}]}});
        apply(&Catalog::builtin().get("", "v1", "pods").unwrap(), &mut pod);
        assert_eq!(
            pod["spec"]["containers"][0]["imagePullPolicy"], policy,
            "{image}"
        );
    };
    check("nginx", "Always");
    check("nginx:latest", "Always");
    check("nginx:1.27", "IfNotPresent");
    check("localhost:5000/nginx", "Always");
    check("localhost:5000/nginx:1", "IfNotPresent");
    check("nginx@sha256:00", "IfNotPresent");
    check("nginx:latest@sha256:00", "Always");
}

#[test]
fn strings_become_data() {
    let mut secret =
        json!({"data": {"a": "QQ=="}, "stringData": {"b": "hello", "c": "", "d": "ab"}});
    apply(
        &Catalog::builtin().get("", "v1", "secrets").unwrap(),
        &mut secret,
    );
    assert_eq!(
        secret,
        json!({"type": "Opaque", "data": {"a": "QQ==", "b": "aGVsbG8=", "c": "", "d": "YWI="}})
    );
}
