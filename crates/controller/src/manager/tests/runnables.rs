//! Runnables: when they start, and in which order they stop.

use super::*;
use crate::{AnyRunnable, RunContext, Runnable};

type Seen = Arc<Mutex<Vec<String>>>;

struct Feed {
    name: &'static str,
    leads: bool,
    seen: Seen,
    /// Time that the runnable takes to stop.
    lasts: Duration,
}

impl Runnable for Feed {
    async fn run(&self, cx: RunContext) -> Result {
        self.seen.lock().push(format!("{} starts", self.name));
        cx.stopped().await;
        tokio::time::sleep(self.lasts).await;
        self.seen.lock().push(format!("{} ends", self.name));
        Ok(())
    }

    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn needs_leader_election(&self) -> bool {
        self.leads
    }
}

fn feed(name: &'static str, leads: bool, seen: &Seen) -> Feed {
    Feed {
        name,
        leads,
        seen: seen.clone(),
        lasts: Duration::ZERO,
    }
}

fn server_of(seen: &Seen) -> AnyRunnable {
    let seen = seen.clone();
    AnyRunnable::server("server", move |cx| {
        let seen = seen.clone();
        async move {
            seen.lock().push("server starts".to_owned());
            cx.stopped().await;
            seen.lock().push("server ends".to_owned());
            Ok(())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn groups_stop_in_the_reverse_order_of_their_start() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let seen = Seen::default();
    let run = Run::start_manager(&server, |manager| {
        manager
            .runnable(feed("leader", true, &seen))
            .runnable(feed("other", false, &seen))
            .runnable(server_of(&seen))
            .controller(counting(&Arc::default(), |_| Ok(Action::await_change())))
    })
    .await;
    run.settle(MOMENT).await;
    run.stop().await.unwrap();
    let expected = [
        "server starts",
        "other starts",
        "leader starts",
        "leader ends",
        "other ends",
        "server ends",
    ];
    assert_eq!(*seen.lock(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_all_and_late_runnables_are_reported() {
    let server = Server::new(&["configmaps"]);
    let seen = Seen::default();
    let slow = Feed {
        lasts: Duration::from_secs(3600),
        ..feed("slow", true, &seen)
    };
    let failing = AnyRunnable::task("failing", |cx: RunContext| async move {
        cx.stopped_within(Duration::from_secs(1)).await;
        Err(Error::msg("no price"))
    });
    let manager = Manager::new("test", server.client(), ManagerOptions::default())
        .runnable(slow)
        .runnable(failing);
    let error = manager.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "failing failed; then these did not stop within 30 s: slow"
    );
}

#[tokio::test(start_paused = true)]
async fn a_grace_of_zero_does_not_wait_and_an_unlimited_one_does() {
    let server = Server::new(&["configmaps"]);
    for (grace, takes) in [(Duration::ZERO, 0), (Duration::MAX, 3600)] {
        let seen = Seen::default();
        let slow = Feed {
            lasts: Duration::from_secs(3600),
            ..feed("slow", true, &seen)
        };
        let options = ManagerOptions {
            grace_period: grace,
            ..Default::default()
        };
        let mut ready = options.ready.subscribe();
        let manager = Manager::new("test", server.client(), options).runnable(slow);
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(manager.run(stop.clone()));
        ready.wait_for(|ready| *ready).await.unwrap();
        tokio::time::sleep(MOMENT).await;
        let stopped = tokio::time::Instant::now();
        stop.cancel();
        task.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(stopped.elapsed().as_secs(), takes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_returns_ok_is_not_a_failure() {
    let server = Server::new(&["configmaps"]);
    let run = Run::start_manager(&server, |manager| {
        manager.runnable(AnyRunnable::task("once", |_| async { Ok(()) }))
    })
    .await;
    run.settle(Duration::from_secs(60)).await;
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_during_the_stop_is_not_a_failure() {
    let server = Server::new(&["configmaps"]);
    let run = Run::start_manager(&server, |manager| {
        manager.runnable(AnyRunnable::task("feed", |cx: RunContext| async move {
            cx.stopped().await;
            Err(Error::msg("cancelled"))
        }))
    })
    .await;
    run.settle(MOMENT).await;
    run.stop().await.unwrap();
}
