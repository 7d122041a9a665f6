//! A field with two declarations, and declarations without their functions.
#![allow(dead_code, unused_imports)]

pub mod robot {
    use opkit::prelude::*;

    #[opkit::kind(group = "example.com", version = "v1", namespaced, versions(v1alpha1::Robot))]
    pub struct RobotSpec {
        pub replicas: i32,
        pub paused: bool,
    }

    pub mod v1alpha1 {
        use opkit::prelude::*;

        #[opkit::version(of = super::Robot, version = "v1alpha1")]
        #[opkit(added(paused))]
        pub struct RobotSpec {
            #[opkit(renamed = replicas, removed)]
            pub size: i32,
            #[opkit(split(host, port))]
            pub endpoint: String,
            #[opkit(with(a, b))]
            pub other: String,
            #[opkit(moved = network)]
            pub vlan: i32,
            #[opkit(removed, changed_with(a, b))]
            pub gone: i32,
            #[opkit(lossy)]
            pub plain: i32,
        }
    }
}
