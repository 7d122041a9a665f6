//! An operator that is killed in the middle of a reconcile, at every write it makes, and started
//! again.

mod point;
mod unowned;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use opkit::{Capability, RunOptions, prelude::*};
use robot_operator::{Robot, operator};
use tokio_util::sync::CancellationToken;

use crate::robot::{has_ready, robot};
use point::{Crash, CrashPoint};

/// More writes than one robot takes; the loop ends at the first that does not happen.
const WRITES: usize = 40;

/// What two runs must agree on. The robot's uid, which is another each time, is left out.
async fn end_state(plane: &ControlPlane) -> opkit::Result<BTreeMap<&'static str, String>> {
    let robot = plane.get::<Robot>("robot-one").await?.unwrap();
    let deployment = plane.get::<Deployment>("robot-one").await?.unwrap();
    let managers = deployment.metadata.managed_fields.iter().flatten();
    let managers: Vec<_> = managers
        .filter(|entry| entry.manager.as_deref() == Some("robot-operator.robot"))
        .map(|entry| {
            (
                entry.operation.clone(),
                entry.fields_v1.clone().map(|fields| fields.0),
            )
        })
        .collect();
    let status = robot.status.as_ref().unwrap();
    let state = [
        ("robot", serde_json::to_string(&robot.spec)?),
        ("ready", status.ready_replicas.to_string()),
        (
            "observed",
            serde_json::to_string(&status.observed_generation)?,
        ),
        (
            "generation",
            serde_json::to_string(&deployment.metadata.generation)?,
        ),
        ("deployment", serde_json::to_string(&deployment.spec)?),
        ("managers", serde_json::to_string(&managers)?),
    ];
    let uid = robot.uid().unwrap_or_default();
    Ok(state
        .map(|(name, value)| (name, value.replace(&uid, "UID")))
        .into())
}

/// Runs the operator until it crashes at `point`, or until the robot is ready if it does not; then
/// starts it again and waits. Returns whether it crashed, and the end.
async fn run(point: CrashPoint) -> opkit::Result<(bool, BTreeMap<&'static str, String>)> {
    let plane = ControlPlane::embedded()?;
    plane.install(&operator()).await?;
    plane.apply(robot("robot-one", 2)).await?;

    let crash = Crash::at(point);
    let client = crash.around(plane.client());
    let first = operator().run_with(client, RunOptions::default(), CancellationToken::new());
    let ready = plane.eventually("robot-one", |robot: &Robot| has_ready(robot, 2));
    // Dropping the operator's future is its death: nothing is flushed, nothing is told.
    tokio::select! {
        ended = first => return Err(Error::msg(format!("the operator ended: {ended:?}"))),
        () = crash.happened() => {}
        ready = ready => { ready?; }
    }

    plane.start(operator()).await?;
    plane
        .eventually("robot-one", |robot: &Robot| has_ready(robot, 2))
        .await?;
    let end = end_state(&plane).await?;
    plane.shutdown().await?;
    Ok((crash.has_happened(), end))
}

/// Only embedded: each crash needs a cluster that nobody has written to, and what is explored is
/// the operator, not the server.
#[opkit::test]
async fn a_crash_at_any_write_converges_to_the_same_state(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    let (_, wanted) = run(CrashPoint::Before(usize::MAX)).await?;
    let mut crashes = 0;
    for number in 1..WRITES {
        let mut happened = false;
        for point in [CrashPoint::Before(number), CrashPoint::After(number)] {
            let (crashed, end) = run(point).await?;
            assert_eq!(end, wanted, "after a crash {point:?}");
            happened |= crashed;
            crashes += usize::from(crashed);
        }
        if !happened {
            break;
        }
    }
    // A finalizer or a child, its managed fields, a status: an operator that writes less is not
    // tested.
    assert!(crashes >= 6, "only {crashes} crashes happened");
    Ok(())
}
