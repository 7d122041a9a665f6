//! Decisions of the authorizer beside those of a naive one, which reads the objects for each
//! request and follows the words of the Kubernetes documentation.

use opkit_random::Random;
use serde_json::{Value, json};

use super::*;
use crate::authentication::service_account_user;

const USERS: &[&str] = &[
    "alice",
    "bob",
    "system:serviceaccount:a:robot",
    "system:serviceaccount:b:robot",
    "system:anonymous",
];
const GROUPS: &[&str] = &[
    "dev",
    "ops",
    "system:authenticated",
    "system:serviceaccounts",
    "system:serviceaccounts:a",
];
const NAMESPACES: &[&str] = &["a", "b"];
const API_GROUPS: &[&str] = &["", "apps", "robot.opkit.dev"];
const RESOURCES: &[&str] = &["pods", "deployments", "robots"];
const SUBRESOURCES: &[&str] = &["", "", "status", "scale", "log"];
const RULE_RESOURCES: &[&str] = &[
    "pods",
    "pods/log",
    "deployments",
    "deployments/scale",
    "robots",
    "robots/status",
    "*/scale",
    "*/status",
    "pods/*",
    "*",
];
const VERBS: &[&str] = &["get", "list", "create", "*"];
const NAMES: &[&str] = &["x", "y", ""];
const URLS: &[&str] = &["/healthz", "/healthz/*", "/api*", "/version", "*"];
const PATHS: &[&str] = &[
    "/healthz",
    "/healthz/etcd",
    "/api",
    "/apis/apps",
    "/version",
    "/",
];

fn some(random: &mut Random, from: &[&str], most: u64) -> Vec<String> {
    let count = random.below(most) + 1;
    (0..count).map(|_| one(random, from).to_owned()).collect()
}

fn one<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    random.one_of(from).copied().unwrap_or_default()
}

fn random_rule(random: &mut Random) -> Value {
    let mut verbs = some(random, VERBS, 3);
    // Rules for everything would hide the other rules.
    if !random.percent(20) {
        verbs.retain(|verb| verb != "*");
    }
    if random.percent(15) {
        return json!({"verbs": verbs, "nonResourceURLs": some(random, URLS, 2)});
    }
    let mut groups = some(random, API_GROUPS, 2);
    if random.percent(15) {
        groups.push("*".to_owned());
    }
    let resources = some(random, RULE_RESOURCES, 2);
    let mut rule = json!({"verbs": verbs, "apiGroups": groups, "resources": resources});
    if random.percent(25) {
        rule["resourceNames"] = json!(some(random, NAMES, 2));
    }
    rule
}

fn random_subject(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"kind": "User", "name": one(random, USERS)}),
        1 => json!({"kind": "Group", "name": one(random, GROUPS)}),
        2 => {
            json!({"kind": "ServiceAccount", "name": "robot", "namespace": one(random, NAMESPACES)})
        }
        _ => json!({"kind": one(random, &["ServiceAccount", "Node"]), "name": "robot"}),
    }
}

/// The objects of a policy, in the order of the parameters of [`Policy::parse`].
#[derive(Debug, Default)]
struct Objects {
    cluster_roles: Vec<Arc<Value>>,
    cluster_bindings: Vec<Arc<Value>>,
    roles: Vec<Arc<Value>>,
    bindings: Vec<Arc<Value>>,
}

impl Objects {
    fn random(random: &mut Random) -> Self {
        let mut objects = Self::default();
        for name in ["r0", "r1", "r2"] {
            let rules: Vec<Value> = (0..random.below(5)).map(|_| random_rule(random)).collect();
            let role = json!({"metadata": {"name": name}, "rules": rules});
            objects.cluster_roles.push(Arc::new(role));
            for namespace in NAMESPACES {
                if random.percent(60) {
                    let rules = json!([random_rule(random)]);
                    let metadata = json!({"name": name, "namespace": namespace});
                    let role = json!({"metadata": metadata, "rules": rules});
                    objects.roles.push(Arc::new(role));
                }
            }
        }
        for number in 0..random.below(8) + 4 {
            let subjects: Vec<Value> = (0..random.below(4))
                .map(|_| random_subject(random))
                .collect();
            let role = one(random, &["r0", "r1", "r2", "missing"]);
            if random.percent(40) {
                objects.cluster_bindings.push(Arc::new(json!({
                    "metadata": {"name": format!("b{number}")}, "subjects": subjects,
                    "roleRef": {"kind": "ClusterRole", "name": role},
                })));
            } else {
                let kind = one(random, &["ClusterRole", "Role"]);
                let namespace = one(random, NAMESPACES);
                objects.bindings.push(Arc::new(json!({
                    "metadata": {"name": format!("b{number}"), "namespace": namespace},
                    "subjects": subjects, "roleRef": {"kind": kind, "name": role},
                })));
            }
        }
        objects
    }

