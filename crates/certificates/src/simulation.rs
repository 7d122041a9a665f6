//! Rotations in virtual time: three replicas share one Secret, and two API servers with different
//! delays call the replicas all the time.

mod lost;

use std::collections::BTreeSet;
use std::time::Duration;

use opkit_client::ObjectKey;
use opkit_random::Random;
use serde_json::{Value, json};

use crate::content::{Content, blocks, verify};
use crate::machine::{Machine, Targets};
use crate::rotation::Purpose;
use crate::{CertificateError, Periods};

const START: i64 = 1_790_000_000;
const NAME: &str = "shop-webhook.shops.svc";
/// Delays of the API servers until they use a new bundle, in seconds.
const DELAYS: [i64; 2] = [0, 55];

fn periods() -> Periods {
    let seconds = Duration::from_secs;
    Periods {
        authority: seconds(6000),
        serving: seconds(1500),
        propagation: seconds(60),
        heartbeat: seconds(50),
        replica_timeout: seconds(150),
    }
}

/// The Secret and the bundles, as the API server stores them.
#[derive(Default)]
struct World {
    secret: Option<Value>,
    version: u64,
    /// Bundles of the webhook configuration, with the time since which each applies.
    bundles: Vec<(i64, String)>,
    /// Certificates of all authorities so far.
    authorities: BTreeSet<String>,
    now: i64,
}

impl World {
    fn write(&mut self, mut secret: Value) -> bool {
        let version = secret.pointer("/metadata/resourceVersion");
        let stored = self
            .secret
            .as_ref()
            .and_then(|stored| stored.pointer("/metadata/resourceVersion"));
        if version != stored {
            return false;
        }
        self.version += 1;
        secret["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.secret = Some(secret);
        true
    }

    /// Returns the bundle that an API server with this delay uses.
    fn bundle(&self, delay: i64) -> &str {
        let known = self.bundles.iter().rev();
        let mut known = known.filter(|(since, _)| since + delay <= self.now);
        known.next().map_or("", |(_, bundle)| bundle)
    }
}

/// A replica with its own view of the world.
struct Replica {
    machine: Machine,
    /// Certificate that the replica serves.
    serving: Option<String>,
    confirmed: Option<(String, i64)>,
    /// Number of bundles and the Secret, as the replica saw them last.
    seen: (usize, Option<Value>),
}

impl Replica {
    fn new(name: String) -> Self {
        let purpose = Purpose {
            operator: "shop-operator".to_owned(),
            names: vec![NAME.to_owned()],
            periods: periods(),
        };
        let secret = ObjectKey::from(("shops", "shop-webhook-certificates"));
        Self {
            machine: Machine::new(purpose, secret, name),
            serving: None,
            confirmed: None,
            seen: (0, None),
        }
    }

