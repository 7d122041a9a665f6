//! `opkit crd check` against files, git revisions and a control plane in another process.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::*;

const CRD: &str = "robots.fleet.opkit.dev";

fn crd(maximum: u64) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD},
        "spec": {
            "group": "fleet.opkit.dev", "scope": "Namespaced",
            "names": {"plural": "robots", "singular": "robot", "kind": "Robot", "listKind": "RobotList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "maximum": maximum},
                    }},
                }}},
            }],
        },
    })
}

fn write(root: &TempDir, path: &str, document: &Value) {
    let path = root.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, document.to_string()).unwrap();
}

fn check(root: &TempDir, arguments: &[&str]) -> Output {
    let mut command = opkit(root.path());
    command.args(["crd", "check"]).args(arguments);
    command.env("KUBECONFIG", root.path().join(".opkit/kubeconfig"));
    command.output().unwrap()
}

fn stdout(output: &Output, code: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

const UNSAFE: &str = "\
robots.fleet.opkit.dev
   BREAKS  v1  .spec.size  maximum  maximum decreased: 100 -> 50
1 breaking change (rules and names as in OLM v1)
";

#[test]
fn files_and_directories_are_compared() {
    let root = TempDir::new().unwrap();
    write(&root, "old.json", &crd(100));
    write(&root, "new/crds/robots.yaml", &crd(50));
    write(&root, "new/kustomization.yaml", &json!({"resources": []}));

    let output = check(&root, &["--against", "old.json", "--crds", "new"]);
    assert_eq!(stdout(&output, 1), UNSAFE);
    assert!(output.stderr.is_empty());

    let output = check(&root, &["--against", "new", "--crds", "old.json"]);
    assert!(stdout(&output, 0).contains("maximum increased: 50 -> 100"));

    let json = ["--against", "old.json", "--crds", "new", "--output", "json"];
    let result: Value = serde_json::from_str(&stdout(&check(&root, &json), 1)).unwrap();
    assert_eq!(result["safe"], json!(false));
    assert_eq!(
        result["crds"][0],
        json!({"name": CRD, "changes": [{
            "version": "v1", "field": ".spec.size", "verdict": "breaking", "rule": "maximum",
            "message": "maximum decreased: 100 -> 50",
        }]})
    );

    let missing = check(&root, &["--against", "v0.1.0", "--crds", "new"]);
    refused(
        &missing,
        &["--against v0.1.0", "no such file", "git revision"],
    );
    write(&root, "service.yaml", &json!({"kind": "Service"}));
    let other = check(&root, &["--against", "service.yaml", "--crds", "new"]);
    refused(&other, &["service.yaml has no CustomResourceDefinition"]);
}

fn git(root: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]);
    let status = git
        .args(arguments)
        .current_dir(root)
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "git {arguments:?}");
}

#[test]
fn the_crds_of_a_git_revision_are_compared() {
    let root = TempDir::new().unwrap();
    write(&root, "config/crd/robots.yaml", &crd(100));
    git(root.path(), &["init", "--quiet"]);
    git(root.path(), &["add", "--all"]);
    git(root.path(), &["commit", "--quiet", "--message", "one"]);
    git(root.path(), &["tag", "v0.1.0"]);
    write(&root, "config/crd/robots.yaml", &crd(50));

    for against in ["v0.1.0", "HEAD", "v0.1.0:config/crd"] {
        let output = check(&root, &["--against", against, "--crds", "config/crd"]);
        assert_eq!(stdout(&output, 1), UNSAFE, "{against}");
    }
    let output = check(&root, &["--against", "HEAD:docs", "--crds", "config/crd"]);
    refused(&output, &["HEAD has no file under docs", CRD]);

    write(&root, "bundle/robots.yaml", &crd(70));
    git(root.path(), &["add", "--all"]);
    git(root.path(), &["commit", "--quiet", "--message", "two"]);
    let output = check(&root, &["--against", "HEAD", "--crds", "config/crd"]);
    refused(
        &output,
        &["bundle/robots.yaml", "config/crd/robots.yaml", "HEAD:PATH"],
    );
}

