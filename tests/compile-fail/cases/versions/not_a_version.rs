//! A listed type that is not a version of the kind.
#![allow(dead_code, unused_imports)]

pub mod robot {
    use opkit::prelude::*;

    #[opkit::kind(group = "example.com", version = "v1", namespaced, versions(v1alpha1::Robot))]
    pub struct RobotSpec {
        pub replicas: i32,
    }

    pub mod v1alpha1 {
        use opkit::prelude::*;

        #[opkit::kind(group = "example.com", version = "v1alpha1", namespaced)]
        pub struct RobotSpec {
            pub replicas: i32,
        }
    }
}
