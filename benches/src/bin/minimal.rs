//! The smallest operator, with all parts that every operator has, to measure its size, the time to
//! its first reconcile and its memory when idle. It prints a line at its first reconcile.

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

#[opkit::main]
async fn main() -> opkit::Result {
    let controller = Controller::new(reconcile);
    let mut operator = Operator::new("minimal").controller(controller);
    // As in its peer: outside of a pod there is no namespace for a Lease.
    if std::env::var_os("LEADER_ELECT").is_some() {
        operator = operator.leader_election("minimal.opkit.dev");
    }
    operator.run().await
}

async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result<Action> {
    println!("reconciled");
    Ok(Action::await_change())
}
