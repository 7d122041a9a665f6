//! Generated objects, the same in every run: Pods of about 6.4 KB and custom resources of about 1.7
//! KB, with the parts that make real ones large and repetitive. Pods of a deployment share their
//! labels, images and environment, and there are fewer namespaces and nodes than Pods.

use opkit_random::Random;
use serde_json::{Value, json};

/// Generator of names and identifiers.
struct Names(Random);

impl Names {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn hex(&mut self, length: usize) -> String {
        let mut text = String::new();
        while text.len() < length {
            text.push_str(&format!("{:016x}", self.0.bits()));
        }
        text.truncate(length);
        text
    }

    fn uid(&mut self) -> String {
        self.0.uuid()
    }

    fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let letter = |n: u64| char::from(LETTERS[n as usize]);
        (0..5)
            .map(|_| letter(self.below(LETTERS.len() as u64)))
            .collect()
    }
}

/// Kind of the generated objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `v1` Pods.
    Pods,
    /// Custom resources, `example.com/v1` Robots.
    Robots,
}

impl Kind {
    /// Returns the start of a list's JSON.
    pub fn list_head(self) -> &'static str {
        match self {
            Self::Pods => r#"{"kind":"PodList","apiVersion":"v1""#,
            Self::Robots => r#"{"kind":"RobotList","apiVersion":"example.com/v1""#,
        }
    }

    /// Returns the JSON that precedes the fields of an object outside of a list.
    pub fn type_meta(self) -> &'static str {
        match self {
            Self::Pods => r#""kind":"Pod","apiVersion":"v1","#,
            Self::Robots => r#""apiVersion":"example.com/v1","kind":"Robot","#,
        }
    }

    /// Returns the first `count` objects, without their kind.
    pub fn objects(self, count: u64) -> impl Iterator<Item = Value> {
        let mut names = Names(Random::new(88_172_645_463_325_252));
        (0..count).map(move |number| match self {
            Self::Pods => pod(number, &mut names),
            Self::Robots => robot(number, &mut names),
        })
    }
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pods" => Ok(Self::Pods),
            "robots" => Ok(Self::Robots),
            other => Err(format!("{other:?} is neither pods nor robots")),
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pods => "pods",
            Self::Robots => "robots",
        })
    }
}

const TIME: &str = "2026-10-12T08:31:07Z";

/// Common part of all Pods of a deployment.
struct Deployment {
    number: u64,
    namespace: String,
    app: String,
    hash: String,
    owner: String,
    digest: String,
    image: String,
    env: Vec<Value>,
}

impl Deployment {
    fn new(number: u64) -> Self {
        let mut names = Names(Random::new(number));
        let role = ["api", "worker", "gateway", "indexer"][(number % 4) as usize];
        let app = format!("svc-{number:04}-{role}");
        let namespace = format!("team-{:03}-prod", number % 200);
        let env = (0..4 + names.below(4)).map(|n| variable(n, &app, &namespace));
        let env = env.collect();
        let (hash, owner, digest) = (names.hex(10), names.uid(), names.hex(64));
        let (minor, patch) = (names.below(40), names.below(20));
        Self {
            number,
            hash,
            owner,
            digest,
            image: format!("registry.example.com/platform/{app}:v1.{minor}.{patch}"),
            env,
            namespace,
            app,
        }
    }
}

fn variable(number: u64, app: &str, namespace: &str) -> Value {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    match number {
        0 => field("POD_NAME", "metadata.name"),
        1 => field("POD_NAMESPACE", "metadata.namespace"),
        2 => {
            json!({"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": format!("{app}-db"), "key": "password"}}})
        }
        n => {
            json!({"name": format!("SETTING_{n}"), "value": format!("https://{app}.{namespace}.svc.cluster.local:8443/{n}")})
        }
    }
}

