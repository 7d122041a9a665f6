//! Helm: a chart is installed, upgraded, rolled back and uninstalled on the embedded cluster.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::checks::Checks;
use super::cluster::{Cluster, count};
use super::report::Report;
use super::{Setup, module};

const MODULE: &str = "helm.sh/helm/v3@v3.22.0";

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const INGRESS: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses/web";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICE: &str = "/api/v1/namespaces/default/services/web";
const SERVICE_ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/web";
const ENDPOINT_SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices\
                               ?labelSelector=kubernetes.io%2Fservice-name%3Dweb";
const RELEASES: &str = "/api/v1/namespaces/default/secrets?labelSelector=owner%3Dhelm";

/// Image tags of the two revisions of the chart.
const TAGS: [&str; 2] = ["1.27", "1.28"];

/// Runs the steps, and prints a line for each. Returns whether all checks passed.
pub(super) fn run(setup: &Setup) -> Result<bool> {
    let executable = build(setup)?;
    let directory = setup.directory.join("helm-work");
    let _ = fs::remove_dir_all(&directory);
    let cluster = Cluster::start(&setup.command, &directory)?;
    let helm = Helm {
        executable,
        directory,
        cluster,
    };
    helm.run(&["create", "web"])?;
    let mut report = Report::new(MODULE, &[]);
    for (name, step) in [
        ("install", install as fn(&Helm, &mut Checks)),
        ("upgrade", upgrade),
        ("rollback", rollback),
        ("uninstall", uninstall),
    ] {
        let mut checks = Checks::start();
        step(&helm, &mut checks);
        report.add(name, checks.finish(), None);
    }
    Ok(report.finish())
}

/// Builds Helm in a copy of its module. Returns the path of the executable.
fn build(setup: &Setup) -> Result<PathBuf> {
    let source = setup.directory.join("helm");
    module::copy(MODULE, &source)?;
    let executable = source.join(".built/helm");
    let status = module::go(&source)
        .args(["build", "-o"])
        .arg(&executable)
        .arg("./cmd/helm")
        .status()
        .context("cannot run go build")?;
    ensure!(status.success(), "Helm does not build");
    Ok(executable)
}

fn install(helm: &Helm, checks: &mut Checks) {
    let tag = format!("image.tag={}", TAGS[0]);
    let arguments = [
        "install",
        "web",
        "./web",
        "--set",
        "replicaCount=2",
        "--set",
        &tag,
    ];
    checks.check("helm install --wait succeeds", helm.wait(&arguments));
    helm.check_release(checks, 1);
    helm.check_pods(checks, 2, TAGS[0]);
    let found = helm.cluster.get(SERVICE);
    checks.check(
        "the Service has a cluster IP",
        found.and_then(|service| {
            let ip = text(service.as_ref(), "/spec/clusterIP");
            let ip: IpAddr = ip.parse().context("no cluster IP")?;
            ensure!(!ip.is_unspecified(), "the cluster IP is {ip}");
            Ok(())
        }),
    );
    checks.check(
        "the ServiceAccount exists",
        helm.expect(SERVICE_ACCOUNT, |found| found.is_some()),
    );
}

fn upgrade(helm: &Helm, checks: &mut Checks) {
    let before = helm.cluster.get(SERVICE).ok().flatten();
    let tag = format!("image.tag={}", TAGS[1]);
    let mut arguments = vec!["upgrade", "web", "./web", "--set", "replicaCount=3"];
    arguments.extend(["--set", &tag, "--set", "ingress.enabled=true"]);
    let mut dry_run = arguments.clone();
    dry_run.push("--dry-run=server");
    checks.check(
        "helm upgrade --dry-run=server succeeds",
        helm.wait(&dry_run),
    );
    helm.check_release(checks, 1);
    checks.check("helm upgrade --wait succeeds", helm.wait(&arguments));
    helm.check_release(checks, 2);
    helm.check_pods(checks, 3, TAGS[1]);
    checks.check(
        "the Service keeps its cluster IP",
        helm.expect(SERVICE, |found| {
            text(found, "/spec/clusterIP") == text(before.as_ref(), "/spec/clusterIP")
        }),
    );
    checks.check(
        "the Ingress exists",
        helm.expect(INGRESS, |found| found.is_some()),
    );
}

fn rollback(helm: &Helm, checks: &mut Checks) {
    let result = helm.wait(&["rollback", "web", "1"]);
    checks.check("helm rollback --wait succeeds", result);
    helm.check_release(checks, 3);
    helm.check_pods(checks, 2, TAGS[0]);
    checks.check(
        "the Deployment has the revision 3, and both ReplicaSets",
        helm.expect(DEPLOYMENT, |found| {
            let path = "/metadata/annotations/deployment.kubernetes.io~1revision";
            text(found, path) == "3"
        })
        .and_then(|()| helm.expect(REPLICA_SETS, |found| count(found) == 2)),
    );
    checks.check(
        "the Ingress is deleted",
        helm.expect(INGRESS, |found| found.is_none()),
    );
    checks.check(
        "the history has the revisions 1 to 3",
        helm.json(&["history", "web"]).and_then(|history| {
            let revisions: Vec<i64> = history
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.get("revision")?.as_i64())
                .collect();
            ensure!(revisions == [1, 2, 3], "the history is {history}");
            Ok(())
        }),
    );
}