/// The source of an operator that prints a model with a CRD of this maximum.
fn operator(maximum: u64) -> String {
    let mut model = opkit_manifests::Model::new("op", "0.0.0", "op-system");
    model.add(opkit_manifests::Part::Crd, crd(maximum));
    let model = serde_json::to_string(&model).unwrap();
    format!("fn main() {{ println!(\"{{}}\", {model:?}) }}")
}

#[test]
fn a_git_revision_without_crds_is_built() {
    let root = workspace(&operator(100));
    fs::write(root.path().join(".gitignore"), "/target\n").unwrap();
    git(root.path(), &["init", "--quiet"]);
    git(root.path(), &["add", "--all"]);
    git(root.path(), &["commit", "--quiet", "--message", "one"]);
    fs::write(root.path().join("op/src/main.rs"), operator(50)).unwrap();
    // The second call finds the builds of the first one.
    for _ in 0..2 {
        let output = check(&root, &["--against", "HEAD"]);
        let printed = stdout(&output, 1);
        assert!(printed.ends_with(UNSAFE), "{printed}");
    }
    let mut list = Command::new("git");
    let list = list.args(["worktree", "list"]).current_dir(root.path());
    let listed = String::from_utf8(list.output().unwrap().stdout).unwrap();
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

/// Creates a repository with an operator in it, and the package that it depends on beside it, as
/// `opkit new` does in a directory beside a checkout of opkit. Returns its directory.
fn beside_a_checkout(root: &TempDir) -> PathBuf {
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let manifest = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n{rest}")
    };
    write("opkit/Cargo.toml", &manifest("opkit", ""));
    write("opkit/src/lib.rs", "");
    let dependency = "[dependencies]\nopkit = { path = \"../opkit\" }\n";
    write("op/Cargo.toml", &manifest("op", dependency));
    write("op/src/main.rs", &operator(100));
    write("op/.gitignore", "/target\n");
    let op = root.path().join("op");
    git(&op, &["init", "--quiet"]);
    git(&op, &["add", "--all"]);
    git(&op, &["commit", "--quiet", "--message", "one"]);
    op
}

#[test]
fn a_revision_is_built_beside_what_it_depends_on() {
    let root = TempDir::new().unwrap();
    let op = beside_a_checkout(&root);
    fs::write(op.join("src/main.rs"), operator(50)).unwrap();
    let check = || {
        let mut command = opkit(&op);
        command.args(["crd", "check", "--against", "HEAD"]);
        stdout(&command.output().unwrap(), 1)
    };
    let printed = check();
    assert!(printed.ends_with(UNSAFE), "{printed}");

    // The directory is a workspace since the revision.
    let manifest = fs::read_to_string(op.join("Cargo.toml")).unwrap();
    fs::write(op.join("Cargo.toml"), manifest + "\n[workspace]\n").unwrap();
    let printed = check();
    assert!(printed.ends_with(UNSAFE), "{printed}");
    let names = fs::read_dir(root.path()).unwrap();
    let mut names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["op", "opkit"], "the worktree is removed");
}

/// Returns a CRD of another kind.
fn arms(maximum: u64) -> Value {
    let text = crd(maximum).to_string();
    let text = text.replace("robots", "arms").replace("Robot", "Arm");
    serde_json::from_str(&text.replace("\"robot\"", "\"arm\"")).unwrap()
}

