//! Several versions of a kind: the CRD, and objects that clients write and read in any version.

mod declared;
mod migration;
mod rover;
mod served;

use opkit::prelude::*;

use self::rover::Rover;

fn operator() -> Operator {
    Operator::new("rover-operator").crd::<Rover>()
}