fn pod(number: u64, names: &mut Names) -> Value {
    let deployment = Deployment::new(names.below(2500));
    let Deployment {
        namespace,
        app,
        hash,
        owner,
        ..
    } = &deployment;
    let (node, host) = (
        [names.below(4), names.below(16), names.below(16)],
        [names.below(4), names.below(16), names.below(16)],
    );
    let node = format!(
        "ip-10-{}-{}-{}.eu-west-1.compute.internal",
        node[0], node[1], node[2]
    );
    let host_ip = format!("10.{}.{}.{}", host[0], host[1], host[2]);
    let pod_ip = [64 + names.below(16), names.below(255), names.below(255)];
    let pod_ip = format!("100.{}.{}.{}", pod_ip[0], pod_ip[1], pod_ip[2]);
    let token = format!("kube-api-access-{}", names.suffix());
    let (containers, statuses) = containers(&deployment, &token, names);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": TIME});
    json!({
        "metadata": {
            "name": format!("{app}-{hash}-{}", names.suffix()),
            "generateName": format!("{app}-{hash}-"),
            "namespace": namespace,
            "uid": names.uid(),
            "resourceVersion": (100_000_000 + number).to_string(),
            "creationTimestamp": TIME,
            "labels": {
                "app.kubernetes.io/instance": app, "app.kubernetes.io/name": app,
                "app.kubernetes.io/version": format!("1.{}", deployment.number % 40),
                "pod-template-hash": hash, "team": format!("team-{:03}", deployment.number % 200),
            },
            "annotations": {
                "prometheus.io/scrape": "true", "prometheus.io/port": "9090", "team.example.com/tier": "gold",
                "bench.example.com/nonce": "0000000000000000000",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-{hash}"), "uid": owner,
                "controller": true, "blockOwnerDeletion": true,
            }],
            "managedFields": managed_fields(app, owner, &pod_ip),
        },
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": format!("{app}-config"), "defaultMode": 420}},
                {"name": token, "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
                ]}},
            ],
            "containers": containers,
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": app, "serviceAccount": app, "nodeName": node,
            "securityContext": {"fsGroup": 2000}, "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "hostIP": host_ip, "hostIPs": [{"ip": host_ip}], "podIP": pod_ip, "podIPs": [{"ip": pod_ip}],
            "startTime": TIME, "containerStatuses": statuses, "qosClass": "Burstable",
        },
    })
}

