//! The commands of the tour in a cluster, on real Kubernetes: etcd, kube-apiserver and
//! kube-controller-manager. No container runs; the Pods become Running on a simulated node.
//! `cargo xtask conformance --control-plane binaries` runs this test.

use std::path::{Path, PathBuf};

use opkit_envtest::{Capability, ControlPlane};

use crate::guide::{Guide, words};
use crate::project::{EmptyDirectory, command_in, opkit, repository, text};
use crate::running::{Kubectl, skipped};

const NAMESPACE: &str = "robot-operator-system";
const BUDGET: &str = "poddisruptionbudget/robot-operator-controller-manager";

/// The project of the tour, and the cluster.
struct Tour {
    program: PathBuf,
    project: PathBuf,
    kubectl: Kubectl,
}

impl Tour {
    /// Runs `opkit`, which must succeed, and returns its output.
    fn opkit(&self, arguments: &[&str]) -> String {
        let mut command = command_in(&self.project, &self.program);
        command.args(arguments).env("KUBECONFIG", "real.kubeconfig");
        let output = command.output().unwrap();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}{errors}");
        out
    }

    fn exists(&self, kind: &str, name: &str) -> bool {
        let out = self.kubectl.run(&["get", kind, "-A", "-o", "name"]);
        out.lines().any(|line| line.ends_with(&format!("/{name}")))
    }

    fn has_budget(&self) -> bool {
        self.exists("poddisruptionbudgets", "robot-operator-controller-manager")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tour_on_a_real_control_plane() {
    let test = "the_tour_on_a_real_control_plane";
    if std::env::var("OPKIT_CONTROL_PLANE").as_deref() != Ok("binaries") {
        return skipped(test, "OPKIT_CONTROL_PLANE is not `binaries`");
    }
    let plane = ControlPlane::binaries().await.unwrap();
    if let Err(reason) = plane.require(Capability::ControllerManager) {
        return skipped(test, &reason.to_string());
    }
    let parent = EmptyDirectory::new("real");
    let projects = Guide::read("tour.md").follow(parent.path());
    let project = projects[0].clone();
    let lock_file = project.join("Cargo.lock");
    std::fs::copy(repository().join("Cargo.lock"), lock_file).unwrap();
    let kubeconfig = plane.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    std::fs::write(project.join("real.kubeconfig"), kubeconfig).unwrap();
    let Some(kubectl) = Kubectl::find(test, &project, "real.kubeconfig") else {
        return;
    };
    let tour = Tour {
        program: opkit(),
        project,
        kubectl,
    };
    follow(&tour);
    plane.shutdown().await.unwrap();
}

/// Runs the commands of the tour, and looks at the cluster after each.
fn follow(tour: &Tour) {
    let lines = Guide::read("tour.md").cluster_lines();
    let (last, before) = lines.split_last().unwrap();
    assert_eq!(last, "opkit undeploy");
    for line in before {
        let words = words(line);
        let arguments: Vec<_> = words.iter().skip(1).map(String::as_str).collect();
        let out = tour.opkit(&arguments);
        match line.as_str() {
            "opkit deploy" => {
                assert!(out.contains("1 of 1 available"), "{out}");
                assert!(!tour.has_budget());
            }
            "opkit deploy --rollback" => {
                assert!(out.contains("rolled back to"), "{out}");
                assert!(
                    out.contains("1 of 1 available") && out.contains(BUDGET),
                    "{out}"
                );
                assert!(!tour.has_budget());
            }
            _ if line.contains("--replicas 2") => {
                assert!(out.contains("2 of 2 available"), "{out}");
                assert!(tour.has_budget());
            }
            _ => {}
        }
    }
    changed_and_removed(tour);
}

/// A changed release prunes, the rollback restores, and nothing is left but CRDs with objects.
fn changed_and_removed(tour: &Tour) {
    tour.opkit(&["deploy", "--replicas", "2"]);
    assert!(tour.has_budget());
    let pruned = tour.opkit(&["deploy", "--with", "network-policy"]);
    assert!(
        pruned.contains(&format!("deleted        {BUDGET}")),
        "{pruned}"
    );
    assert!(!tour.has_budget());
    assert!(tour.exists("networkpolicies", "robot-operator-allow-metrics-traffic"));
    let back = tour.opkit(&["deploy", "--rollback"]);
    assert!(back.contains("2 of 2 available"), "{back}");
    assert!(tour.has_budget());
    assert!(!tour.exists("networkpolicies", "robot-operator-allow-metrics-traffic"));

    // The kind without webhooks: nothing of the operator runs.
    let sample = Path::new("config/samples/arm.yaml");
    tour.kubectl.run(&["apply", "-f", sample.to_str().unwrap()]);
    let gone = tour.opkit(&["undeploy"]);
    assert!(
        gone.contains("kept           crd arms.robot.example.com"),
        "{gone}"
    );
    assert!(gone.contains("1 CRDs deleted, 1 kept"), "{gone}");
    assert!(!tour.exists("namespaces", NAMESPACE));
    assert!(!tour.exists("crds", "robots.robot.example.com"));
    for kind in [
        "clusterroles",
        "clusterrolebindings",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ] {
        let out = tour.kubectl.run(&["get", kind, "-o", "name"]);
        assert!(!out.contains("robot-operator"), "{out}");
    }
    tour.opkit(&["uninstall", "--force"]);
    assert!(!tour.exists("crds", "arms.robot.example.com"));
}