    fn policy(&self) -> Policy {
        Policy::parse(
            &self.cluster_roles,
            &self.cluster_bindings,
            &self.roles,
            &self.bindings,
        )
    }
}

fn random_request(random: &mut Random) -> (Identity, Attributes<'static>) {
    let mut user = Identity {
        user: one(random, USERS).to_owned(),
        ..Identity::default()
    };
    if random.percent(70) {
        user.groups = some(random, GROUPS, 4);
    }
    let attributes = if random.percent(15) {
        Attributes {
            verb: one(random, VERBS).into(),
            path: one(random, PATHS).into(),
            ..Attributes::default()
        }
    } else {
        Attributes {
            verb: one(random, VERBS).into(),
            is_resource_request: true,
            group: one(random, API_GROUPS).into(),
            resource: one(random, RESOURCES).into(),
            subresource: one(random, SUBRESOURCES).into(),
            namespace: one(random, &["a", "a", "b", ""]).into(),
            name: one(random, NAMES).into(),
            ..Attributes::default()
        }
    };
    (user, attributes)
}

/// Changes a request so that a random rule of the policy is likely to allow it.
fn approach_a_rule(random: &mut Random, objects: &Objects, request: &mut Attributes<'static>) {
    let roles: Vec<_> = objects.cluster_roles.iter().chain(&objects.roles).collect();
    let role = random.one_of(&roles).copied();
    let rules = role.and_then(|role| role["rules"].as_array());
    let Some(rule) = rules.and_then(|rules| random.one_of(rules)) else {
        return;
    };
    let mut pick = |field: &str| {
        let values = rule.get(field)?.as_array()?;
        let value = random.one_of(values)?.as_str()?;
        (value != "*").then(|| value.to_owned())
    };
    if let Some(verb) = pick("verbs") {
        request.verb = verb.into();
    }
    if let Some(group) = pick("apiGroups") {
        request.group = group.into();
    }
    if let Some(name) = pick("resourceNames") {
        request.name = name.into();
    }
    if let Some(url) = pick("nonResourceURLs") {
        request.path = url.replace('*', "x").into();
    }
    let Some(resource) = pick("resources") else {
        return;
    };
    let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
    if resource != "*" {
        request.resource = resource.to_owned().into();
    }
    if subresource != "*" {
        request.subresource = subresource.to_owned().into();
    }
}

/// The authorizer that is written straight from the rules.
fn naive(objects: &Objects, user: &Identity, request: &Attributes<'_>) -> bool {
    let text = |value: &Value, pointer: &str| -> String {
        let value = value.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let items = rule.get(field).and_then(Value::as_array);
        let items = items.into_iter().flatten().filter_map(Value::as_str);
        items.map(str::to_owned).collect()
    };
    let applies = |binding: &Value| {
        let subjects = binding["subjects"].as_array().cloned().unwrap_or_default();
        subjects.iter().any(|subject| {
            let name = text(subject, "/name");
            match text(subject, "/kind").as_str() {
                "User" => name == user.user,
                "Group" => user.groups.contains(&name),
                "ServiceAccount" => {
                    let mut namespace = text(subject, "/namespace");
                    if namespace.is_empty() {
                        namespace = text(binding, "/metadata/namespace");
                    }
                    !namespace.is_empty() && service_account_user(&namespace, &name) == user.user
                }
                _ => false,
            }
        })
    };
    let allows = |rule: &Value| {
        let contains = |field: &str, wanted: &str| {
            let values = texts(rule, field);
            values.contains(&"*".to_owned()) || values.contains(&wanted.to_owned())
        };
        if !contains("verbs", &request.verb) {
            return false;
        }
        if !request.is_resource_request {
            return texts(rule, "nonResourceURLs")
                .iter()
                .any(|url| match url.strip_suffix('*') {
                    Some(prefix) => request.path.starts_with(prefix),
                    None => *url == request.path,
                });
        }
        let names = texts(rule, "resourceNames");
        let resource = match request.subresource.as_ref() {
            "" => request.resource.to_string(),
            subresource => format!("{}/{subresource}", request.resource),
        };
        let is_resource = contains("resources", &resource)
            || (!request.subresource.is_empty()
                && texts(rule, "resources").contains(&format!("*/{}", request.subresource)));
        contains("apiGroups", &request.group)
            && is_resource
            && (names.is_empty() || names.contains(&request.name.to_string()))
    };
    let local = objects.bindings.iter().filter(|binding| {
        !request.namespace.is_empty()
            && text(binding, "/metadata/namespace") == request.namespace.as_ref()
    });
    objects.cluster_bindings.iter().chain(local).any(|binding| {
        let role = text(binding, "/roleRef/name");
        let roles = match text(binding, "/roleRef/kind").as_str() {
            "Role" => &objects.roles,
            _ => &objects.cluster_roles,
        };
        let is_cluster_role = text(binding, "/roleRef/kind") == "ClusterRole";
        let role = roles.iter().find(|found| {
            text(found, "/metadata/name") == role
                && (is_cluster_role
                    || text(found, "/metadata/namespace") == text(binding, "/metadata/namespace"))
        });
        let rules = role.and_then(|role| role["rules"].as_array());
        applies(binding) && rules.into_iter().flatten().any(allows)
    })
}

