//! `cx.update_status`: its requests.

use kube::Api;
use kube::api::{Patch, PatchParams};
use opkit::client::{Effect, Rule};
use opkit::prelude::*;
use robot_operator::{Robot, RobotStatus, operator};
use serde_json::{Value, json};

use super::{Rig, merge, seen};
use crate::robot::robot;

async fn rig(plane: &ControlPlane) -> opkit::Result<Rig<Robot>> {
    plane.install(&operator()).await?;
    plane.apply(robot("owner", 1)).await?;
    Rig::start_with(plane, |controller| controller).await
}

/// Changes the status as another controller would.
async fn status_by(plane: &ControlPlane, manager: &str, status: Value) -> opkit::Result<Robot> {
    let api: Api<Robot> = Api::default_namespaced(plane.client());
    let params = PatchParams::apply(manager).force();
    let body = json!({
        "apiVersion": "robot.opkit.dev/v1", "kind": "Robot", "status": status,
    });
    Ok(api
        .patch_status("owner", &params, &Patch::Apply(body))
        .await?)
}

fn theirs() -> Value {
    json!({"conditions": [{
        "type": "Theirs", "status": "True", "reason": "Said", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]})
}

fn types(robot: &Robot) -> Vec<&str> {
    let conditions = robot
        .status
        .iter()
        .flat_map(|status| status.conditions.iter());
    conditions
        .map(|condition| condition.type_.as_str())
        .collect()
}

#[opkit::test]
async fn a_status_is_written_only_on_change(plane: ControlPlane) -> opkit::Result {
    let mut rig = rig(&plane).await?;
    let (robot, cx) = rig.run().await?;
    rig.writes();
    let say = |status: &mut RobotStatus| {
        status.ready_replicas = 1;
        status
            .conditions
            .set(Condition::new("Ready", false).reason("Waiting"));
    };
    let written = cx.update_status(&robot, say).await?;
    assert_eq!(rig.writes(), ["patch robots/status owner"]);
    let again = cx.update_status(&robot, say).await?;
    assert_eq!(rig.writes(), [""; 0], "a second call reads the first write");
    assert_eq!(
        again.metadata.resource_version,
        written.metadata.resource_version
    );
    let (robot, cx) = rig.run().await?;
    cx.update_status(&robot, say).await?;
    assert_eq!(rig.writes(), [""; 0]);
    rig.stop().await
}

#[opkit::test]
async fn the_generation_is_that_of_the_run(plane: ControlPlane) -> opkit::Result {
    let mut rig = rig(&plane).await?;
    let (robot, cx) = rig.run().await?;
    let saw = robot.metadata.generation;
    // The spec changes while the run works on the previous one, and the cache gets the change.
    let changed = merge::<Robot>(&plane, "owner", json!({"spec": {"replicas": 2}})).await?;
    seen(&cx, &changed).await?;
    let written = cx
        .update_status(&robot, |status| {
            status.conditions.set(Condition::new("Ready", true));
        })
        .await?;
    let status = written.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, saw);
    assert_eq!(status.conditions[0].observed_generation, saw);
    assert_ne!(written.metadata.generation, saw);
    assert!(!written.is_ready());
    rig.stop().await
}

#[opkit::test]
async fn the_transition_time_changes_only_with_the_status(plane: ControlPlane) -> opkit::Result {
    let mut rig = rig(&plane).await?;
    let (robot, cx) = rig.run().await?;
    let say = async |status: bool, reason: &str| -> opkit::Result<_> {
        let written = cx.update_status(&robot, |change| {
            change
                .conditions
                .set(Condition::new("Ready", status).reason(reason));
        });
        let written = written.await?;
        let condition = written.status.as_ref().unwrap().conditions[0].clone();
        Ok(condition.last_transition_time.unwrap())
    };
    let first = say(false, "Waiting").await?;
    tokio::time::sleep(Duration::from_millis(1_100)).await; // the time has a resolution of one second
    assert_eq!(say(false, "Pulling").await?, first);
    assert!(say(true, "Pulled").await? > first);
    rig.stop().await
}

