use super::*;

fn report(findings: Vec<Finding>) -> Report {
    Report {
        cluster: "kind-dev, Kubernetes 1.36.1".to_owned(),
        operator: "robot-operator".to_owned(),
        may_deploy: true,
        findings,
    }
}

#[test]
fn a_healthy_operator_is_one_line() {
    let healthy = report(Vec::new());
    assert!(!healthy.is_failure());
    assert_eq!(
        healthy.to_string(),
        "ok    cluster       kind-dev, Kubernetes 1.36.1; you may do all that deploy does; robot-operator has no problems\n"
    );
}

#[test]
fn each_problem_has_its_command_below() {
    let warning = Finding::warning("crd", "robots: 2 objects are stored as v1alpha1");
    let mut report = report(vec![
        Finding::fail("webhook", "w has no ready endpoint").command("kubectl get pods"),
        warning.clone(),
    ]);
    assert!(report.is_failure());
    assert_eq!(
        report.to_string(),
        "ok    cluster       kind-dev, Kubernetes 1.36.1; you may do all that deploy does\n\
         FAIL  webhook       w has no ready endpoint\n\
         \x20                   kubectl get pods\n\
         warn  crd           robots: 2 objects are stored as v1alpha1\n"
    );
    report.findings = vec![warning];
    assert!(!report.is_failure());
}
