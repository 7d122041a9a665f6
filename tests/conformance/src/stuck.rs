//! A reconcile that does not end is told of while the operator runs, and named when it stops.

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::RunOptions;
use opkit::prelude::*;
use tokio_util::sync::CancellationToken;

use crate::log::Log;

async fn for_ever(map: Arc<ConfigMap>, _: Context) -> Result<Action> {
    if map.name_any() == "stuck" {
        std::future::pending::<()>().await;
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_never_ends_is_reported_and_does_not_hold_the_stop() -> opkit::Result {
    let (log, subscriber) = Log::subscriber();
    // Of this thread, which is the only one.
    let _guard = tracing::subscriber::set_default(subscriber);
    let plane = ControlPlane::embedded()?;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("stuck".into());
    plane.apply(map).await?;
    let mut options = RunOptions::default();
    let (mut ready, stop) = (options.ready.subscribe(), CancellationToken::new());
    options.grace_period = Duration::from_secs(30);
    let operator = Operator::new("test").controller(Controller::new(for_ever));
    let run = operator.run_with(plane.client(), options, stop.clone());
    let (ran, took) = tokio::join!(run, async {
        let _ = ready.wait_for(|ready| *ready).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        stop.cancel();
        tokio::time::Instant::now()
    });
    let error = ran.unwrap_err().to_string();
    assert!(
        took.elapsed() <= Duration::from_secs(35),
        "{:?}",
        took.elapsed()
    );
    let late = "these did not end within 30 s of the stop: configmap default/stuck";
    assert_eq!(error, late);
    let said = log.text();
    let told: Vec<_> = said
        .lines()
        .filter(|line| line.contains("a reconcile does not end"))
        .collect();
    assert_eq!(told.len(), 1, "{said}");
    assert!(told[0].contains("default/stuck"), "{said}");
    plane.shutdown().await
}
