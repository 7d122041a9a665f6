//! Resyncs: each object is reconciled again, without a request to the server.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opkit::client::Seam;
use opkit::controller::event::Event;
use opkit::operator::RunOptions;
use opkit::prelude::*;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);

async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result<Action> {
    Ok(Action::await_change())
}

/// Creates the objects `one` of two kinds.
async fn objects(plane: &ControlPlane) -> opkit::Result {
    let one = json!({"metadata": {"name": "one"}});
    plane
        .apply::<ConfigMap>(serde_json::from_value(one.clone())?)
        .await?;
    plane.apply::<Secret>(serde_json::from_value(one)?).await?;
    Ok(())
}

/// Runs an operator until `is_done` returns true for the causes of the reconciles of the config map
/// `one`, and returns the requests to list objects that it has sent in the second half of the time.
async fn run(
    plane: &ControlPlane,
    operator: Operator,
    is_done: impl Fn(&[String]) -> bool,
) -> opkit::Result<Vec<String>> {
    let (seam, stop, mut running) = (Seam::new(), CancellationToken::new(), JoinSet::new());
    let mut options = RunOptions::default();
    options.namespaces = vec![plane.namespace().to_owned()];
    let (log, mut ready) = (options.log.clone(), options.ready.subscribe());
    running.spawn(operator.run_with(seam.wrap(plane.client()), options, stop.clone()));
    ready.wait_for(|ready| *ready).await?;
    let before = seam.exchanges().len();
    let causes = || -> Vec<String> {
        let records = log.records();
        let one = records.iter().filter(|record| record.request.name == "one");
        one.flat_map(|record| record.causes()).collect()
    };
    for _ in 0..1_000 {
        if is_done(&causes()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_done(&causes()), "{:?}", causes());
    let sent = seam.exchanges();
    let lists = sent.iter().skip(before).map(ToString::to_string);
    let lists = lists.filter(|line| line.contains(" list ")).collect();
    stop.cancel();
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(lists)
}

#[opkit::test]
async fn a_resync_is_an_update_without_a_change_and_without_a_request(
    plane: ControlPlane,
) -> opkit::Result {
    objects(&plane).await?;
    let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
    let updates = seen.clone();
    let controller = Controller::new(reconcile).watches_with::<Secret>(|secrets| {
        let one = predicate::Predicate::object(|it| it.name() == "one");
        secrets.only(one).map_events(move |event, _| {
            if let Event::Update(it) = event {
                updates.lock().push(it.old.metadata == it.new.metadata);
            }
            Vec::new()
        })
    });
    let operator = Operator::new("resyncing")
        .resync(SECOND)
        .controller(controller);
    let is_done = |causes: &[String]| {
        let resyncs = causes.iter().filter(|cause| *cause == "resync").count();
        resyncs >= 2 && seen.lock().len() >= 2
    };
    let lists = run(&plane, operator, is_done).await?;
    assert_eq!(lists, [""; 0]);
    assert!(seen.lock().iter().all(|is_same| *is_same));
    Ok(())
}

/// The first controller is resynced, so the second would have been too.
#[opkit::test]
async fn a_controller_may_have_no_resyncs(plane: ControlPlane) -> opkit::Result {
    objects(&plane).await?;
    let (count, also) = (Arc::<Mutex<u32>>::default(), Arc::<Mutex<u32>>::default());
    let counting = |count: &Arc<Mutex<u32>>| {
        let count = count.clone();
        Controller::new(move |map: Arc<ConfigMap>, _: Context| {
            *count.lock() += u32::from(map.name_any() == "one");
            std::future::ready(Ok::<_, Error>(Action::await_change()))
        })
    };
    let operator = Operator::new("resyncing")
        .resync(SECOND)
        .controller(counting(&also).named("resynced"))
        .controller(counting(&count).named("quiet").resync(None));
    run(&plane, operator, |_| *also.lock() >= 4).await?;
    assert_eq!(*count.lock(), 1);
    Ok(())
}
