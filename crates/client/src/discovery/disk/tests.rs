use super::*;
use crate::ApiResource;

fn found(plural: &str) -> Arc<Discovered> {
    Arc::new(Discovered {
        resources: vec![ApiResource {
            plural: plural.to_owned(),
            ..Default::default()
        }],
        ..Default::default()
    })
}

#[tokio::test]
async fn a_written_file_is_read_until_it_expires() {
    let directory = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(directory.path().join("a/b"));
    assert!(cache.read().await.is_none());
    cache.write(found("pods")).await;
    assert_eq!(cache.read().await.unwrap(), *found("pods"));
    let file = std::fs::File::options()
        .write(true)
        .open(cache.path())
        .unwrap();
    file.set_modified(SystemTime::now() - TTL - Duration::from_secs(1))
        .unwrap();
    assert!(cache.read().await.is_none(), "too old");
    file.set_modified(SystemTime::now() + TTL).unwrap();
    assert!(cache.read().await.is_none(), "of the future");
}

#[tokio::test]
async fn a_broken_file_is_ignored_and_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(directory.path());
    for broken in ["", "{\"resources\": [", "null", "\0\0"] {
        std::fs::write(cache.path(), broken).unwrap();
        assert!(cache.read().await.is_none(), "{broken:?}");
    }
    cache.write(found("pods")).await;
    assert!(cache.read().await.is_some());
}

#[tokio::test]
async fn writers_do_not_disturb_each_other_and_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(directory.path());
    let writers = (0..20).map(|number| {
        let cache = cache.clone();
        async move {
            cache.write(found(&format!("pods{number}"))).await;
            assert!(cache.read().await.is_some());
        }
    });
    futures::future::join_all(writers).await;
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn the_directory_is_that_of_kubectl() {
    assert_eq!(directory("https://10.0.0.1:6443/"), "10.0.0.1_6443");
    assert_eq!(directory("https://a-b.c/k8s"), "a_b.c/k8s");
    assert_eq!(directory("https://[::1]:6443"), "___1__6443");
}

#[test]
fn the_directory_is_below_the_cache() {
    assert_eq!(directory("https://a.b/k8s/../c"), "a.b/k8s/__/c");
    for url in [
        "https:///etc/cron.d",
        "/etc/cron.d",
        "https:////etc/cron.d/",
    ] {
        assert_eq!(directory(url), "etc/cron.d", "{url}");
    }
    for url in ["https://..", "https://a/../..", "https://.../..../b"] {
        let path = PathBuf::from(directory(url));
        let mut parts = path.components();
        assert!(
            parts.all(|part| matches!(part, std::path::Component::Normal(_))),
            "{url}"
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn other_users_have_no_access() {
    use std::os::unix::fs::PermissionsExt;

    let root = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(root.path().join("a/b"));
    cache.write(found("pods")).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o007;
    assert_eq!(mode(cache.path()), 0);
    assert_eq!(mode(cache.path().parent().unwrap()), 0);
    assert_eq!(mode(&root.path().join("a")), 0);
}
