use super::*;

fn find(directory: &Path, more: &[(&str, &str)]) -> Result<Assets, String> {
    let cache = directory.to_string_lossy().into_owned();
    Assets::find(|name| {
        let found = more.iter().find(|(variable, _)| *variable == name);
        let found = found.map(|(_, value)| (*value).to_owned());
        found.or_else(|| (name == "XDG_CACHE_HOME").then(|| cache.clone()))
    })
    .map_err(|error| error.to_string())
}

fn fill(directory: &Path, names: &[&str]) {
    fs::create_dir_all(directory).unwrap();
    for name in names {
        fs::write(directory.join(name), "").unwrap();
    }
}

#[test]
fn the_newest_of_the_cache_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("opkit-control-plane");
    fill(&cache.join("v1.9.9"), &[]);
    fill(
        &cache.join("v1.36.3"),
        &["etcd", "kube-apiserver", "kube-controller-manager"],
    );
    fill(&cache.join("else"), &[]);
    let assets = find(directory.path(), &[]).unwrap();
    assert_eq!(assets.etcd, cache.join("v1.36.3/etcd"));
    assert!(assets.controller_manager.is_some() && assets.kubectl.is_none());
}

#[test]
fn variables_come_before_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let assets = directory.path().join("assets");
    fill(&assets, &["etcd", "kube-apiserver", "kubectl", "own-etcd"]);
    let (assets, own) = (
        assets.to_str().unwrap(),
        assets.join("own-etcd").to_string_lossy().into_owned(),
    );
    let found = find(
        directory.path(),
        &[("KUBEBUILDER_ASSETS", assets), ("TEST_ASSET_ETCD", &own)],
    );
    let found = found.unwrap();
    assert_eq!(found.etcd, Path::new(&own));
    assert_eq!(found.apiserver, Path::new(assets).join("kube-apiserver"));
    assert_eq!(found.controller_manager, None);
}

#[test]
fn a_missing_executable_is_reported_with_the_command_to_run() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = [("KUBEBUILDER_ASSETS", "/nowhere")];
    let error = find(directory.path(), &nowhere).unwrap_err();
    assert!(
        error.starts_with("there is no etcd at /nowhere/etcd: run `cargo xtask control-plane`")
    );
}

#[test]
fn the_version_of_the_directory_decides_whether_there_are_shards() {
    let has_shards = |directory: &str| {
        let assets = Assets {
            etcd: PathBuf::new(),
            apiserver: Path::new(directory).join("kube-apiserver"),
            controller_manager: None,
            kubectl: None,
        };
        assets.has_shards()
    };
    assert!(has_shards("/cache/v1.36.3"));
    assert!(has_shards("/k8s/1.37.0-linux-amd64"));
    assert!(!has_shards("/cache/v1.35.9"));
    assert!(!has_shards("/usr/local/kubebuilder/bin"));
}
