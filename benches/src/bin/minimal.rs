//! The smallest operator, with everything that every operator has: for how large it is, how soon it
//! works and what it needs when there is nothing to do. It says when it reconciles.

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

#[opkit::main]
async fn main() -> opkit::Result {
    let controller = Controller::new(reconcile);
    let mut operator = Operator::new("minimal").controller(controller);
    // As its peer: outside of a pod there is no namespace for a lease.
    if std::env::var_os("LEADER_ELECT").is_some() {
        operator = operator.leader_election("minimal.opkit.dev");
    }
    operator.run().await
}

async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result<Action> {
    println!("reconciled");
    Ok(Action::await_change())
}
