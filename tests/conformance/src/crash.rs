//! An operator that crashes in the middle of a reconcile, at each of its writes, and is restarted.

mod point;
mod unowned;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use opkit::operator::RunOptions;
use opkit::prelude::*;
use opkit::testing::Capability;
use robot_operator::{Robot, operator};
use tokio_util::sync::CancellationToken;

use crate::robot::{has_ready, robot};
use point::{Crash, CrashPoint};

/// More writes than one robot needs; the loop ends at the first write that does not happen.
const WRITES: usize = 40;

/// Returns the state that two runs must agree on, without the robot's uid, which differs each time.
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
/// restarts it and waits. Returns whether it crashed, and the final state.
async fn run(point: CrashPoint) -> opkit::Result<(bool, BTreeMap<&'static str, String>)> {
    let plane = ControlPlane::embedded()?;
    plane.install(&operator()).await?;
    plane.apply(robot("robot-one", 2)).await?;

    let crash = Crash::at(point);
    let client = crash.around(plane.client());
    let first = operator().run_with(client, RunOptions::default(), CancellationToken::new());
    let ready = plane.eventually("robot-one", |robot: &Robot| has_ready(robot, 2));
    // Dropping the operator's future simulates the crash: nothing is flushed or reported.
    tokio::select! {
        ended = first => return Err(Error::msg(format!("the operator stopped: {ended:?}"))),
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

/// Only embedded: each crash needs an empty cluster, and the test is about the operator, not the
/// server.
#[opkit::test]
async fn a_crash_at_any_write_converges_to_the_same_state(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    let (_, expected) = run(CrashPoint::Before(usize::MAX)).await?;
    let mut crashes = 0;
    for number in 1..WRITES {
        let mut happened = false;
        for point in [CrashPoint::Before(number), CrashPoint::After(number)] {
            let (crashed, end) = run(point).await?;
            assert_eq!(end, expected, "after a crash {point:?}");
            happened |= crashed;
            crashes += usize::from(crashed);
        }
        if !happened {
            break;
        }
    }
    // At least a finalizer or a child, its managed fields, and a status: with fewer writes the test
    // would be meaningless.
    assert!(crashes >= 6, "only {crashes} crashes happened");
    Ok(())
}