/// The containers and their states; every eighth deployment has a proxy beside its own.
fn containers(deployment: &Deployment, token: &str, names: &mut Names) -> (Vec<Value>, Vec<Value>) {
    let Deployment {
        app,
        image,
        env,
        digest,
        ..
    } = deployment;
    let account = json!({"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true});
    let state = |name: &str, image: &str, id: String, container: String, restarts: u64| {
        json!({
            "name": name, "state": {"running": {"startedAt": TIME}}, "lastState": {}, "ready": true,
            "restartCount": restarts, "image": image, "imageID": id, "started": true,
            "containerID": format!("containerd://{container}"),
        })
    };
    let restarts = names.below(20) / 18;
    let id = format!("registry.example.com/platform/{app}@sha256:{digest}");
    let mut containers = vec![json!({
        "name": app, "image": image, "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": env,
        "resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config", "readOnly": true}, account],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true, "runAsNonRoot": true,
        },
    })];
    let mut states = vec![state(app, image, id, names.hex(64), restarts)];
    if deployment.number.is_multiple_of(8) {
        let image = "registry.example.com/mesh/proxy:2.14.1";
        let id = "registry.example.com/mesh/proxy@sha256:5f1a0f3b2c8d4e6f7a9b0c1d2e3f405162738495a6b7c8d9e0f1a2b3c4d5e6f7";
        containers.push(json!({
            "name": "proxy", "image": image, "imagePullPolicy": "IfNotPresent",
            "args": ["run", "--admin-port", "15000", "--log-level", "warn"],
            "ports": [{"name": "proxy", "containerPort": 15001, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
            "volumeMounts": [account],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        }));
        states.push(state("proxy", image, id.to_owned(), names.hex(64), 0));
    }
    (containers, states)
}

fn managed_fields(app: &str, owner: &str, pod_ip: &str) -> Value {
    let container = json!({
        ".": {},
        "f:env": {
            ".": {},
            "k:{\"name\":\"DB_PASSWORD\"}": {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:secretKeyRef": {}}},
            "k:{\"name\":\"POD_NAME\"}": {".": {}, "f:name": {}},
        },
        "f:image": {}, "f:imagePullPolicy": {},
        "f:livenessProbe": {".": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}}, "f:periodSeconds": {}},
        "f:name": {},
        "f:resources": {".": {}, "f:limits": {".": {}, "f:memory": {}}, "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}},
        "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}, "f:volumeMounts": {},
    });
    let condition = json!({".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}});
    json!([
        {
            "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": TIME,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {
                    "f:annotations": {".": {}, "f:prometheus.io/port": {}, "f:prometheus.io/scrape": {}},
                    "f:generateName": {},
                    "f:labels": {
                        ".": {}, "f:app.kubernetes.io/instance": {}, "f:app.kubernetes.io/name": {},
                        "f:app.kubernetes.io/version": {}, "f:pod-template-hash": {}, "f:team": {},
                    },
                    "f:ownerReferences": {".": {}, format!("k:{{\"uid\":\"{owner}\"}}"): {}},
                },
                "f:spec": {
                    "f:containers": {format!("k:{{\"name\":\"{app}\"}}"): container},
                    "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {},
                    "f:securityContext": {}, "f:serviceAccount": {}, "f:serviceAccountName": {},
                    "f:terminationGracePeriodSeconds": {},
                    "f:volumes": {".": {}, "k:{\"name\":\"config\"}": {".": {}, "f:configMap": {".": {}, "f:defaultMode": {}, "f:name": {}}, "f:name": {}}},
                },
            },
        },
        {
            "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": TIME,
            "fieldsType": "FieldsV1", "subresource": "status",
            "fieldsV1": {"f:status": {
                "f:conditions": {"k:{\"type\":\"ContainersReady\"}": condition, "k:{\"type\":\"Ready\"}": condition},
                "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {},
                "f:podIPs": {".": {}, format!("k:{{\"ip\":\"{pod_ip}\"}}"): {".": {}, "f:ip": {}}},
                "f:startTime": {},
            }},
        },
    ])
}

fn robot(number: u64, names: &mut Names) -> Value {
    let namespace = format!("team-{:03}-prod", names.below(200));
    let name = format!("robot-{number:06}");
    let tier = ["gold", "silver", "bronze"][names.below(3) as usize];
    let zone = ["a", "b", "c"][names.below(3) as usize];
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": TIME, "observedGeneration": 3,
        })
    };
    json!({
        "metadata": {
            "name": name, "namespace": namespace, "uid": names.uid(),
            "resourceVersion": (200_000_000 + number).to_string(),
            "generation": 1 + names.below(9), "creationTimestamp": TIME,
            "labels": {"app.kubernetes.io/name": "robot", "app.kubernetes.io/managed-by": "operator", "tier": tier},
            "annotations": {"bench.example.com/nonce": "0000000000000000000"},
            "finalizers": ["robots.example.com/cleanup"],
            "managedFields": [
                {
                    "manager": "robot-operator", "operation": "Update", "apiVersion": "example.com/v1", "time": TIME,
                    "fieldsType": "FieldsV1", "subresource": "status",
                    "fieldsV1": {"f:status": {".": {}, "f:conditions": {}, "f:observedGeneration": {}, "f:replicas": {}}},
                },
                {
                    "manager": "kubectl", "operation": "Apply", "apiVersion": "example.com/v1", "time": TIME,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}, "f:tier": {}}},
                        "f:spec": {"f:image": {}, "f:replicas": {}, "f:config": {}},
                    },
                },
            ],
        },
        "spec": {
            "image": format!("registry.example.com/robots/unit:v{}", names.below(30)),
            "replicas": names.below(10), "paused": false,
            "config": {
                "speed": names.below(100), "mode": "auto",
                "endpoints": [format!("https://{name}.{namespace}.svc:443"), "https://telemetry.example.com/ingest"],
                "featureGates": {"alpha": true, "beta": false},
            },
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "nodeSelector": {"topology.kubernetes.io/zone": format!("eu-west-1{zone}")},
        },
        "status": {
            "observedGeneration": 3, "replicas": names.below(10), "phase": "Ready",
            "conditions": [
                condition("Ready", "True", "AllReplicasReady", "all replicas are available"),
                condition("Progressing", "False", "Done", ""),
            ],
        },
    })
}
