//! A reconcile that does not return is reported while the operator runs, and named at shutdown.

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::operator::RunOptions;
use opkit::prelude::*;
use tokio_util::sync::CancellationToken;

use crate::log::Log;

async fn never_return(map: Arc<ConfigMap>, _: Context) -> Result<Action> {
    if map.name_any() == "stuck" {
        std::future::pending::<()>().await;
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_never_returns_is_reported_and_does_not_block_the_shutdown()
-> opkit::Result {
    let (log, subscriber) = Log::subscriber();
    // Only for this thread, which is the only one.
    let _guard = tracing::subscriber::set_default(subscriber);
    let plane = ControlPlane::embedded()?;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("stuck".into());
    plane.apply(map).await?;
    let mut options = RunOptions::default();
    let (mut ready, stop) = (options.ready.subscribe(), CancellationToken::new());
    options.grace_period = Duration::from_secs(30);
    let operator = Operator::new("test").controller(Controller::new(never_return));
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
    let late = "these did not stop within 30 s: configmap default/stuck";
    assert_eq!(error, late);
    let text = log.text();
    let reports: Vec<_> = text
        .lines()
        .filter(|line| line.contains("a reconcile does not finish"))
        .collect();
    assert_eq!(reports.len(), 1, "{text}");
    assert!(reports[0].contains("default/stuck"), "{text}");
    plane.shutdown().await
}
