use http::Method;

use super::*;

fn policy(rules: &str) -> Result<Policy, String> {
    Policy::parse(&format!(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}"
    ))
}

/// Returns the level of a request of `alice`, who is in the group `developers`.
fn level(policy: &Policy, method: &Method, path: &str) -> Level {
    let uri = path.parse().unwrap();
    let alice = Identity::authenticated("alice", vec!["developers".to_owned()]);
    let attributes = Attributes::of_request(method, &uri);
    policy.evaluate(Some(&alice), &attributes).level
}

#[test]
fn a_rule_matches_by_all_of_its_fields() {
    const POD: &str = "/api/v1/namespaces/prod/pods/web";
    const LOG: &str = "/api/v1/namespaces/prod/pods/web/log";
    const SCALE: &str = "/apis/apps/v1/namespaces/prod/deployments/web/scale";
    const NODE: &str = "/api/v1/nodes/one";
    for (rule, path, is_match) in [
        ("{}", POD, true),
        ("{}", "/version", true),
        ("{users: [alice]}", POD, true),
        ("{users: [bob]}", POD, false),
        ("{userGroups: [developers]}", POD, true),
        ("{userGroups: ['system:authenticated', x]}", POD, true),
        ("{userGroups: [admins]}", POD, false),
        ("{verbs: [get]}", POD, true),
        ("{verbs: [list, watch]}", POD, false),
        ("{verbs: [watch]}", "/api/v1/pods?watch=1", true),
        ("{namespaces: [prod]}", POD, true),
        ("{namespaces: [test]}", POD, false),
        ("{namespaces: ['']}", NODE, true),
        ("{namespaces: ['']}", POD, false),
        ("{namespaces: ['']}", "/version", false),
        ("{resources: [{group: ''}]}", POD, true),
        ("{resources: [{group: apps}]}", POD, false),
        ("{resources: [{group: '*'}]}", SCALE, true),
        ("{resources: [{resources: [pods]}]}", POD, true),
        ("{resources: [{resources: [pods]}]}", LOG, false),
        ("{resources: [{resources: [pods/log]}]}", LOG, true),
        ("{resources: [{resources: [pods/status]}]}", LOG, false),
        ("{resources: [{resources: ['pods/*']}]}", LOG, true),
        ("{resources: [{resources: ['pods/*']}]}", POD, true),
        ("{resources: [{resources: ['*']}]}", LOG, true),
        (
            "{resources: [{group: apps, resources: ['*/scale']}]}",
            SCALE,
            true,
        ),
        (
            "{resources: [{group: apps, resources: ['*/status']}]}",
            SCALE,
            false,
        ),
        (
            "{resources: [{resources: [pods], resourceNames: [web]}]}",
            POD,
            true,
        ),
        (
            "{resources: [{resources: [pods], resourceNames: [db]}]}",
            POD,
            false,
        ),
        ("{resources: [{resources: [pods]}]}", "/version", false),
        ("{nonResourceURLs: [/version]}", "/version", true),
        ("{nonResourceURLs: ['/health*']}", "/healthz/etcd", true),
        ("{nonResourceURLs: ['/health*']}", "/version", false),
        ("{nonResourceURLs: ['*']}", "/version", true),
        ("{nonResourceURLs: ['*']}", POD, false),
        (
            "{users: [alice], verbs: [get], namespaces: [test]}",
            POD,
            false,
        ),
    ] {
        let rule = rule
            .replacen('{', "{level: Request, ", 1)
            .replace(", }", "}");
        let policy = policy(&format!("rules: [{rule}, {{level: Metadata}}]")).unwrap();
        let expected = if is_match {
            Level::Request
        } else {
            Level::Metadata
        };
        assert_eq!(
            level(&policy, &Method::GET, path),
            expected,
            "{rule} {path}"
        );
    }
}