#[test]
fn random_requests_are_decided_as_by_a_naive_authorizer() {
    let mut random = Random::new(14);
    let (mut allowed, mut count) = (0, 0);
    while count < 10_000 {
        let objects = Objects::random(&mut random);
        let policy = objects.policy();
        for _ in 0..20 {
            let (user, mut request) = random_request(&mut random);
            if random.percent(70) {
                approach_a_rule(&mut random, &objects, &mut request);
            }
            let decision = authorize(&policy, &user, &request);
            let wanted = naive(&objects, &user, &request);
            assert_eq!(
                decision.is_allowed(),
                wanted,
                "{user:?} {request:?} {objects:?} {decision:?}"
            );
            count += 1;
            allowed += u32::from(wanted);
        }
    }
    assert!((500..9_000).contains(&allowed), "{allowed} are allowed");
}

fn check(binding: Value, roles: &[Value], user: &Identity, namespace: &str, reason: &str) {
    let mut objects = Objects::default();
    let binding = Arc::new(binding);
    match binding["metadata"].get("namespace") {
        Some(_) => objects.bindings.push(binding),
        None => objects.cluster_bindings.push(binding),
    }
    objects.cluster_roles = roles.iter().cloned().map(Arc::new).collect();
    let attributes = Attributes::of_resource("get", "", "pods").in_namespace(namespace);
    let attributes = attributes.into_owned();
    assert_eq!(
        authorize(&objects.policy(), user, &attributes).reason,
        reason
    );
}

#[test]
fn the_reason_names_binding_role_and_subject() {
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let roles = [json!({"metadata": {"name": "reader"}, "rules": rules})];
    let robot = Identity::service_account("a", "robot");
    let role = json!({"kind": "ClusterRole", "name": "reader"});
    let subject = json!({"kind": "ServiceAccount", "name": "robot"});
    let local = json!({
        "metadata": {"name": "b", "namespace": "a"}, "roleRef": role, "subjects": [subject],
    });
    check(
        local,
        &roles,
        &robot,
        "a",
        r#"RBAC: allowed by RoleBinding "b/a" of ClusterRole "reader" to ServiceAccount "robot/a""#,
    );
    let group = json!({"kind": "Group", "name": "system:serviceaccounts:a"});
    let binding = json!({"metadata": {"name": "b"}, "roleRef": role, "subjects": [group]});
    check(
        binding,
        &roles,
        &robot,
        "",
        r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to Group "system:serviceaccounts:a""#,
    );
}

#[test]
fn a_missing_role_is_named() {
    let user = Identity::authenticated("alice", Vec::new());
    let subject = json!({"kind": "User", "name": "alice"});
    let role = json!({"kind": "ClusterRole", "name": "gone"});
    let binding = json!({"metadata": {"name": "b"}, "roleRef": role, "subjects": [subject]});
    check(
        binding,
        &[],
        &user,
        "",
        r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#,
    );
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Rule {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Rule {
        verbs: texts(verbs),
        api_groups: texts(groups),
        resources: texts(resources),
        resource_names: texts(names),
        ..Rule::default()
    }
}

#[test]
fn rules_that_are_not_owned_are_listed() {
    let check = |owned: &[Rule], granted: Rule, missing: &str| {
        assert_eq!(describe_missing(&uncovered(owned, &[granted])), missing);
    };
    let owned = [
        rule(&["get"], &[""], &["pods", "*/status"], &[]),
        rule(&["list"], &["apps"], &["*"], &["x"]),
    ];
    check(
        &owned,
        rule(&["get"], &[""], &["pods", "a/status"], &["z"]),
        "",
    );
    check(
        &owned,
        rule(&["get", "list", "watch"], &[""], &["pods"], &[]),
        r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
    );
    check(&owned, rule(&["list"], &["apps"], &["a"], &["x"]), "");
    check(
        &owned,
        rule(&["list"], &["apps"], &["a"], &["x", "y"]),
        r#"{APIGroups:["apps"], Resources:["a"], ResourceNames:["y"], Verbs:["list"]}"#,
    );
    let urls = Rule {
        non_resource_urls: vec!["/a".to_owned()],
        verbs: vec!["get".to_owned()],
        ..Rule::default()
    };
    check(
        &owned,
        urls.clone(),
        r#"{NonResourceURLs:["/a"], Verbs:["get"]}"#,
    );
    check(&Rule::of_full_authority(), urls, "");
}
