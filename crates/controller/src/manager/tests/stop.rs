//! The stop of a manager.

use super::*;
use crate::EventType;

/// Returns a client of `server` whose requests for events are counted and get no response.
fn without_events(server: &Server, posts: &Arc<AtomicU32>) -> kube::Client {
    let (inner, posts) = (server.client(), posts.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, posts) = (inner.clone(), posts.clone());
        async move {
            if request.uri().path().contains("/events") {
                posts.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            inner.send(request).await
        }
    });
    kube::Client::new(service, "default")
}

async fn eventful(_: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    for n in 0..100 {
        cx.event(EventType::Normal, "Tick", format!("{n}"));
    }
    Ok(Action::await_change())
}

/// Runs until `end` stops the manager. Returns the number of posted events then, and a day later.
async fn posts_after_the_end<F>(
    end: impl FnOnce(CancellationToken, JoinSet<Ended>) -> F,
) -> [u32; 2]
where
    F: Future<Output = ()>,
{
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let posts = Arc::default();
    let (stop, options) = (CancellationToken::new(), ManagerOptions::default());
    let mut ready = options.ready.subscribe();
    let manager = Manager::new("test", without_events(&server, &posts), options)
        .controller(Controller::new(eventful));
    let mut task = JoinSet::new();
    task.spawn(manager.run(stop.clone()));
    ready.wait_for(|ready| *ready).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    end(stop, task).await;
    let then = posts.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    [then, posts.load(Ordering::SeqCst)]
}

type Ended = Result<(), ManagerError>;

#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_posted_end_with_the_run() {
    let [then, later] = posts_after_the_end(|stop, mut task| async move {
        stop.cancel();
        task.join_next().await.unwrap().unwrap().unwrap();
    })
    .await;
    assert_eq!(later, then, "requests after run() has returned");
}

#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_posted_end_with_a_dropped_run() {
    let [then, later] = posts_after_the_end(|_, mut task| async move {
        task.shutdown().await;
    })
    .await;
    assert_eq!(later, then, "requests after run() was dropped");
}

/// Returns a function that blocks its thread until the test drops the sender.
fn blocking() -> (std::sync::mpsc::Sender<()>, impl Fn() + Clone) {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let block = move || {
        let _ = blocked.lock().unwrap().recv();
    };
    (release, block)
}

// Real time and two threads, because one is blocked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconcile_that_blocks_its_thread_does_not_block_the_stop() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let (release, block) = blocking();
    let (entered, mut inside) = tokio::sync::mpsc::channel(1);
    let controller = Controller::new(move |_: Arc<ConfigMap>, _: Context| {
        let (block, entered) = (block.clone(), entered.clone());
        async move {
            let _ = entered.try_send(());
            block();
            Ok::<_, Error>(Action::await_change())
        }
    });
    let run = Run::start_with_grace(&server, controller, Duration::from_millis(100)).await;
    inside.recv().await.unwrap();
    let error = tokio::time::timeout(Duration::from_secs(5), run.stop()).await;
    let error = error.expect("the stop finishes").unwrap_err();
    assert!(matches!(error, ManagerError::Late { .. }), "{error}");
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_posted_do_not_outlast_the_grace_period() {
    for (grace, most) in [(0, 0), (2, 2), (30, 5)] {
        let server = Server::new(&["configmaps"]);
        server.put(MAP, object("one"));
        let options = ManagerOptions {
            grace_period: Duration::from_secs(grace),
            ..Default::default()
        };
        let client = without_events(&server, &Arc::default());
        let run = Run::start_client(client, options, |manager| {
            manager.controller(Controller::new(eventful))
        })
        .await;
        run.settle(Duration::from_secs(1)).await;
        let stopped = tokio::time::Instant::now();
        run.stop().await.unwrap();
        assert_eq!(
            stopped.elapsed().as_secs(),
            most,
            "with a grace period of {grace} s"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_during_the_stop_is_not_late() {
    use crate::{AnyRunnable, RunContext};
    let server = Server::new(&[]);
    let panics = AnyRunnable::task("panics", |cx: RunContext| async move {
        cx.stopped().await;
        panic!("during the stop")
    });
    let slow = AnyRunnable::task("slow", |_| std::future::pending());
    let run = Run::start_manager(&server, |it| it.runnable(panics).runnable(slow)).await;
    run.settle(MOMENT).await;
    assert_eq!(
        run.stop().await.unwrap_err().to_string(),
        "these did not stop within 30 s: slow"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_stops_the_tasks_of_its_runnables() {
    use crate::{AnyRunnable, RunContext};
    let server = Server::new(&[]);
    let tokens: Arc<Mutex<Vec<CancellationToken>>> = Arc::default();
    let handing_out = || {
        let tokens = tokens.clone();
        move |cx: RunContext| {
            tokens.lock().push(cx.stop_token());
            std::future::pending()
        }
    };
    let mut run = Run::start_manager(&server, |manager| {
        let server = AnyRunnable::server("server", handing_out());
        manager
            .runnable(AnyRunnable::task("task", handing_out()))
            .runnable(server)
    })
    .await;
    run.settle(MOMENT).await;
    run.task.shutdown().await;
    let tokens = tokens.lock();
    assert_eq!(tokens.len(), 2);
    assert!(tokens.iter().all(CancellationToken::is_cancelled));
}