#[test]
fn the_first_matching_rule_decides() {
    let policy = policy(
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n\
         - {level: None, verbs: [delete]}\n\
         - {level: Request, verbs: [create], omitStages: [Panic], omitManagedFields: false}\n\
         - {level: Metadata, verbs: [create, update], users: }\n",
    )
    .unwrap();
    let path = "/api/v1/namespaces/prod/pods/web";
    for (method, expected) in [
        (Method::DELETE, Level::None),
        (Method::POST, Level::Request),
        (Method::PUT, Level::Metadata),
        (Method::GET, Level::None),
    ] {
        assert_eq!(level(&policy, &method, path), expected, "{method}");
    }
    let uri = path.parse().unwrap();
    let create = policy.evaluate(None, &Attributes::of_request(&Method::POST, &uri));
    assert_eq!(create.omit_stages, [Stage::Panic, Stage::RequestReceived]);
    assert!(!create.omit_managed_fields);
    let update = policy.evaluate(None, &Attributes::of_request(&Method::PUT, &uri));
    assert_eq!(update.omit_stages, [Stage::RequestReceived]);
    assert!(update.omit_managed_fields);
}

#[test]
fn a_request_without_a_user_matches_no_rule_with_users() {
    let policy = policy(
        "rules: [{level: Request, users: ['']}, {level: Request, userGroups: [x]}, \
         {level: Metadata}]",
    )
    .unwrap();
    let uri = "/version".parse().unwrap();
    let attributes = Attributes::of_request(&Method::GET, &uri);
    assert_eq!(policy.evaluate(None, &attributes).level, Level::Metadata);
}

/// The errors are those with which kube-apiserver 1.36.3 ends.
#[test]
fn errors_are_those_of_kubernetes() {
    let rules = "\
omitStages: [Never]
rules:
- level: Loud
- {}
- level: None
  nonResourceURLs: [x, '/a*b']
  namespaces: [prod]
- level: None
  resources: [{group: A/b, resourceNames: [x]}]
";
    let expected = "[omitStages[0]: Invalid value: \"Never\": allowed stages are \
        RequestReceived,ResponseStarted,ResponseComplete,Panic, \
        rules[0].level: Unsupported value: \"Loud\": supported values: \"None\", \"Metadata\", \
        \"Request\", \"RequestResponse\", \
        rules[1].level: Required value, \
        rules[2].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with \
        a '/' character, \
        rules[2].nonResourceURLs[1]: Invalid value: \"/a*b\": non-resource URL wildcards '*' must \
        be the final character of the rule, \
        rules[2].nonResourceURLs: Invalid value: [\"x\",\"/a*b\"]: rules cannot apply to both \
        regular resources and non-resource URLs, \
        rules[3].resources.group: Invalid value: \"A/b\": a lowercase RFC 1123 subdomain must \
        consist of lower case alphanumeric characters, '-' or '.', and must start and end with an \
        alphanumeric character (e.g. 'example.com', regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), \
        rules[3].resources.resourceNames: Invalid value: [\"x\"]: using resourceNames requires at \
        least one resource]";
    assert_eq!(policy(rules).unwrap_err(), expected);
    let no_rules = "loaded illegal policy with 0 rules";
    assert_eq!(policy("rules: []").unwrap_err(), no_rules);
    for (text, expected) in [
        (
            "rules: [{level: None}]",
            "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy",
        ),
        (
            "{apiVersion: audit.k8s.io/v1beta1, kind: Policy}",
            "failed decoding: no kind \"Policy\" is registered for version \
             \"audit.k8s.io/v1beta1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
    ] {
        assert_eq!(Policy::parse(text).unwrap_err(), expected);
    }
    assert!(
        policy("rules: 3")
            .unwrap_err()
            .starts_with("failed decoding: ")
    );
    let start = "failed decoding: couldn't get version/kind; json parse error: ";
    assert!(Policy::parse("{{").unwrap_err().starts_with(start));
}
