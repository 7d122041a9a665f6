//! Each object is reconciled a bounded number of times.

use super::*;
use crate::Reconciled;

/// Reconciles the objects of a server, and returns the requests with their errors, and whether the
/// last round was enough.
async fn each(
    server: &Server,
    controller: impl Into<AnyController>,
    mut again: impl FnMut(&Reconciled) -> bool + Send,
) -> (Vec<String>, bool) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let runnable = crate::AnyRunnable::server("never", |_| async { panic!("it is started") });
    let manager = Manager::new("test", server.client(), ManagerOptions::default());
    let manager = manager.controller(controller).runnable(runnable);
    let (stop, lines) = (CancellationToken::new(), seen.clone());
    let mut receive = |reconciled: Reconciled| {
        let error = reconciled.error.clone().unwrap_or_default();
        let line = format!("{} {error}", reconciled.request.name);
        lines.lock().push(line.trim_end().to_owned());
        again(&reconciled)
    };
    let finished = manager.reconcile_each(stop, 3, &mut receive);
    let finished = finished.await.unwrap();
    let seen = seen.lock().clone();
    (seen, finished)
}

fn two() -> Server {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    server.put(&MAP.replace("one", "two"), object("two"));
    server
}

#[tokio::test(start_paused = true)]
async fn each_object_is_reconciled_once() {
    let count = Arc::default();
    let controller = counting(&count, |_| Ok(Action::requeue(Duration::from_millis(1))));
    let (mut seen, finished) = each(&two(), controller, |_| false).await;
    seen.sort();
    assert_eq!((seen, finished), (vec!["one".into(), "two".into()], true));
}

#[tokio::test(start_paused = true)]
async fn all_objects_are_reconciled_again_while_one_changes() {
    let count = Arc::default();
    let controller = || counting(&count, |_| Ok(Action::await_change()));
    let mut first = true;
    let once_more = |_: &Reconciled| std::mem::take(&mut first);
    let (seen, finished) = each(&two(), controller(), once_more).await;
    assert_eq!((seen.len(), finished), (4, true));
    let (seen, finished) = each(&two(), controller(), |_| true).await;
    assert_eq!((seen.len(), finished), (6, false), "three rounds");
}

#[tokio::test(start_paused = true)]
async fn a_failed_reconcile_has_an_error() {
    let count = Arc::default();
    let controller = counting(&count, |_| Err(Error::msg("broken")));
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let (seen, _) = each(&server, controller, |_| false).await;
    assert_eq!(seen, ["one broken"]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_waits_for_ever_is_a_failure() {
    let waiting = || {
        Controller::new(|map: Arc<ConfigMap>, _: Context| async move {
            if map.metadata.name.as_deref() == Some("one") {
                std::future::pending::<()>().await;
            }
            Ok::<_, Error>(Action::await_change())
        })
    };
    let start = tokio::time::Instant::now();
    let (mut seen, finished) = each(&two(), waiting(), |_| false).await;
    seen.sort();
    let hint = "it may wait for something that a plan does not do";
    let line = format!("one the reconcile did not finish within 30s; {hint}");
    assert_eq!((seen, finished), (vec![line, "two".into()], true));
    assert!(start.elapsed() < Duration::from_secs(60), "waits only once");

    // The controller's own limit is shorter.
    let limited = waiting().reconcile_timeout(Duration::from_secs(5));
    let (mut seen, _) = each(&two(), limited, |_| false).await;
    seen.sort();
    let line = format!("one the reconcile did not finish within 5s; {hint}");
    assert_eq!(seen, [line, "two".into()]);
}
