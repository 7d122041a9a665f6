//! A storage version that the kind does not have.
#![allow(dead_code, unused_imports)]

pub mod robot {
    use opkit::prelude::*;

    #[opkit::kind(group = "example.com", version = "v1", namespaced, versions(v1alpha1::Robot), storage = "v1beta1")]
    pub struct RobotSpec {
        pub replicas: i32,
    }

    pub mod v1alpha1 {
        use opkit::prelude::*;

        #[opkit::version(of = super::Robot, version = "v1alpha1")]
        pub struct RobotSpec {
            pub replicas: i32,
        }
    }
}
