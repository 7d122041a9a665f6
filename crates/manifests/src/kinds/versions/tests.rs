use super::*;

fn spoke(name: &str) -> SpokeVersion {
    let functions = Functions {
        fields: &["spec"],
        to_hub: |_, _| Ok(Default::default()),
        from_hub: |_, _| Ok(Default::default()),
        notes: |_| None,
    };
    let mut crd = CustomResourceDefinition::default();
    crd.spec.versions.push(CustomResourceDefinitionVersion {
        name: name.to_owned(),
        storage: true,
        ..Default::default()
    });
    SpokeVersion::new(crd, false, Some(""), functions)
}

fn hub() -> CustomResourceDefinition {
    let mut crd = CustomResourceDefinition::default();
    crd.spec.group = "example.com".to_owned();
    crd.spec.names.kind = "Robot".to_owned();
    crd.spec.versions.push(CustomResourceDefinitionVersion {
        name: "v1".to_owned(),
        served: true,
        storage: true,
        ..Default::default()
    });
    crd
}

#[test]
fn exactly_one_version_is_stored() {
    let crd = with_versions(
        hub(),
        "v1beta1",
        vec![spoke("v1beta1"), spoke("v1alpha1")],
        &(),
    );
    let versions = crd.spec.versions.iter();
    let versions: Vec<_> = versions
        .map(|version| (version.name.as_str(), version.served, version.storage))
        .collect();
    assert_eq!(
        versions,
        [
            ("v1", true, false),
            ("v1beta1", false, true),
            ("v1alpha1", false, false)
        ]
    );
    let deprecated = &crd.spec.versions[1];
    assert_eq!(
        (
            deprecated.deprecated,
            deprecated.deprecation_warning.as_deref()
        ),
        (Some(true), None)
    );
}

#[test]
fn conversions_are_collected_only_within_the_call() {
    let build = || with_versions(hub(), "v1", vec![spoke("v1alpha1")], &());
    let names = |kinds: &[KindVersions]| -> Vec<String> {
        let kinds = kinds.iter();
        kinds
            .map(|kind| kind.names().collect::<Vec<_>>().join(","))
            .collect()
    };
    build();
    let ((_, inner), outer) = collect(|| {
        build();
        collect(build)
    });
    assert_eq!(names(&inner.kinds), ["v1,v1alpha1"]);
    assert_eq!(names(&outer.kinds), ["v1,v1alpha1"]);
    assert_eq!(names(&collect(|| ()).1.kinds), Vec::<String>::new());
}

#[test]
fn names_are_compared_in_constants() {
    const VERSIONS: &[&str] = &["v1", "v1beta1"];
    const IS_VERSION: [bool; 3] = [
        is_version(VERSIONS, "v1"),
        is_version(VERSIONS, "v1beta1"),
        is_version(VERSIONS, "v1beta"),
    ];
    assert_eq!(IS_VERSION, [true, true, false]);
    const { assert!(are_distinct(VERSIONS) && !are_distinct(&["v1", "v2", "v1"])) };
}
