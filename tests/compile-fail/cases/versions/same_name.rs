//! Two versions with one name.
#![allow(dead_code, unused_imports)]

pub mod robot {
    use opkit::prelude::*;

    #[opkit::kind(group = "example.com", version = "v1", namespaced, versions(v1alpha1::Robot))]
    pub struct RobotSpec {
        pub replicas: i32,
    }

    pub mod v1alpha1 {
        use opkit::prelude::*;

        #[opkit::version(of = super::Robot, version = "v1")]
        pub struct RobotSpec {
            pub replicas: i32,
        }
    }
}
