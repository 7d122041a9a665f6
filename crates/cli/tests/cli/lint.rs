//! `opkit lint`, `opkit docs` and `opkit manifests --max-description`, on files and a binary.

use std::os::unix::fs::PermissionsExt;

use super::*;

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: robots.example.com
spec:
  group: example.com
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
        description: A robot. It walks.
        type: object
        properties:
          spec:
            description: Desired state. All of it.
            type: object
            properties:
              speed: {description: Speed., type: integer, format: int32, nullable: true}
"#;

fn directory(crd: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("robots.yaml"), crd).unwrap();
    directory
}

fn run(directory: &Path, arguments: &str) -> (i32, String, String) {
    let output = opkit(directory)
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap();
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_warning_is_printed_and_an_error_exits_with_1() {
    let good = directory(CRD);
    let (code, out, errors) = run(good.path(), "lint robots.yaml");
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(
        out.starts_with("warning  no-nullable              robots.example.com v1 .spec.speed\n"),
        "{out}"
    );
    assert!(out.ends_with("\n0 errors, 1 warning\n"), "{out}");
    assert_eq!(run(good.path(), "lint . --strict").0, 1);
    let (code, out, _) = run(good.path(), "lint . --strict --disable no-nullable");
    assert_eq!((code, out.as_str()), (0, "0 errors, 0 warnings\n"));
    assert_eq!(run(good.path(), "lint . --disable no-such-rule").0, 2);

    let bad = directory(&CRD.replace("speed:", "max_speed:"));
    let (code, out, errors) = run(bad.path(), "lint robots.yaml --output json");
    assert_eq!((code, errors.as_str()), (1, ""));
    let findings: serde_json::Value = serde_json::from_str(&out).unwrap();
    let first = &findings["findings"][0];
    assert_eq!(first["rule"], "field-name");
    assert_eq!(first["severity"], "error");
    assert_eq!(first["path"], ".spec.max_speed");

    let (code, out, errors) = run(bad.path(), "lint missing.yaml");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(errors.contains("cannot read missing.yaml"), "{errors}");
    let (code, out, _) = run(bad.path(), "lint --rules");
    assert_eq!(code, 0);
    assert!(out.contains("\nerror    field-name "), "{out}");
}

#[test]
fn the_reference_is_written_and_checked() {
    let directory = directory(CRD);
    let here = directory.path();
    let (code, _, errors) = run(here, "docs robots.yaml --check");
    assert_eq!(code, 1);
    assert!(errors.contains("docs/api/README.md is missing"), "{errors}");
    let (code, out, errors) = run(here, "docs robots.yaml");
    assert_eq!(code, 0, "{errors}");
    assert_eq!(
        out,
        "pages in docs/api: 2 written, 0 removed, 0 unchanged\n\
         schemas in schemas: 1 written, 0 removed, 0 unchanged\n"
    );
    let page = fs::read_to_string(here.join("docs/api/robots.example.com.md")).unwrap();
    assert!(page.contains("\n# Robot\n"), "{page}");
    let schema = fs::read_to_string(here.join("schemas/example.com/robot_v1.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["properties"]["kind"]["enum"][0], "Robot");
    assert_eq!(run(here, "docs robots.yaml --check").0, 0);

    // Another kind: the files of the first are removed, those of others stay.
    fs::write(here.join("docs/api/own.md"), "# Mine\n").unwrap();
    fs::write(here.join("schemas/own.json"), "{}\n").unwrap();
    let renamed = CRD
        .replace("robots", "arms")
        .replace("Robot", "Arm")
        .replace("robot", "arm");
    fs::write(here.join("robots.yaml"), renamed).unwrap();
    let (code, _, errors) = run(here, "docs robots.yaml --check");
    assert_eq!(code, 1);
    assert!(
        errors.contains("docs/api/robots.example.com.md is no longer printed"),
        "{errors}"
    );
    let (_, out, _) = run(here, "docs robots.yaml");
    assert!(out.contains("schemas: 1 written, 1 removed"), "{out}");
    assert!(here.join("docs/api/own.md").exists() && here.join("schemas/own.json").exists());
}

#[test]
fn descriptions_of_manifests_are_cut() {
    let directory = TempDir::new().unwrap();
    let crds: serde_json::Value = serde_saphyr::from_str(CRD).unwrap();
    let model = serde_json::json!({
        "apiVersion": "model.opkit.dev/v1", "operator": "op", "version": "0.1.0",
        "namespace": "op-system", "objects": [{"part": "crd", "object": crds}],
    });
    let program = directory.path().join("op");
    fs::write(&program, format!("#!/bin/sh\ncat <<'END'\n{model}\nEND\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (flag, expected) in [
        ("", Some("A robot. It walks.")),
        (" --max-description 10", Some("A robot.")),
        (" --max-description 0", None),
    ] {
        let arguments = format!("manifests --binary op --image a/op:1 --output json{flag}");
        let (code, out, errors) = run(directory.path(), &arguments);
        assert_eq!(code, 0, "{errors}");
        let list: serde_json::Value = serde_json::from_str(&out).unwrap();
        let schema = &list["items"][0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(schema["description"].as_str(), expected);
    }
}
