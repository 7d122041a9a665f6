use std::path::Path;

use super::*;
use crate::golden::{self, check_format};

/// Returns the project in `shop`, which is written for these tests.
fn shop() -> KubebuilderProject {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/import/shop");
    KubebuilderProject::read(&path).unwrap()
}

fn import(project: &KubebuilderProject) -> (Tree, Vec<String>) {
    let opkit = Dependency::Version("0.1".to_owned());
    let imported = Import::new(opkit).apply(project).unwrap();
    let tree = golden::after(&Tree::default(), &imported.outcome);
    check_format(&tree);
    (tree, imported.unported)
}

/// Returns a CRD with one version, whose objects have one field.
fn crd(group: &str, kind: &str, scope: &str) -> String {
    let (lower, schema) = (
        kind.to_lowercase(),
        "{type: object, properties: {a: {type: string}}}",
    );
    format!(
        "kind: CustomResourceDefinition
metadata: {{name: {lower}s.{group}}}
spec:
  group: {group}
  scope: {scope}
  names: {{kind: {kind}, plural: {lower}s}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {{type: object, required: [spec], properties: {{spec: {schema}}}}}
"
    )
}

/// Returns a project with these resources and files.
fn project(settings: &str, resources: &str, files: &[(&str, &str)]) -> KubebuilderProject {
    let mut tree = Tree::default();
    let text = format!(
        "version: '3'\ndomain: example.com\nprojectName: a-operator\nrepo: example.com/a\n{settings}\nresources:\n{resources}"
    );
    tree.insert("PROJECT", text);
    for (path, text) in files {
        tree.insert(*path, *text);
    }
    KubebuilderProject::of(tree, "a").unwrap()
}

#[test]
fn a_project_with_versions_webhooks_and_controllers() {
    let (tree, unported) = import(&shop());
    let unported: String = unported.iter().map(|it| format!("{it}\n")).collect();
    let listing = golden::listing(&tree);
    golden::check(
        "import-shop.txt",
        &format!("{listing}=== to port\n{unported}"),
    );
}

#[test]
fn a_kind_in_two_groups_has_two_modules() {
    let resource = |group: &str| {
        format!(
            "- {{api: {{crdVersion: v1}}, controller: true, domain: example.com, group: {group}, kind: Bar, path: example.com/a/api/{group}/v1, version: v1}}\n"
        )
    };
    let code = |group: &str, name: &str| {
        format!(
            "package {group}\nimport x \"example.com/a/api/{group}/v1\"\nfunc (r *BarReconciler) Reconcile() error {{\n\treturn nil\n}}\nfunc (r *BarReconciler) SetupWithManager() {{\n\treturn b.For(&x.Bar{{}}).Named(\"{name}\")\n}}\n"
        )
    };
    let (fizz, foo) = (
        crd("fizz.example.com", "Bar", "Namespaced"),
        crd("foo.example.com", "Bar", "Namespaced"),
    );
    let project = project(
        "multigroup: true",
        &(resource("fizz") + &resource("foo")),
        &[
            ("config/crd/bases/fizz.yaml", &fizz),
            ("config/crd/bases/foo.yaml", &foo),
            (
                "internal/controller/fizz/bar_controller.go",
                &code("fizz", "fizz-bar"),
            ),
            (
                "internal/controller/foo/bar_controller.go",
                &code("foo", "foo-bar"),
            ),
        ],
    );
    let (tree, _) = import(&project);
    let library = tree.get("src/lib.rs").unwrap();
    for link in [
        "pub mod fizz_bar;",
        ".crd::<fizz_bar::Bar>()",
        ".crd::<foo_bar::Bar>()",
        ".controller(foo_bar::controller())",
    ] {
        assert!(library.contains(link), "{link}\n{library}");
    }
    let foo = tree.get("src/foo_bar.rs").unwrap();
    assert!(foo.contains("group = \"foo.example.com\""), "{foo}");
    assert!(foo.contains(".named(\"foo-bar\")"), "{foo}");
}

#[test]
fn a_controller_is_found_by_the_name_of_its_type() {
    let resources = "- {api: {crdVersion: v1}, controller: true, domain: example.com, group: g, kind: Bar, version: v1}\n";
    let crd = crd("g.example.com", "Bar", "Namespaced");
    let code = "package c\nfunc (r *BarReconciler) Reconcile() error {\n\treturn work()\n}\n";
    let files = [
        ("config/crd/bases/bar.yaml", crd.as_str()),
        ("controllers/bar_controller.go", code),
    ];
    let (tree, unported) = import(&project("", resources, &files));
    let bar = tree.get("src/bar.rs").unwrap();
    assert!(bar.contains("    //     return work()\n"), "{bar}");
    let expected =
        "src/bar.rs: what controller watches and owns: its SetupWithManager was not found";
    assert_eq!(unported[0], expected);
}

#[test]
fn controllers_without_names_get_different_ones() {
    let resources = "- {api: {crdVersion: v1}, controller: true, domain: example.com, group: g, kind: Bar, path: x, version: v1}\n";
    let (own, other) = (
        crd("g.example.com", "Bar", "Namespaced"),
        crd("h.example.com", "Bar", "Namespaced"),
    );
    let code = "package c\nimport v1 \"x\"\nfunc (r *A) Reconcile() error {\n}\nfunc (r *A) SetupWithManager() {\n\tb.For(&v1.Bar{})\n}\n";
    let files = [
        ("config/crd/bases/bar.yaml", own.as_str()),
        ("config/crd/bases/other.yaml", other.as_str()),
        ("controllers/a.go", code),
        ("controllers/b.go", code),
    ];
    let (tree, _) = import(&project("", resources, &files));
    let bar = tree.get("src/g_bar.rs").unwrap();
    assert!(bar.contains(".named(\"g-bar\")"), "{bar}");
    assert!(bar.contains(".named(\"bar-controller-2\")"), "{bar}");
}

#[test]
fn markers_are_the_permissions_without_a_role() {
    let code = "package c
// +kubebuilder:rbac:groups=core,resources=secrets;configmaps,verbs=get;list
// +kubebuilder:rbac:groups=\"\",resources=events,verbs=create;patch
// +kubebuilder:rbac:urls=/healthz,verbs=get
";
    let crd = crd("g.example.com", "Bar", "Namespaced");
    let files = [
        ("config/crd/bases/bar.yaml", crd.as_str()),
        ("internal/controller/a.go", code),
    ];
    let project = project("", "", &files);
    let (tree, unported) = import(&project);
    let library = tree.get("src/lib.rs").unwrap();
    let rule = "PolicyRule::new(\n            \"\",\n            [\"configmaps\", \"secrets\"],\n            [\"get\", \"list\"],\n        )";
    assert!(library.contains(rule), "{library}");
    assert!(!library.contains("events"), "{library}");
    assert_eq!(
        unported[0],
        "src/lib.rs: there is no rule for the URLs /healthz"
    );
}

#[test]
fn a_role_in_another_namespace_is_reported() {
    let role = "kind: Role\nmetadata: {name: manager-role, namespace: vault}\nrules:\n- {apiGroups: [''], resources: [secrets], verbs: [get]}\n";
    let (tree, unported) = import(&project("", "", &[("config/rbac/role.yaml", role)]));
    let library = tree.get("src/lib.rs").unwrap();
    let rule = "PolicyRule::new(\"\", [\"secrets\"], [\"get\"])";
    assert!(library.contains(rule), "{library}");
    assert!(
        unported[0].contains("the Role in the namespace vault"),
        "{unported:?}"
    );
}

#[test]
fn an_operator_of_a_namespace_has_no_kinds_without_one() {
    let resources = "- {api: {crdVersion: v1}, controller: true, domain: example.com, group: g, kind: Bar, version: v1}\n";
    let check = |scope: &str, is_namespaced: bool| {
        let crd = crd("g.example.com", "Bar", scope);
        let files = [("config/crd/bases/bar.yaml", crd.as_str())];
        let (tree, unported) = import(&project("namespaced: true", resources, &files));
        let library = tree.get("src/lib.rs").unwrap();
        assert_eq!(
            library.contains(".namespaced()"),
            is_namespaced,
            "{library}"
        );
        let is_reported = unported.iter().any(|it| it.contains("`.namespaced()`"));
        assert_eq!(is_reported, !is_namespaced, "{unported:?}");
    };
    check("Namespaced", true);
    check("Cluster", false);
}

#[test]
fn a_kind_that_has_no_types_is_reported() {
    let crd = crd("g.example.com", "Vec", "Namespaced");
    let (tree, unported) = import(&project("", "", &[("config/crd/bases/vec.yaml", &crd)]));
    assert!(tree.get("src/vec.rs").is_none());
    let expected = "the kind Vec of g.example.com: vecs.g.example.com: the kind Vec has the name of a type that the code needs";
    assert_eq!(unported[0], expected);
}

#[test]
fn a_project_that_cannot_be_imported_is_refused() {
    let check = |files: &[(&str, &str)], expected: &str| {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.insert(*path, *text);
        }
        let project = KubebuilderProject::of(tree, "a");
        let opkit = Dependency::Version("0.1".to_owned());
        let error = project
            .and_then(|it| Import::new(opkit).apply(&it))
            .unwrap_err();
        assert!(!error.is_usage());
        let error = error.to_string();
        assert!(
            error.starts_with(expected) && !error.contains('\n'),
            "{error}"
        );
    };
    let resource = "version: \"3\"\nresources:\n- {api: {}, domain: example.com, group: g, kind: Robot, version: v1}\n";
    check(
        &[("PROJECT", "version: \"2\"")],
        "PROJECT: the version of the file is \"2\"",
    );
    check(
        &[("PROJECT", "domain: a")],
        "PROJECT: the version of the file is \"\"",
    );
    check(&[("PROJECT", "a: [")], "PROJECT: this is not valid YAML: ");
    check(
        &[("PROJECT", "- a")],
        "PROJECT: this is not one YAML object",
    );
    check(
        &[("PROJECT", resource)],
        "config/crd/bases: there is no CRD of the kind Robot of g.example.com: run `make manifests`",
    );
    check(
        &[("PROJECT", resource), ("config/crd/bases/a.yaml", "a: [")],
        "config/crd/bases/a.yaml: this is not valid YAML: ",
    );
    check(
        &[("PROJECT", "version: \"3\"\nprojectName: A_b")],
        "PROJECT: the projectName \"A_b\" is not a name for a package",
    );
    let missing = KubebuilderProject::read(Path::new("no-such-directory")).unwrap_err();
    let expected = "no-such-directory/PROJECT: there is no such file, so this is not the directory of a kubebuilder project";
    assert_eq!(missing.to_string(), expected);
}