    /// Makes one pass, as the keeper of the replica does: it reads the Secret, unless
    /// `is_stale`, and writes.
    fn pass(&mut self, world: &mut World, is_stale: bool) -> Result<(), CertificateError> {
        if !is_stale {
            self.seen = (world.bundles.len(), world.secret.clone());
        }
        let targets = Targets {
            have_bundle: !world.bundles.is_empty(),
            confirmed: self.confirmed.as_ref(),
        };
        let secret = self.seen.1.as_ref();
        let step = self.machine.step(secret, targets, world.now)?;
        if let Some(serving) = step.serve {
            self.serving = Some(serving.pair.certificate);
        }
        if let Some(bundle) = step.bundle {
            let merged = bundle.merged(world.bundle(0));
            let known = self.confirmed.as_ref().map(|(bundle, _)| bundle);
            let is_new = known != Some(&bundle.certificates);
            let is_written = world.bundle(0) != merged;
            if is_written && world.bundles.len() != self.seen.0 {
                return Ok(()); // A conflict.
            }
            if is_written {
                world.authorities.extend(blocks(&merged));
                world.bundles.push((world.now, merged));
            }
            if is_new || is_written {
                self.confirmed = Some((bundle.certificates, world.now));
            }
        }
        if let Some(write) = step.write {
            world.write(write);
        }
        Ok(())
    }
}

/// Every admission of a hundred rotations succeeds, although replicas crash, start again, see the
/// Secret late, and the Secret is deleted or damaged by hand.
#[test]
fn no_admission_fails_in_a_hundred_rotations() {
    let mut random = Random::new(7);
    let mut world = World {
        now: START,
        ..World::default()
    };
    let mut replicas: Vec<Replica> = (0..3).map(|n| Replica::new(format!("pod-{n}"))).collect();
    for _ in 0..3 {
        for replica in &mut replicas {
            replica.pass(&mut world, false).unwrap();
        }
    }
    world.now += 60;
    let (mut admissions, mut started) = (0, 3);
    while world.authorities.len() < 101 {
        world.now += 20;
        assert!(world.now < START + 101 * 6000, "rotations are too slow");
        for replica in &mut replicas {
            // A replica does not notice every change at once, and another one may write between
            // its read and its write.
            if random.below(3) > 0 {
                replica.pass(&mut world, random.below(10) == 0).unwrap();
            }
        }
        match random.below(100) {
            0 => world.secret = None,
            1 => {
                if let Some(secret) = &mut world.secret {
                    secret["data"]["tls.crt"] = json!("ZWRpdGVk");
                    world.version += 1;
                    secret["metadata"]["resourceVersion"] = json!(world.version.to_string());
                }
            }
            2 => {
                // One replica crashes and another starts; it gets requests when it is ready.
                let mut replica = Replica::new(format!("pod-{started}"));
                started += 1;
                for _ in 0..10 {
                    replica.pass(&mut world, false).unwrap();
                }
                if replica.serving.is_some() {
                    let crashed = usize::try_from(random.below(3)).unwrap();
                    replicas[crashed] = replica;
                }
            }
            _ => {}
        }
        for delay in DELAYS {
            let replica = &replicas[usize::try_from(random.below(3)).unwrap()];
            let serving = replica.serving.as_ref().expect("the replica is ready");
            verify(serving, world.bundle(delay), NAME, world.now)
                .unwrap_or_else(|error| panic!("at {}, delay {delay}: {error}", world.now - START));
            admissions += 1;
        }
    }
    assert!(admissions > 15_000, "{admissions}");
}

#[test]
fn a_secret_of_another_operator_is_left_unchanged() {
    let mut replica = Replica::new("pod-1".to_owned());
    let mut world = World {
        now: START,
        ..World::default()
    };
    replica.pass(&mut world, false).unwrap();
    let mut foreign = world.secret.clone().unwrap();
    foreign["metadata"]["annotations"][crate::machine::OWNER] = json!("robot-operator");
    let error = replica
        .machine
        .step(Some(&foreign), Targets::default(), START)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Secret shops/shop-webhook-certificates holds the webhook certificates of robot-operator, \
         not of shop-operator: give each operator a Secret of its own (--webhook-secret)"
    );
    let unknown = json!({"metadata": {"resourceVersion": "1"}, "data": {"password": "eA=="}});
    let error = replica
        .machine
        .step(Some(&unknown), Targets::default(), START)
        .unwrap_err();
    assert!(
        error.to_string().contains("was not created by opkit"),
        "{error}"
    );
    let empty = json!({"metadata": {"resourceVersion": "1"}});
    assert!(
        replica
            .machine
            .step(Some(&empty), Targets::default(), START)
            .is_ok()
    );
}

#[test]
fn a_stopped_replica_removes_its_report() {
    let mut world = World {
        now: START,
        ..World::default()
    };
    let mut replica = Replica::new("pod-1".to_owned());
    for _ in 0..3 {
        replica.pass(&mut world, false).unwrap();
    }
    let secret = world.secret.clone().unwrap();
    let content = Content::decode(secret.get("data")).unwrap();
    assert!(content.replicas.contains_key("pod-1"));
    let secret = replica.machine.without_report(&secret).unwrap();
    let content = Content::decode(secret.get("data")).unwrap();
    assert!(content.replicas.is_empty());
    assert!(replica.machine.without_report(&secret).is_none());
}
