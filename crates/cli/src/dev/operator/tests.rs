use tempfile::TempDir;

use super::*;

#[test]
fn the_last_error_of_a_log_is_returned() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let check = |text: &str, expected: &str| {
        fs::write(&log, text).unwrap();
        assert_eq!(last_error(&log), expected);
    };
    check("INFO starting\nop: no kubeconfig\n\n", "op: no kubeconfig");
    check(
        "error: the following required arguments were not provided:\n  --store-url <STORE_URL>\n\n\
         Usage: op --store-url <STORE_URL> [COMMAND]\n\nFor more information, try '--help'.\n",
        "error: the following required arguments were not provided: --store-url <STORE_URL>",
    );
    check("", &format!("see {}", log.display()));
}

/// Its roles must be for the namespace that it watches outside of a pod.
#[test]
fn an_operator_of_the_namespace_of_its_pod_is_recognized() {
    let deployment = |value: &str| {
        format!(
            "---\nkind: Deployment\nspec: {{template: {{spec: {{containers: [\n  \
             {{name: manager, env: [{{name: WATCH_NAMESPACE, {value}}}]}}\n]}}}}}}\n"
        )
    };
    let own = deployment("valueFrom: {fieldRef: {fieldPath: metadata.namespace}}");
    assert!(is_namespaced(&own).unwrap());
    assert!(!is_namespaced(&deployment("value: shops")).unwrap());
    assert!(!is_namespaced("---\nkind: Namespace\n").unwrap());
}
