//! An operator that runs fleets of robots: one Deployment per Robot.

mod deployment;
mod robot;
#[cfg(test)]
mod tests;

use opkit::k8s_openapi::api::apps::v1::Deployment;
use opkit::prelude::*;

use deployment::{desired_deployment, report_change};
pub use robot::{Robot, RobotSpec, RobotStatus};

/// Returns the operator.
pub fn operator() -> Operator {
    Operator::new("robot-operator")
        .crd::<Robot>()
        .controller(Controller::new(reconcile).owns::<Deployment>())
}

/// Brings one robot to the state in its spec. Called on every change of the robot or its
/// deployment; safe to repeat.
async fn reconcile(robot: Arc<Robot>, cx: Context) -> Result<Action> {
    let before = cx.get::<Deployment>(robot.name_any())?;
    let deployment = cx.apply(desired_deployment(&robot)).await?;
    report_change(&robot, before.as_deref(), &deployment, &cx);
    // Deletes deployments that an earlier version of this operator applied under another name.
    cx.prune().await?;

    cx.update_status(&robot, |status| {
        status.ready_replicas = deployment.ready_replicas();
        status
            .conditions
            .set(Condition::new("Ready", deployment.is_ready()).reason("DeploymentRollout"));
    })
    .await?;
    Ok(Action::await_change())
}
