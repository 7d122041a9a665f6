//! `opkit types from-crd`, on files and on a cluster in another process.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;

use super::*;

const CRDS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: robots.types.opkit.dev}
spec:
  group: types.opkit.dev
  scope: Namespaced
  names: {plural: robots, singular: robot, kind: Robot, listKind: RobotList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        description: A robot.
        type: object
        required: [spec]
        properties:
          spec:
            description: Desired state.
            type: object
            required: [size]
            properties:
              size: {description: Size in cm., type: integer, format: int32, minimum: 1}
              mode: {type: string, enum: [Walk, Fly], default: Walk}
          status:
            description: Observed state.
            type: object
            properties:
              observedGeneration: {type: integer, format: int64}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: arms.types.opkit.dev}
spec:
  group: types.opkit.dev
  scope: Cluster
  names: {plural: arms, singular: arm, kind: Arm, listKind: ArmList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec: {type: object, properties: {tags: {type: array, items: {type: string}}}}
"#;

const ROBOT: &str = r#"//! The kind `Robot` of types.opkit.dev/v1, generated from its CRD.

/// Desired state.
#[opkit::kind(
    group = "types.opkit.dev",
    version = "v1",
    namespaced,
    status = RobotStatus,
    description = "A robot."
)]
#[opkit(printcolumn(age))]
pub struct RobotSpec {
    #[opkit(default = RobotMode::Walk)]
    pub mode: RobotMode,
    /// Size in cm.
    #[opkit(min = 1)]
    pub size: i32,
}

/// Observed state.
#[opkit::status]
#[allow(deprecated)]
pub struct RobotStatus {
    pub observed_generation: Option<i64>,
}

#[opkit::schema]
pub enum RobotMode {
    Walk,
    Fly,
}
"#;

fn directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("crds.yaml"), CRDS).unwrap();
    directory
}

fn run(directory: &Path, arguments: &str) -> (i32, String, String) {
    let output = opkit(directory)
        .args(["types", "from-crd"])
        .args(arguments.split(' '))
        .env("KUBECONFIG", directory.join(".opkit/kubeconfig"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap();
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_types_of_one_kind_are_printed() {
    let root = directory();
    let expected = (0, ROBOT.to_owned(), String::new());
    assert_eq!(run(root.path(), "crds.yaml Robot"), expected);
    assert_eq!(
        run(root.path(), "crds.yaml robots.types.opkit.dev"),
        expected
    );
    assert_eq!(run(root.path(), "crds.yaml robot --version v1"), expected);
}

#[test]
fn several_kinds_are_written_to_a_directory() {
    let root = directory();
    let (code, _, errors) = run(root.path(), "crds.yaml");
    let expected = "opkit: crds.yaml has several kinds, Robot, Arm: name one of them, or write them to a directory with --out\n";
    assert_eq!((code, errors.as_str()), (1, expected));

    let (code, out, errors) = run(root.path(), "crds.yaml --out src/kinds");
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(out.contains("written: src/kinds/arm.rs\n"), "{out}");
    let robot = root.path().join("src/kinds/robot.rs");
    assert_eq!(fs::read_to_string(&robot).unwrap(), ROBOT);

    // A generated file is written again; a file of the user is not.
    let (code, ..) = run(root.path(), "crds.yaml --out src/kinds");
    assert_eq!(code, 0);
    fs::write(&robot, "// mine\n").unwrap();
    let (code, _, errors) = run(root.path(), "crds.yaml --out src/kinds");
    let expected = "opkit: src/kinds/robot.rs was not written by this command: choose another path, or replace it with --force (nothing was written)\n";
    assert_eq!((code, errors.as_str()), (1, expected));
    assert_eq!(fs::read_to_string(&robot).unwrap(), "// mine\n");
    let (code, ..) = run(root.path(), "crds.yaml --out src/kinds --force");
    assert_eq!(code, 0);
    assert_eq!(fs::read_to_string(&robot).unwrap(), ROBOT);
}

#[test]
fn a_wrong_source_is_named() {
    let root = directory();
    let check = |arguments: &str, code: i32, expected: &str| {
        let (found, _, errors) = run(root.path(), arguments);
        assert_eq!(found, code, "{errors}");
        assert!(errors.contains(expected), "{errors}");
    };
    check(
        "crds.yaml Leg",
        1,
        "opkit: crds.yaml has no CRD of the kind Leg\n",
    );
    check(
        "crds.yaml Robot --version v2",
        1,
        "opkit: robots.types.opkit.dev: there is no version v2: it has v1\n",
    );
    check("missing.yaml", 1, "opkit: cannot read missing.yaml: ");
    check("crds.yaml --force", 2, "--out <PATH>");
    check(
        "crds.yaml --out kinds.rs",
        1,
        "--out kinds.rs is one file, but there are 2 kinds",
    );
    check("cluster", 2, "opkit: name the kinds or CRDs of the cluster");
}

#[tokio::test]
async fn the_crds_of_a_cluster_are_read() {
    let root = TempDir::new().unwrap();
    let mut up = opkit(root.path());
    up.args(["cluster", "up", "--no-controllers"]);
    let _child = Killed(up.stdout(Stdio::null()).spawn().unwrap());
    let path = root.path().join(".opkit/kubeconfig");
    wait(|| fs::read_to_string(&path).is_ok_and(|text| text.contains("https://127.0.0.1:")));
    let crds: Api<CustomResourceDefinition> = Api::all(client(&path).await);
    let documents: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(CRDS).unwrap();
    for crd in documents {
        crds.create(&PostParams::default(), &crd).await.unwrap();
    }
    let expected = (0, ROBOT.to_owned(), String::new());
    assert_eq!(run(root.path(), "cluster Robot"), expected);
}
