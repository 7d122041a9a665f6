//! The number of an attempt, and the limit of retries.

use opkit::prelude::*;
use parking_lot::Mutex;
use robot_operator::Robot;
use serde_json::json;

use crate::robot::robot;

/// Number of replicas with which the reconcile fails.
const FAILS: i32 = 7;
const STALLED: &str = "Stalled";

type Attempts = Arc<Mutex<Vec<u32>>>;

/// Returns an operator that keeps the number of each attempt, and retries twice.
fn operator(attempts: &Attempts) -> Operator {
    let attempts = attempts.clone();
    let controller = Controller::new(move |robot: Arc<Robot>, cx: Context| {
        attempts.lock().push(cx.attempt());
        std::future::ready(match robot.spec.replicas {
            FAILS => Err(Error::msg("there are no seven robots")),
            _ => Ok(Action::await_change()),
        })
    });
    Operator::new("failing-operator")
        .crd::<Robot>()
        .controller(controller.max_retries(2, Condition::new(STALLED, true)))
}

fn stalled(robot: &Robot) -> Option<Condition> {
    let status = robot.status.as_ref()?;
    status.conditions.get(STALLED).cloned()
}

/// Waits until nothing is reconciled any more, and returns the attempts since the last call.
async fn settled(attempts: &Attempts) -> Vec<u32> {
    loop {
        let before = attempts.lock().len();
        tokio::time::sleep(Duration::from_millis(300)).await;
        if attempts.lock().len() == before {
            return std::mem::take(&mut *attempts.lock());
        }
    }
}

/// The operator acts with the roles that its manifests print.
#[opkit::test]
async fn an_object_is_given_up_until_it_changes(plane: ControlPlane) -> opkit::Result {
    let attempts = Attempts::default();
    plane.start(operator(&attempts)).await?;
    plane.apply(robot("one", FAILS)).await?;
    let one = plane
        .eventually("one", |robot: &Robot| stalled(robot).is_some())
        .await?;
    let condition = stalled(&one).expect("the condition");
    assert!(condition.is_true());
    assert_eq!(condition.reason, "RetriesExhausted");
    assert_eq!(condition.message, "there are no seven robots");
    assert_eq!(condition.observed_generation, one.metadata.generation);
    plane
        .eventually_event::<Robot>("one", "RetriesExhausted")
        .await?;
    // Neither the condition nor the event causes a reconcile.
    assert_eq!(settled(&attempts).await, [0, 1, 2]);

    let label = json!({"metadata": {"labels": {"again": "yes"}}});
    let api: kube::Api<Robot> = kube::Api::default_namespaced(plane.client());
    let patch = kube::api::Patch::Merge(label);
    api.patch("one", &kube::api::PatchParams::default(), &patch)
        .await?;
    assert_eq!(settled(&attempts).await, [0, 1, 2]);

    plane.apply(robot("one", 1)).await?;
    plane
        .eventually("one", |robot: &Robot| stalled(robot).is_none())
        .await?;
    let last = settled(&attempts).await;
    assert!(last.iter().all(|attempt| *attempt == 0), "{last:?}");
    Ok(())
}

/// A kind of another operator: the role allows to write its status, too.
#[opkit::test]
async fn the_role_for_the_condition_is_printed(plane: ControlPlane) -> opkit::Result {
    plane.install(&operator(&Attempts::default())).await?;
    let controller = Controller::new(|_: Arc<Robot>, _: Context| {
        std::future::ready(Err::<Action, _>(Error::msg("always")))
    });
    let controller = controller.max_retries(0, Condition::new(STALLED, true));
    plane
        .start(Operator::new("failing-operator").controller(controller))
        .await?;
    plane.apply(robot("one", 1)).await?;
    plane
        .eventually("one", |robot: &Robot| stalled(robot).is_some())
        .await?;
    Ok(())
}
