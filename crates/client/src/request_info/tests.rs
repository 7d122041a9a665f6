use super::*;

fn check(method: Method, uri: &str, expected: &str) {
    let info = RequestInfo::parse(&method, &uri.parse().unwrap());
    let found = format!(
        "{} {} {} {} {}",
        info.verb,
        info.resource(),
        info.version,
        info.namespace.as_deref().unwrap_or("-"),
        info.name.as_deref().unwrap_or("-"),
    );
    assert_eq!(found, expected, "{method} {uri}");
}

#[test]
fn paths_are_parsed_as_the_server_parses_them() {
    check(Method::GET, "/api/v1/pods", "list pods v1 - -");
    check(
        Method::GET,
        "/api/v1/namespaces/a/pods?watch=true",
        "watch pods v1 a -",
    );
    check(
        Method::GET,
        "/api/v1/namespaces/a/pods?watch=0",
        "list pods v1 a -",
    );
    check(Method::GET, "/api/v1/pods?x=1&watch", "watch pods v1 - -");
    check(
        Method::GET,
        "/api/v1/namespaces/a/pods/b",
        "get pods v1 a b",
    );
    check(
        Method::GET,
        "/api/v1/namespaces/a/pods/b/log",
        "get pods/log v1 a b",
    );
    check(
        Method::POST,
        "/api/v1/namespaces/a/pods/b/proxy/c/d",
        "create pods/proxy/c/d v1 a b",
    );
    check(Method::GET, "/api/v1/namespaces", "list namespaces v1 - -");
    check(
        Method::DELETE,
        "/api/v1/namespaces/a",
        "delete namespaces v1 a a",
    );
    check(
        Method::PUT,
        "/api/v1/namespaces/a/finalize",
        "update namespaces/finalize v1 a a",
    );
    check(
        Method::DELETE,
        "/apis/apps/v1/namespaces/a/deployments",
        "deletecollection deployments.apps v1 a -",
    );
    check(
        Method::PATCH,
        "/apis/a.b/v1/things/x/status",
        "patch things.a.b/status v1 - x",
    );
    check(
        Method::GET,
        "https://host/k8s/clusters/c-1/apis/apps/v1/deployments",
        "list deployments.apps v1 - -",
    );
    check(
        Method::GET,
        "/api/v1/namespaces/a/pods/x%3Ay",
        "get pods v1 a x:y",
    );
}

#[test]
fn other_paths_are_not_resources() {
    for path in [
        "/",
        "/version",
        "/healthz",
        "/openapi/v3",
        "/openapi/v3/apis/apps/v1",
        "/apis",
        "/api",
        "/apis/apps",
        "/apis/apps/v1",
    ] {
        let info = RequestInfo::parse(&Method::GET, &path.parse().unwrap());
        assert!(!info.is_resource, "{path}");
        assert_eq!(info.verb, "get");
    }
}
