use super::*;

#[test]
fn versions_come_from_go_mod() {
    let versions = parse(
        "module m\nrequire go.etcd.io/etcd/server/v3 v3.6.8\nrequire (\n\tk8s.io/kubernetes v1.36.3 // indirect\n)\n\
         tool k8s.io/kubernetes/cmd/kubectl\n",
    );
    let wanted = Versions {
        kubernetes: "v1.36.3".to_owned(),
        etcd: "v3.6.8".to_owned(),
    };
    assert_eq!(versions.unwrap(), wanted);
}

#[test]
fn a_missing_module_is_reported() {
    let error = parse("require k8s.io/kubernetes v1.36.3").unwrap_err();
    assert_eq!(
        error.to_string(),
        "go.mod does not require go.etcd.io/etcd/server/v3"
    );
}

#[test]
fn the_module_of_this_repository_has_versions() {
    versions().unwrap();
}

#[test]
fn missing_executables_are_listed() {
    let nowhere = Path::new("/nowhere");
    assert_eq!(missing(nowhere, ASSETS), ASSETS);
}
