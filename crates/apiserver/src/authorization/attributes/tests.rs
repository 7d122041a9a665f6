use http::Uri;

use super::*;

/// Checks the attributes of a request, written as `verb group/version namespace resource name`.
fn check(method: Method, path: &str, wanted: &str) {
    let uri: Uri = path.parse().unwrap();
    let found = Attributes::of_request(&method, &uri);
    let text = match found.is_resource_request {
        false => format!("{} {}", found.verb, found.path),
        true => format!(
            "{} {}/{} {:?} {} {:?}",
            found.verb,
            found.group,
            found.version,
            found.namespace,
            found.combined_resource(),
            found.name
        ),
    };
    assert_eq!(text, wanted, "{method} {path}");
}

#[test]
fn a_path_and_a_method_give_verb_and_resource() {
    let pods = "/api/v1/namespaces/a/pods";
    check(Method::GET, pods, r#"list /v1 "a" pods """#);
    check(Method::HEAD, pods, r#"list /v1 "a" pods """#);
    check(Method::POST, pods, r#"create /v1 "a" pods """#);
    check(Method::DELETE, pods, r#"deletecollection /v1 "a" pods """#);
    check(Method::OPTIONS, pods, r#" /v1 "a" pods """#);
    let pod = "/api/v1/namespaces/a/pods/b";
    check(Method::GET, pod, r#"get /v1 "a" pods "b""#);
    check(Method::PUT, pod, r#"update /v1 "a" pods "b""#);
    check(Method::PATCH, pod, r#"patch /v1 "a" pods "b""#);
    check(Method::DELETE, pod, r#"delete /v1 "a" pods "b""#);
    let log = "/api/v1/namespaces/a/pods/b/log?follow=true";
    check(Method::GET, log, r#"get /v1 "a" pods/log "b""#);
    let proxy = "/api/v1/namespaces/a/pods/b/proxy/c/d";
    check(Method::POST, proxy, r#"create /v1 "a" pods/proxy "b""#);
    let scale = "/apis/apps/v1/namespaces/a/deployments/b/scale";
    check(
        Method::PUT,
        scale,
        r#"update apps/v1 "a" deployments/scale "b""#,
    );
    check(
        Method::GET,
        "/apis/apps/v1/deployments",
        r#"list apps/v1 "" deployments """#,
    );
}

#[test]
fn a_namespace_is_in_itself() {
    check(
        Method::GET,
        "/api/v1/namespaces",
        r#"list /v1 "" namespaces """#,
    );
    check(
        Method::GET,
        "/api/v1/namespaces/a",
        r#"get /v1 "a" namespaces "a""#,
    );
    let finalize = "/api/v1/namespaces/a/finalize";
    check(
        Method::PUT,
        finalize,
        r#"update /v1 "a" namespaces/finalize "a""#,
    );
    check(
        Method::GET,
        "/api/v1/nodes/a/status",
        r#"get /v1 "" nodes/status "a""#,
    );
}

#[test]
fn a_query_can_name_verb_and_object() {
    check(
        Method::GET,
        "/api/v1/pods?watch=true",
        r#"watch /v1 "" pods """#,
    );
    check(
        Method::GET,
        "/api/v1/pods?watch=0",
        r#"list /v1 "" pods """#,
    );
    check(
        Method::GET,
        "/api/v1/pods?watch=1&fieldSelector=metadata.name%3Da,spec.nodeName%3Db",
        r#"watch /v1 "" pods "a""#,
    );
    check(
        Method::GET,
        "/api/v1/pods?fieldSelector=metadata.name!%3Da",
        r#"list /v1 "" pods """#,
    );
    check(
        Method::GET,
        "/api/v1/pods/a?watch=1",
        r#"get /v1 "" pods "a""#,
    );
}

#[test]
fn deprecated_paths_name_the_verb() {
    check(Method::GET, "/api/v1/watch/pods", r#"watch /v1 "" pods """#);
    let one = "/api/v1/watch/namespaces/a/pods/b";
    check(Method::GET, one, r#"watch /v1 "a" pods "b""#);
    let proxy = "/api/v1/proxy/namespaces/a/pods/b/c";
    check(Method::GET, proxy, r#"proxy /v1 "a" pods "b""#);
}

#[test]
fn other_paths_are_not_resources() {
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz/a/b/c",
        "/version/",
    ] {
        check(Method::GET, path, &format!("get {path}"));
    }
    check(Method::POST, "/logs/a", "post /logs/a");
}

#[test]
fn an_escaped_path_is_decoded() {
    check(
        Method::GET,
        "/api/v1/namespaces/a/pods/b%2Flog",
        r#"get /v1 "a" pods/log "b""#,
    );
    check(
        Method::GET,
        "/api/v1/nodes/a%3Ab",
        r#"get /v1 "" nodes "a:b""#,
    );
}
