//! A storage version of a kind with one version.
#![allow(dead_code, unused_imports)]

pub mod robot {
    use opkit::prelude::*;

    #[opkit::kind(group = "example.com", version = "v1", namespaced, storage = "v1")]
    pub struct RobotSpec {
        pub replicas: i32,
    }

    pub mod v1alpha1 {
        use opkit::prelude::*;

        #[opkit::version(of = super::Robot, served = false)]
        pub struct Tool {
            pub replicas: i32,
        }
    }
}