#[test]
fn a_crd_that_is_not_committed_is_that_of_the_build() {
    let both = |maximum: u64| {
        let mut model = opkit_manifests::Model::new("op", "0.0.0", "op-system");
        for crd in [crd(maximum), arms(maximum)] {
            model.add(opkit_manifests::Part::Crd, crd);
        }
        let model = serde_json::to_string(&model).unwrap();
        format!("fn main() {{ println!(\"{{}}\", {model:?}) }}")
    };
    let root = TempDir::new().unwrap();
    let op = beside_a_checkout(&root);
    fs::create_dir(op.join("crds")).unwrap();
    fs::write(op.join("crds/robots.yaml"), crd(100).to_string()).unwrap();
    fs::write(op.join("src/main.rs"), both(100)).unwrap();
    git(&op, &["add", "--all"]);
    git(&op, &["commit", "--quiet", "--message", "two"]);
    fs::write(op.join("src/main.rs"), both(50)).unwrap();
    let check = |arguments: &[&str]| {
        let mut command = opkit(&op);
        command.args(["crd", "check"]).args(arguments);
        command.output().unwrap()
    };
    let printed = stdout(&check(&["--against", "HEAD"]), 1);
    assert!(
        printed.contains("arms.fleet.opkit.dev\n   BREAKS  v1  .spec.size"),
        "{printed}"
    );
    assert!(printed.contains("2 breaking changes"), "{printed}");

    // Only files are compared.
    fs::create_dir(op.join("new")).unwrap();
    fs::write(op.join("new/arms.yaml"), arms(50).to_string()).unwrap();
    fs::write(op.join("new/robots.yaml"), crd(100).to_string()).unwrap();
    let expected = "\
arms.fleet.opkit.dev
   ok      -  -  crd  new CRD
   note: HEAD has no file with this CRD, and is not built
robots.fleet.opkit.dev
   no changes
0 breaking changes (rules and names as in OLM v1)
";
    let printed = check(&["--against", "HEAD", "--crds", "new"]);
    assert_eq!(stdout(&printed, 0), expected);
    let printed = stdout(&check(&["--against", "HEAD:crds"]), 1);
    let note = "   note: HEAD has no file under crds with this CRD, and is not built\n";
    assert!(printed.contains(note), "{printed}");
}

#[tokio::test]
async fn stored_objects_of_a_cluster_are_validated() {
    let root = TempDir::new().unwrap();
    let mut up = opkit(root.path());
    up.args(["cluster", "up", "--no-controllers"]);
    let _child = Killed(up.stdout(Stdio::null()).spawn().unwrap());
    let path = root.path().join(".opkit/kubeconfig");
    wait(|| fs::read_to_string(&path).is_ok_and(|text| text.contains("https://127.0.0.1:")));
    let client = client(&path).await;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let old = serde_json::from_value(crd(100)).unwrap();
    crds.create(&PostParams::default(), &old).await.unwrap();
    let kind = GroupVersionKind::gvk("fleet.opkit.dev", "v1", "Robot");
    let resource = ApiResource::from_gvk_with_plural(&kind, "robots");
    let robots: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    for (name, size) in [("one", 20), ("two", 60), ("three", 70)] {
        let robot = json!({"apiVersion": "fleet.opkit.dev/v1", "kind": "Robot",
            "metadata": {"name": name}, "spec": {"size": size}});
        let params = PatchParams::apply("test");
        robots
            .patch(name, &params, &Patch::Apply(&robot))
            .await
            .unwrap();
    }
    write(&root, "new.json", &crd(50));

    let output = check(&root, &["--against", "cluster", "--crds", "new.json"]);
    let printed = stdout(&output, 1);
    let expected = "of 3 stored objects, read as v1, 2 would no longer validate\n      default/three: spec.size: Invalid value: 70: spec.size in body should be less than or equal to 50\n      default/two: ";
    assert!(printed.contains(expected), "{printed}");

    let mut other = crd(100);
    other["spec"]["versions"][0]["name"] = json!("v2");
    write(&root, "other.json", &other);
    let output = check(&root, &["--against", "cluster", "--crds", "other.json"]);
    let note = "   note: stored objects were not validated: both CRDs serve no version in common\n";
    let printed = stdout(&output, 1);
    assert!(printed.contains(note), "{printed}");

    write(&root, "same.json", &crd(100));
    let output = check(&root, &["--against", "cluster", "--crds", "same.json"]);
    let expected = "\
robots.fleet.opkit.dev
   no changes
   of 3 stored objects, read as v1, 0 would no longer validate
0 breaking changes (rules and names as in OLM v1)
";
    assert_eq!(stdout(&output, 0), expected);
}
