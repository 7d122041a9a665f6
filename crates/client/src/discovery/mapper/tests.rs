use super::*;

fn resource(path: &str, kind: &str, short: &str, categories: &str) -> ApiResource {
    let mut parts = path.split('/');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    let (group, version, plural) = (part(), part(), part());
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    ApiResource {
        group,
        version,
        plural,
        kind: kind.to_owned(),
        singular: kind.to_lowercase(),
        short_names: words(short),
        categories: words(categories),
        ..Default::default()
    }
}

fn known() -> Discovered {
    Discovered {
        resources: vec![
            resource("/v1/pods", "Pod", "po", "all"),
            resource("/v1/events", "Event", "ev", ""),
            resource("apps/v1/deployments", "Deployment", "deploy", "all"),
            resource("events.k8s.io/v1/events", "Event", "ev", ""),
            resource(
                "autoscaling/v2/horizontalpodautoscalers",
                "HorizontalPodAutoscaler",
                "hpa",
                "all",
            ),
            resource(
                "autoscaling/v1/horizontalpodautoscalers",
                "HorizontalPodAutoscaler",
                "hpa",
                "all",
            ),
            resource("a.dev/v1/robots", "Robot", "rb po", ""),
            resource("b.dev/v1/robots", "Robot", "", ""),
            resource("b.dev/v1/pods", "Pod", "", ""),
        ],
        ..Default::default()
    }
}

#[test]
fn names_are_resolved_as_kubectl_resolves_them() {
    let known = known();
    let check = |name: &str, expected: &str| {
        let found = by_name(&known, name).unwrap().to_string();
        assert_eq!(found, expected, "{name}");
    };
    for name in [
        "deployments",
        "deployment",
        "Deployment",
        "deploy",
        "deploy.apps",
        "deployments.v1.apps",
    ] {
        check(name, "deployments.v1.apps");
    }
    check("pods", "pods.v1");
    check("po", "pods.v1");
    check("pods.v1", "pods.v1");
    check("pods.v1.", "pods.v1");
    check("pods.b.dev", "pods.v1.b.dev");
    check("ev", "events.v1");
    check("events.events.k8s.io", "events.v1.events.k8s.io");
    check("hpa", "horizontalpodautoscalers.v2.autoscaling");
    check(
        "hpa.v1.autoscaling",
        "horizontalpodautoscalers.v1.autoscaling",
    );
    check("robots.a.dev", "robots.v1.a.dev");
    check("rb", "robots.v1.a.dev");
}

#[test]
fn ambiguous_names_are_an_error() {
    let error = by_name(&known(), "robot").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"resource name "robot" is ambiguous: use one of robots.a.dev, robots.b.dev"#
    );
    let mut known = known();
    known.failures.push(crate::GroupFailure {
        group_version: "metrics.k8s.io/v1beta1".to_owned(),
        error: "down".to_owned(),
    });
    let error = by_name(&known, "nodemetrics").unwrap_err();
    assert!(error.is_no_match());
    assert_eq!(
        error.to_string(),
        r#"the API server has no resource "nodemetrics"; these groups cannot be read: metrics.k8s.io/v1beta1"#
    );
    for name in ["", ".", "pods.v2", "pods.apps", "deployments.v2.apps"] {
        assert!(by_name(&known, name).unwrap_err().is_no_match(), "{name}");
    }
}

#[test]
fn a_category_has_each_resource_once() {
    let names: Vec<String> = category(&known(), "all")
        .iter()
        .map(ApiResource::to_string)
        .collect();
    assert_eq!(
        names,
        [
            "pods.v1",
            "deployments.v1.apps",
            "horizontalpodautoscalers.v2.autoscaling"
        ]
    );
}
