//! A finalizer's function that cannot fail.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

#[opkit::reconcile]
async fn clean_up(map: Arc<ConfigMap>, cx: Context) -> Cleanup {
    Cleanup::Done
}