#[opkit::test]
async fn after_a_conflict_the_closure_runs_again_on_the_new_object(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = rig(&plane).await?;
    let (robot, cx) = rig.run().await?;
    // The next write of the status is delayed, and another client writes first.
    rig.seam.add(
        Rule::new(Effect::Delay(Duration::from_millis(300)))
            .verb("patch")
            .resource("robots.robot.opkit.dev")
            .subresource("status")
            .times(1),
    );
    let mut saw = Vec::new();
    let (written, faster) = tokio::join!(
        cx.update_status(&robot, |status| {
            saw.push(status.ready_replicas);
            status.conditions.set(Condition::new("Ready", true));
        }),
        async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            status_by(&plane, "faster", json!({"readyReplicas": 7})).await
        },
    );
    let (written, _) = (written?, faster?);
    assert_eq!(saw, [0, 7]);
    let status = written.status.as_ref().unwrap();
    assert_eq!(status.ready_replicas, 7, "the other client's write is kept");
    assert!(status.conditions.is_true("Ready"));
    rig.stop().await
}

#[opkit::test]
async fn conditions_of_other_controllers_are_kept(plane: ControlPlane) -> opkit::Result {
    let mut rig = rig(&plane).await?;
    status_by(&plane, "other", theirs()).await?;
    let (robot, cx) = rig.run().await?;
    let own = |type_: &str| -> Conditions { [Condition::new(type_, true)].into_iter().collect() };
    // The whole list is replaced, as many operators do.
    let written = cx
        .update_status(&robot, |s| s.conditions = own("Ready"))
        .await?;
    assert_eq!(types(&written), ["Theirs", "Ready"]);
    rig.writes();
    cx.update_status(&robot, |s| s.conditions = own("Ready"))
        .await?;
    assert_eq!(rig.writes(), [""; 0]);
    // The controller's own conditions are removed.
    let written = cx
        .update_status(&robot, |s| s.conditions = own("Working"))
        .await?;
    assert_eq!(types(&written), ["Theirs", "Working"]);
    let written = cx
        .update_status(&robot, |s| *s = RobotStatus::default())
        .await?;
    assert_eq!(types(&written), ["Theirs"]);
    rig.stop().await
}

/// Two controllers of one kind write repeatedly at the same time.
#[opkit::test]
async fn two_controllers_keep_each_others_conditions(plane: ControlPlane) -> opkit::Result {
    let mut one = rig(&plane).await?;
    let mut two: Rig<Robot> =
        Rig::start_with(&plane, |controller| controller.named("second")).await?;
    let say = async |cx: &Context, robot: &Arc<Robot>, type_: &str, round: i32| {
        let reason = format!("Round{round}");
        cx.update_status(robot, |status| {
            // Each controller sets only its own condition.
            let own = Condition::new(type_, round % 2 == 0).reason(reason.as_str());
            status.conditions = [own].into_iter().collect();
        })
        .await
    };
    for round in 0..10 {
        let ((robot, a), (_, b)) = (one.run().await?, two.run().await?);
        let (first, second) = tokio::join!(
            say(&a, &robot, "First", round),
            say(&b, &robot, "Second", round)
        );
        first?;
        second?;
        let stored = plane.get::<Robot>("owner").await?.unwrap();
        let mut types = types(&stored);
        types.sort_unstable();
        assert_eq!(types, ["First", "Second"]);
        let reasons = stored.status.as_ref().unwrap().conditions.iter();
        assert!(
            reasons
                .into_iter()
                .all(|c| c.reason == format!("Round{round}"))
        );
    }
    let stored = plane.get::<Robot>("owner").await?.unwrap();
    let managers = stored.metadata.managed_fields.iter().flatten();
    let managers: Vec<_> = managers
        .filter_map(|entry| entry.manager.as_deref())
        .collect();
    assert!(
        managers.contains(&"rig.robot") && managers.contains(&"rig.second"),
        "{managers:?}"
    );
    one.stop().await?;
    two.stop().await
}
