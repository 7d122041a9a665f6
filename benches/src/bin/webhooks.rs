//! An operator with webhooks and no controller: one sets a default in Pods, one validates Pods, and
//! one converts Robots between two versions. Its peer is `peers/controller-runtime/webhook`.

use k8s_openapi::api::core::v1::Pod;
use opkit::prelude::*;

#[opkit::main]
async fn main() -> opkit::Result {
    let webhook = Webhook::new().defaulting(set_account).validating(check);
    Operator::new("webhooks")
        .crd::<robot::Robot>()
        .webhook(webhook)
        .run()
        .await
}

fn set_account(pod: &mut Pod) {
    if let Some(spec) = &mut pod.spec {
        let account = &mut spec.service_account_name;
        account.get_or_insert_with(|| "robots".to_owned());
    }
}

fn check(pod: &Pod, _: Option<&Pod>) -> Admission {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut admission = Admission::allowed();
    for container in containers {
        let image = container.image.as_deref().unwrap_or_default();
        if !image.contains(':') {
            admission.invalid("spec.containers", image, "the image has no tag");
        }
    }
    admission
}

mod robot {
    use opkit::prelude::*;

    #[opkit::kind(
        group = "robot.opkit.dev",
        version = "v1",
        namespaced,
        versions(v1alpha1::Robot),
        storage = "v1alpha1"
    )]
    pub struct RobotSpec {
        pub image: String,
        pub replicas: i32,
        pub host: String,
        pub port: u16,
        pub labels: BTreeMap<String, String>,
    }

    pub mod v1alpha1 {
        use opkit::prelude::*;

        #[opkit::version(of = super::Robot, version = "v1alpha1")]
        pub struct RobotSpec {
            pub image: String,
            #[opkit(renamed = replicas)]
            pub size: i32,
            #[opkit(split(host, port), with(split_endpoint, join_endpoint))]
            pub endpoint: String,
            pub labels: BTreeMap<String, String>,
        }

        fn split_endpoint(endpoint: String) -> (String, u16) {
            let (host, port) = endpoint.rsplit_once(':').unwrap_or((&endpoint, "0"));
            (host.to_owned(), port.parse().unwrap_or_default())
        }

        fn join_endpoint(host: String, port: u16) -> String {
            format!("{host}:{port}")
        }
    }
}
