use super::*;

/// The restricted Pod security standard, rule by rule.
#[test]
fn the_pod_is_restricted() {
    let object = DeploymentManifest::new("op", "op-system").document();
    let pod = &object["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    assert_eq!(
        container["securityContext"]["allowPrivilegeEscalation"],
        false
    );
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(
        container["securityContext"]["capabilities"],
        json!({"drop": ["ALL"]})
    );
}

/// The server refuses a Service whose name is longer.
#[test]
fn a_long_name_still_fits_into_that_of_the_service() {
    let name = |length: usize| metrics_service_name(&"o".repeat(length));
    assert!(name(24).ends_with("-controller-manager-metrics-service"));
    for length in [24, 25, 47] {
        assert!(name(length).len() <= SERVICE_NAME_MAX, "{length}");
    }
}

/// A Service or policy that selects no Pod is silent.
#[test]
fn everything_selects_the_labels_of_the_pods() {
    let object = DeploymentManifest::new("op", "op-system").document();
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&object["spec"]["selector"]["matchLabels"], labels);
    let service = metrics_service("op", "op-system", 8443, true);
    assert_eq!(&service["spec"]["selector"], labels);
    let budget = disruption_budget("op", "op-system");
    assert_eq!(&budget["spec"]["selector"]["matchLabels"], labels);
}

#[test]
fn a_secret_is_mounted_where_the_operator_reads_the_certificate() {
    let plain = DeploymentManifest::new("op", "op-system");
    assert_eq!(
        plain.document()["spec"]["template"]["spec"]["volumes"],
        Value::Null
    );
    let object = plain.webhook_secret(Some("cert".to_owned())).document();
    let pod = &object["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "cert");
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["mountPath"], WEBHOOK_CERTIFICATE_PATH);
}
