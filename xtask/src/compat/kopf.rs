//! kopf: an operator in Python runs on the embedded cluster, and the effect of each handler is
//! checked from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Setup;
use super::checks::Checks;
use super::cluster::Cluster;
use super::report::Report;

const PACKAGE: &str = "kopf==1.45.2";
const OPERATOR: &str = include_str!("kopf/operator.py");
const CRD: &str = include_str!("kopf/crd.yaml");

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/compat.opkit.example/v1/namespaces/default/gadgets";
const GADGET: &str = "/apis/compat.opkit.example/v1/namespaces/default/gadgets/one";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// Finalizer of kopf, which it adds if there is a handler for deletion.
const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// Runs the operator, and prints a line for each handler. Returns whether all checks passed.
pub(super) fn run(setup: &Setup) -> Result<bool> {
    let executable = environment(&setup.directory.join("kopf"))?;
    let directory = setup.directory.join("kopf-work");
    let _ = fs::remove_dir_all(&directory);
    let cluster = Cluster::start(&setup.command, &directory)?;
    cluster.create(CRDS, CRD)?;
    let name = format!("{CRDS}/gadgets.compat.opkit.example");
    cluster.wait(&name, is_established)?;
    let _operator = Operator::start(&executable, &directory, cluster.kubeconfig())?;

    let mut report = Report::new(PACKAGE, &[]);
    for (name, step) in [
        ("create", create as fn(&Cluster, &mut Checks)),
        ("update", update),
        ("timer", timer),
        ("delete", delete),
    ] {
        let mut checks = Checks::start();
        step(&cluster, &mut checks);
        report.add(name, checks.finish(), None);
    }
    Ok(report.finish())
}

/// Creates a virtual environment with kopf, unless an earlier call has done so. Returns the path of
/// its command `kopf`.
fn environment(directory: &Path) -> Result<PathBuf> {
    // Written last, so that an interrupted installation is repeated.
    let marker = directory.join(".opkit-package");
    let executable = directory.join("bin/kopf");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == PACKAGE) {
        return Ok(executable);
    }
    let status = Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(directory)
        .status()
        .context("cannot run python3")?;
    ensure!(status.success(), "python3 -m venv failed");
    let status = Command::new(directory.join("bin/pip"))
        .args(["install", "--quiet", PACKAGE])
        .status()
        .context("cannot run pip")?;
    ensure!(status.success(), "pip install {PACKAGE} failed");
    fs::write(&marker, PACKAGE).with_context(|| format!("cannot write {}", marker.display()))?;
    Ok(executable)
}

fn create(cluster: &Cluster, checks: &mut Checks) {
    let gadget = json!({
        "apiVersion": "compat.opkit.example/v1", "kind": "Gadget",
        "metadata": {"name": "one"}, "spec": {"size": 1},
    });
    let result = cluster.create(GADGETS, &gadget.to_string());
    checks.check("a Gadget can be created", result);
    let annotation = |name: &str| format!("/metadata/annotations/{}", name.replace('/', "~1"));
    let created = annotation("compat.opkit.example/created");
    let handled = annotation("kopf.zalando.org/last-handled-configuration");
    for (name, pointer, value) in [
        (
            "the handler sets the annotation",
            &*created,
            Some(json!("yes")),
        ),
        (
            "the handler sets the status",
            "/status/size",
            Some(json!(1)),
        ),
        (
            "kopf stores the result of the handler",
            "/status/created",
            Some(json!("done")),
        ),
        ("kopf records the configuration", &*handled, None),
        (
            "kopf adds its finalizer",
            "/metadata/finalizers/0",
            Some(json!(FINALIZER)),
        ),
    ] {
        let result = cluster.wait(GADGET, |gadget| {
            let found = at(gadget, pointer);
            value
                .as_ref()
                .map_or(found.is_some(), |value| found == Some(value))
        });
        checks.check(name, result);
    }
}

fn update(cluster: &Cluster, checks: &mut Checks) {
    let result = cluster.patch(GADGET, &json!({"spec": {"size": 2}}));
    checks.check("the Gadget can be changed", result);
    let result = cluster.wait(GADGET, |gadget| {
        at(gadget, "/status/size") == Some(&json!(2))
            && at(gadget, "/status/previousSize") == Some(&json!(1))
    });
    checks.check("the handler gets the old and the new value", result);
}

fn timer(cluster: &Cluster, checks: &mut Checks) {
    let ticks = |gadget: Option<&Value>| at(gadget, "/status/ticks").and_then(Value::as_u64);
    let before = cluster.get(GADGET).map(|gadget| ticks(gadget.as_ref()));
    let result = before.and_then(|before| {
        let enough = before.unwrap_or(0) + 2;
        cluster.wait(GADGET, |gadget| ticks(gadget) >= Some(enough))
    });
    checks.check("the timer runs repeatedly", result);
}

fn delete(cluster: &Cluster, checks: &mut Checks) {
    checks.check("the Gadget can be deleted", cluster.delete(GADGET));
    let result = cluster.get(GADGET).and_then(|gadget| {
        let gadget = gadget.as_ref();
        ensure!(
            at(gadget, "/metadata/deletionTimestamp").is_some()
                && at(gadget, "/metadata/finalizers/0") == Some(&json!(FINALIZER)),
            "it is {gadget:?}"
        );
        Ok(())
    });
    checks.check(
        "the finalizer keeps the Gadget until the handler succeeds",
        result,
    );
    let result = cluster.wait(GADGET, |gadget| gadget.is_none());
    checks.check("kopf removes the finalizer, and the Gadget is gone", result);
    let result = cluster.wait(EVENTS, |events| {
        let events = events.and_then(|events| events.get("items")?.as_array());
        events.into_iter().flatten().any(|event| {
            at(Some(event), "/reason") == Some(&json!("CleanedUp"))
                && at(Some(event), "/involvedObject/name") == Some(&json!("one"))
        })
    });
    checks.check("the handler's event is stored", result);
}

fn is_established(crd: Option<&Value>) -> bool {
    let conditions = at(crd, "/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        at(Some(condition), "/type") == Some(&json!("Established"))
            && at(Some(condition), "/status") == Some(&json!("True"))
    })
}

fn at<'a>(object: Option<&'a Value>, pointer: &str) -> Option<&'a Value> {
    object.and_then(|object| object.pointer(pointer))
}

/// Process of the operator, which ends when this is dropped.
struct Operator(Child);

impl Operator {
    /// Starts the operator with its source and its log in `directory`.
    fn start(executable: &Path, directory: &Path, kubeconfig: &Path) -> Result<Self> {
        let source = directory.join("operator.py");
        fs::write(&source, OPERATOR)
            .with_context(|| format!("cannot write {}", source.display()))?;
        let log = fs::File::create(directory.join("operator.log"))?;
        let process = Command::new(executable)
            .args(["run", "--standalone", "--all-namespaces", "--verbose"])
            .arg(&source)
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start kopf")?;
        Ok(Self(process))
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
