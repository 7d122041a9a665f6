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
async fn what_is_written_is_read_while_it_is_young() {
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
async fn a_broken_file_counts_as_none_and_is_replaced() {
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
    assert_eq!(directory("https://a.b/k8s/../c"), "a.b/k8s/__/c");
}
