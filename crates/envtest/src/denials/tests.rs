use super::*;

fn subject() -> Subject {
    Subject {
        operator: "robot-operator".into(),
        service_account: "default/robot".into(),
        user: "system:serviceaccount:default:robot".into(),
    }
}

fn denied(method: &str, uri: &str) -> DeniedRequest {
    let request = Request::builder().method(method).uri(uri);
    subject().denied(RequestInfo::of(&request.body(()).unwrap()))
}

#[test]
fn a_report_names_verb_resource_namespace_and_count() {
    let denials = Denials::default();
    for _ in 0..2 {
        denials.add(denied(
            "PATCH",
            "/apis/apps/v1/namespaces/one/deployments/web/scale",
        ));
    }
    denials.add(denied("GET", "/api/v1/pods?watch=true"));
    let expected = "robot-operator may not patch deployments/scale of API group apps in namespace \
        one (ServiceAccount default/robot): denied 2 times\n\
        robot-operator may not watch pods in the whole cluster (ServiceAccount default/robot): \
        denied once\n";
    assert_eq!(denials.report(), expected);
    assert_eq!(denials.end(), expected);
}

#[test]
fn expected_denials_are_in_the_report_only() {
    let denials = Denials::default();
    denials.add(denied("GET", "/api/v1/namespaces/one/pods"));
    denials.expect("default/robot");
    assert!(
        denials
            .report()
            .contains("may not list pods in namespace one")
    );
    assert_eq!(denials.end(), "");
}

#[test]
fn only_the_error_of_an_authorizer_counts() {
    let user = "system:serviceaccount:default:robot";
    let json =
        format!(r#"{{"message":"pods is forbidden: User \"{user}\" cannot list resource"}}"#);
    assert!(subject().is_named_in(&json));
    let plain = format!("pods is forbidden: User \"{user}\" cannot list resource");
    assert!(subject().is_named_in(&plain));
    let other = format!("pods is forbidden: User \"{user}-two\" cannot list resource");
    assert!(!subject().is_named_in(&other));
    assert!(!subject().is_named_in("pods \"a\" is forbidden: exceeded quota: small"));
}