fn uninstall(helm: &Helm, checks: &mut Checks) {
    let result = helm.wait(&["uninstall", "web"]);
    checks.check("helm uninstall --wait succeeds", result);
    checks.check(
        "helm list is empty",
        helm.json(&["list"]).and_then(|list| {
            ensure!(list == serde_json::json!([]), "the list is {list}");
            Ok(())
        }),
    );
    for (name, path) in [
        ("the Deployment", DEPLOYMENT),
        ("the Service", SERVICE),
        ("the ServiceAccount", SERVICE_ACCOUNT),
    ] {
        let result = helm.expect(path, |found| found.is_none());
        checks.check(&format!("{name} is deleted"), result);
    }
    for (name, path) in [
        ("ReplicaSets", REPLICA_SETS),
        ("Pods", PODS),
        ("EndpointSlices", ENDPOINT_SLICES),
        ("Secrets of releases", RELEASES),
    ] {
        // The garbage collector deletes some of them after Helm has returned.
        let result = helm.cluster.wait(path, |found| count(found) == 0);
        checks.check(&format!("there are no {name}"), result);
    }
}

/// Helm with a chart `web` in its directory, and the cluster that it uses.
struct Helm {
    executable: PathBuf,
    directory: PathBuf,
    cluster: Cluster,
}

impl Helm {
    /// Runs a command that waits until the objects of the chart are ready.
    fn wait(&self, arguments: &[&str]) -> Result<()> {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--wait", "--timeout=60s"]);
        self.run(&arguments).map(drop)
    }

    /// Runs a command that prints JSON.
    fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--output", "json"]);
        serde_json::from_str(&self.run(&arguments)?).context("the output of helm is not JSON")
    }

    /// Runs a command. Returns its output.
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let home = |name: &str| self.directory.join(name);
        let output = Command::new(&self.executable)
            .args(arguments)
            .current_dir(&self.directory)
            .env("KUBECONFIG", Path::new(self.cluster.kubeconfig()))
            .env("HELM_CACHE_HOME", home("cache"))
            .env("HELM_CONFIG_HOME", home("config"))
            .env("HELM_DATA_HOME", home("data"))
            .output()
            .context("cannot run helm")?;
        ensure!(
            output.status.success(),
            "helm {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Checks the release in the output of Helm, and its Secrets in the cluster.
    fn check_release(&self, checks: &mut Checks, revision: usize) {
        let result = self.json(&["status", "web"]).and_then(|status| {
            let found = (
                text(Some(&status), "/info/status"),
                status.get("version").and_then(Value::as_u64),
            );
            let expected = u64::try_from(revision)?;
            ensure!(found == ("deployed", Some(expected)), "it is {found:?}");
            let list = self.json(&["list"])?;
            let found = text(Some(&list), "/0/revision");
            ensure!(found == revision.to_string(), "helm list is {list}");
            self.expect(RELEASES, |found| count(found) == revision)
        });
        let name = format!("the release is deployed with the revision {revision}");
        checks.check(&name, result);
    }

    /// Checks the Deployment, its Pods and the endpoints of the Service.
    fn check_pods(&self, checks: &mut Checks, replicas: usize, tag: &str) {
        let result = self.expect(DEPLOYMENT, |found| {
            let number = |path: &str| found.and_then(|found| found.pointer(path)?.as_u64());
            let expected = u64::try_from(replicas).ok();
            let image = text(found, "/spec/template/spec/containers/0/image");
            image.ends_with(&format!(":{tag}"))
                && [
                    "/spec/replicas",
                    "/status/readyReplicas",
                    "/status/updatedReplicas",
                ]
                .iter()
                .all(|path| number(path) == expected)
        });
        let name = format!("the Deployment has {replicas} ready replicas of the tag {tag}");
        checks.check(&name, result);
        let result = self.cluster.wait(PODS, |found| count(found) == replicas);
        checks.check(&format!("there are {replicas} Pods"), result);
        let result = self.cluster.wait(ENDPOINT_SLICES, |found| {
            let slices = found.and_then(|found| found.get("items")?.as_array());
            let endpoints = slices.into_iter().flatten().filter_map(|slice| {
                let endpoints = slice.get("endpoints")?.as_array()?;
                Some(endpoints.iter().filter(|endpoint| {
                    endpoint.pointer("/conditions/ready") == Some(&Value::Bool(true))
                }))
            });
            endpoints.flatten().count() == replicas
        });
        checks.check(
            &format!("the Service has {replicas} ready endpoints"),
            result,
        );
    }

    /// Checks the object or list at a path now, because Helm has waited for it.
    fn expect(&self, path: &str, condition: impl Fn(Option<&Value>) -> bool) -> Result<()> {
        let found = self.cluster.get(path)?;
        ensure!(condition(found.as_ref()), "{path} is {found:?}");
        Ok(())
    }
}

/// Returns the text at a JSON pointer, or an empty text.
fn text<'a>(object: Option<&'a Value>, pointer: &str) -> &'a str {
    let found = object.and_then(|object| object.pointer(pointer)?.as_str());
    found.unwrap_or_default()
}
