use serde_json::json;

use super::*;

fn model() -> Model {
    let mut model = Model::new("op", "1.0.0", "op-system");
    let object = |kind: &str, name: &str| json!({"kind": kind, "metadata": {"name": name}});
    model.add(Part::Manager, object("Namespace", "op-system"));
    model.add(
        Part::Crd,
        json!({"kind": "CustomResourceDefinition", "metadata": {"name": "robots.opkit.dev"},
            "spec": {"group": "opkit.dev", "names": {"plural": "robots", "kind": "Robot"}}}),
    );
    model.add_kind_roles();
    model.add(Part::Rbac, object("ClusterRole", "op-manager-role"));
    model.add(Part::Rbac, object("RoleBinding", "op-manager-rolebinding"));
    model.add(
        Part::Rbac,
        object("RoleBinding", "op-leader-election-rolebinding"),
    );
    model.add(
        Part::Manager,
        json!({"kind": "Deployment", "metadata": {"name": "op-controller-manager"},
            "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "op:1.0.0"}]}}}}),
    );
    model
}

fn paths(files: &[ManifestFile]) -> Vec<&str> {
    files.iter().map(|file| file.path.as_str()).collect()
}

fn text<'a>(files: &'a [ManifestFile], path: &str) -> &'a str {
    let file = files.iter().find(|file| file.path == path);
    file.map_or("", |file| &file.text)
}

#[test]
fn the_files_sort_in_the_order_of_creation() {
    let files = files(&model(), &Settings::default()).unwrap();
    let expected = [
        "00-namespace.yaml",
        "10-crd.yaml",
        "20-rbac.yaml",
        "40-manager.yaml",
    ];
    assert_eq!(paths(&files), expected);
    assert!(files.iter().all(|file| file.text.starts_with(HEADER)));
}

#[test]
fn the_kustomize_layout_has_the_names_of_kubebuilder() {
    let files = kustomize(&model(), &Settings::default(), &["robot.yaml".to_owned()]).unwrap();
    let expected = [
        "crd/bases/opkit.dev_robots.yaml",
        "crd/kustomization.yaml",
        "default/kustomization.yaml",
        "grafana/dashboard.yaml",
        "grafana/kustomization.yaml",
        "manager/kustomization.yaml",
        "manager/manager.yaml",
        "rbac/kustomization.yaml",
        "rbac/leader_election_role_binding.yaml",
        "rbac/robot_admin_role.yaml",
        "rbac/robot_editor_role.yaml",
        "rbac/robot_viewer_role.yaml",
        "rbac/role.yaml",
        "rbac/role_binding.yaml",
        "samples/kustomization.yaml",
    ];
    assert_eq!(paths(&files), expected);
    let default = text(&files, "default/kustomization.yaml");
    assert!(default.contains("\n- ../rbac\n"), "{default}");
    assert!(default.contains("\n#- ../grafana\n"), "{default}");
    let manager = text(&files, "manager/manager.yaml");
    assert!(manager.contains("image: controller:latest"), "{manager}");
}

#[test]
fn the_image_is_split_for_kustomize() {
    for (image, expected) in [
        ("op", "newName: op\n  newTag: \"latest\""),
        (
            "localhost:5000/a/op",
            "newName: localhost:5000/a/op\n  newTag: \"latest\"",
        ),
        (
            "ghcr.io/a/op:1.10",
            "newName: ghcr.io/a/op\n  newTag: \"1.10\"",
        ),
        (
            "ghcr.io/a/op@sha256:aa",
            "newName: ghcr.io/a/op\n  digest: \"sha256:aa\"",
        ),
    ] {
        let settings = Settings {
            image: Some(image.to_owned()),
            ..Settings::default()
        };
        let files = kustomize(&model(), &settings, &[]).unwrap();
        let manager = text(&files, "manager/kustomization.yaml");
        assert!(manager.contains(expected), "{image}: {manager}");
    }
}
