use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;

use super::{Charges, QuotaState};
use crate::store::Key;

/// Returns a charge of the quota `q`.
async fn charge(state: &Arc<QuotaState>) -> Charges {
    let charges = Charges::default();
    charges.start(state, state.lock("n").await);
    charges.add(Key::new("n", "q"));
    charges
}

#[tokio::test]
async fn a_quota_is_locked_until_its_object_is_stored() {
    let state = Arc::new(QuotaState::default());
    let charges = charge(&state).await;
    assert!(state.lock("n").now_or_never().is_none());
    charges.settle();
    assert!(state.lock("n").now_or_never().is_some());
    assert_eq!(state.take_uncertain(), BTreeSet::new());
    assert!(state.uncertain().now_or_never().is_none());
}

#[tokio::test]
async fn a_charge_without_an_object_is_recalculated() {
    let expected = BTreeSet::from([Key::new("n", "q")]);
    let state = Arc::new(QuotaState::default());
    charge(&state).await.release();
    assert_eq!(state.take_uncertain(), expected);
    // Also if the request is given up.
    drop(charge(&state).await);
    assert!(state.uncertain().now_or_never().is_some());
    assert_eq!(state.take_uncertain(), expected);
    assert!(state.lock("n").now_or_never().is_some());
}
