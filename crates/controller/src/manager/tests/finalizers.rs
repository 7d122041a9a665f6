//! Finalizers against the test server.

use super::*;

#[tokio::test(start_paused = true)]
async fn clean_up_is_not_called_again_after_done() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let calls: Arc<AtomicU32> = Arc::default();
    let counted = calls.clone();
    let controller = applying().finalizer("test/cleanup", move |_: Arc<ConfigMap>, cx: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            for child in cx.children::<Secret>()? {
                cx.delete(&child).await?;
            }
            // Lets the source process the deletion of the child.
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok::<_, Error>(Cleanup::Done)
        }
    });
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_secs(1)).await;
    server.begin_deletion(MAP);
    run.settle(Duration::from_secs(1)).await;
    assert!(server.get(MAP).is_none());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_with_other_finalizers_stays_in_the_cache() {
    let server = Server::new(&["configmaps"]);
    let mut map = object("one");
    map["metadata"]["finalizers"] = json!(["example.com/other", "test/cleanup"]);
    server.put(MAP, map);
    let cleaned: Arc<Mutex<Option<Context>>> = Arc::default();
    let kept = cleaned.clone();
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change())).finalizer(
        "test/cleanup",
        move |_: Arc<ConfigMap>, cx: Context| {
            *kept.lock() = Some(cx);
            async { Ok::<_, Error>(Cleanup::Done) }
        },
    );
    let run = Run::start(&server, controller).await;
    server.begin_deletion(MAP);
    run.settle(MOMENT).await;
    let finalizers = || {
        let cached = cleaned.lock().as_ref()?.get::<ConfigMap>("one").unwrap()?;
        cached.metadata.finalizers.clone()
    };
    assert_eq!(finalizers(), Some(vec!["example.com/other".to_owned()]));
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_awaits_a_change_is_called_at_the_next_one() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    let calls: Arc<AtomicU32> = Arc::default();
    let counted = calls.clone();
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change()))
        .watches::<Secret>(|_, _| vec!["one".into()])
        .finalizer("test/cleanup", move |_: Arc<ConfigMap>, cx: Context| {
            counted.fetch_add(1, Ordering::SeqCst);
            let is_ended = cx.get::<Secret>("child").unwrap().is_some();
            async move {
                Ok::<_, Error>(match is_ended {
                    true => Cleanup::Done,
                    false => Cleanup::AwaitChange,
                })
            }
        });
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    server.begin_deletion(MAP);
    run.settle(Duration::from_secs(3600)).await;
    assert_eq!(calls.load(Ordering::SeqCst), 1, "no requeue");
    assert!(server.get(MAP).is_some());
    server.put(SECRET, object("child"));
    run.settle(MOMENT).await;
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    assert!(server.get(MAP).is_none());
    run.stop().await.unwrap();
}
