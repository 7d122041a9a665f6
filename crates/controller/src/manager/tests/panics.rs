//! Panics in the user's code outside of the reconcile itself.

use std::fmt;

use super::*;

/// A value that panics when it is dropped.
struct Brittle;

impl Drop for Brittle {
    fn drop(&mut self) {
        panic!("broke when it was dropped");
    }
}

/// An error that panics when it is printed.
#[derive(Debug)]
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("cannot be printed")
    }
}

impl std::error::Error for Unprintable {}

fn results(run: &Run) -> Vec<String> {
    let records = run.log.records();
    records.iter().map(|r| r.result.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_future_that_panics_when_a_timeout_drops_it_is_retried() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let controller = Controller::new(move |_: Arc<ConfigMap>, _: Context| {
        let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if is_first {
                let _brittle = Brittle;
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            Ok::<_, Error>(Action::await_change())
        }
    });
    let controller = controller.reconcile_timeout(Duration::from_secs(5));
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_secs(10)).await;
    let panicked = "error, again in 5ms: reconcile panicked: broke when it was dropped";
    assert_eq!(results(&run), [panicked, "ok"]);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_when_it_is_printed_is_retried() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count = Arc::default();
    let controller = counting(&count, |n| match n {
        1 => Err(Unprintable.into()),
        _ => Ok(Action::await_change()),
    });
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_secs(10)).await;
    let panicked = "error, again in 5ms: reconcile panicked: cannot be printed";
    assert_eq!(results(&run), [panicked, "ok"]);
    run.stop().await.unwrap();
}
