//! A version with every declaration.
#![allow(dead_code, unused_imports)]

pub mod robot {
    use opkit::prelude::*;

    #[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus,
        versions(v1alpha1::Robot), storage = "v1alpha1")]
    pub struct RobotSpec {
        pub replicas: i32,
        pub paused: bool,
        pub host: String,
        pub port: u16,
        pub network: Option<Network>,
        pub region: Region,
    }

    #[opkit::schema]
    #[derive(Default)]
    pub struct Network {
        pub vlan: Option<i32>,
        pub dns: Option<String>,
    }

    #[opkit::schema]
    pub enum Region {
        Eu,
        Asia,
    }

    #[opkit::status]
    pub struct RobotStatus {
        pub observed_generation: Option<i64>,
        pub conditions: Conditions,
    }

    pub mod v1alpha1 {
        use opkit::prelude::*;

        #[opkit::version(of = super::Robot, version = "v1alpha1", deprecated, served = false)]
        #[opkit(added(paused = false, network.dns))]
        pub struct RobotSpec {
            #[opkit(renamed = replicas, changed_with(i32::from, narrow), lossy, min = 0)]
            pub size: i16,
            #[opkit(split(host, port), with(split, join))]
            pub endpoint: String,
            #[opkit(moved = network.vlan)]
            pub vlan: Option<i32>,
            #[opkit(removed)]
            pub legacy: Option<bool>,
            #[opkit(removed = "none")]
            pub firmware: String,
            pub region: Region,
        }

        #[opkit::version(of = super::Region)]
        #[opkit(added(Asia = Europe))]
        pub enum Region {
            #[opkit(renamed = Eu)]
            Europe,
            #[opkit(removed = Eu)]
            Mars,
        }

        fn narrow(replicas: i32) -> i16 {
            i16::try_from(replicas).unwrap_or(i16::MAX)
        }

        fn split(endpoint: String) -> (String, u16) {
            (endpoint, 0)
        }

        fn join(host: String, _port: u16) -> String {
            host
        }
    }
}
