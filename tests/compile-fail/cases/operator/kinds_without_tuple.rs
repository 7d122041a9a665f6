//! A kind for reading, without a tuple.
use opkit::k8s_openapi::api::core::v1::{ConfigMap, Service};
use opkit::prelude::*;

fn operator() -> Operator {
    Operator::new("test").kinds::<ConfigMap>()
}

fn correct() -> Operator {
    Operator::new("test").kinds::<(ConfigMap,)>().kinds::<(ConfigMap, Service)>()
}

fn main() {
    drop((operator(), correct()));
}
