//! Replicas that are lost in the middle of a rotation, and replicas that come back from it.

use super::*;

/// Seconds between two passes.
const STEP: i64 = 10;

/// Two replicas that have created their certificates, at a time when the first authority is due.
struct Scene {
    world: World,
    replicas: Vec<Replica>,
}

impl Scene {
    fn start() -> Self {
        let mut scene = Self {
            world: World {
                now: START,
                ..World::default()
            },
            replicas: vec![
                Replica::new("pod-0".to_owned()),
                Replica::new("pod-1".to_owned()),
            ],
        };
        scene.run_until(|scene| scene.content().authorities.len() == 2);
        scene
    }

    fn content(&self) -> Content {
        let secret = self.world.secret.as_ref().expect("a Secret");
        Content::decode(secret.get("data")).expect("valid content")
    }

    /// Lets time pass until `condition` holds. Each API server calls each replica all the time.
    /// Returns the time that has passed.
    fn run_until(&mut self, condition: impl Fn(&Self) -> bool) -> i64 {
        let start = self.world.now;
        loop {
            for replica in &mut self.replicas {
                replica.pass(&mut self.world, false).unwrap();
            }
            if condition(self) {
                return self.world.now - start;
            }
            self.world.now += STEP;
            assert!(self.world.now - start < 6000, "it waits for ever");
            self.check();
        }
    }

    /// Checks that each API server accepts the certificate of each replica.
    fn check(&self) {
        for replica in &self.replicas {
            let Some(serving) = &replica.serving else {
                continue;
            };
            for delay in DELAYS
                .iter()
                .filter(|delay| self.world.now > START + **delay)
            {
                verify(serving, self.world.bundle(*delay), NAME, self.world.now)
                    .unwrap_or_else(|error| panic!("at {}: {error}", self.world.now - START));
            }
        }
    }

    fn is_signed_by_newest(&self) -> bool {
        let content = self.content();
        let serving = content.serving.expect("a certificate");
        serving.dates.authority == content.authorities[0].dates.name
    }
}

/// No replica is special: whichever makes a step of the rotation may die right after the step.
#[test]
fn a_rotation_goes_on_without_the_replica_that_made_the_last_step() {
    let mut scene = Scene::start();
    // Both replicas are in step, and the first one makes each step: a new one takes its place.
    let replace = |scene: &mut Scene, name: &str| {
        scene.replicas.remove(0);
        scene.replicas.push(Replica::new(name.to_owned()));
    };
    replace(&mut scene, "pod-2");
    scene.run_until(|scene| scene.content().authorities.len() == 2 && scene.is_signed_by_newest());
    replace(&mut scene, "pod-3");
    scene.run_until(|scene| scene.content().authorities.len() == 1);
    let reports = scene.content().replicas;
    assert_eq!(reports.keys().collect::<Vec<_>>(), ["pod-2", "pod-3"]);
}

/// The rotation waits for a lost replica as long as it may still serve the old certificate, and no
/// longer.
#[test]
fn a_replica_that_never_comes_back_is_waited_for_until_its_timeout() {
    let mut scene = Scene::start();
    scene.run_until(|scene| scene.content().replicas["pod-1"].seen == scene.world.now);
    scene.replicas.truncate(1);
    scene.run_until(Scene::is_signed_by_newest);
    let lost = scene.content().replicas["pod-1"].clone();
    let fingerprint = scene.content().serving.unwrap().fingerprint();
    assert_ne!(lost.serving, fingerprint, "it serves the old certificate");
    scene.run_until(|scene| scene.content().authorities.len() == 1);
    let waited = scene.world.now - lost.seen;
    let timeout = crate::periods::seconds(periods().replica_timeout);
    assert!(waited >= timeout, "{waited}");
    assert!(waited <= timeout + 2 * STEP, "{waited}");
}

/// A replica that was cut off from the API server serves the new certificate after its first look
/// at the Secret, and does not bring back what it remembers.
#[test]
fn a_replica_that_comes_back_takes_the_new_certificate() {
    let mut scene = Scene::start();
    let mut lost = scene.replicas.pop().unwrap();
    let old = lost.serving.clone().unwrap();
    scene.run_until(|scene| scene.content().authorities.len() == 1);
    let content = scene.content();
    assert!(verify(&old, &content.bundle(), NAME, scene.world.now).is_err());

    lost.pass(&mut scene.world, false).unwrap();
    assert_ne!(lost.serving.as_ref(), Some(&old));
    scene.replicas.push(lost);
    scene.check();
    assert_eq!(scene.content().bundle(), content.bundle());
}

/// The Secret is lost while the only replica that notices remembers old certificates alone.
#[test]
fn an_old_memory_does_not_replace_newer_certificates() {
    let mut scene = Scene::start();
    let lost = scene.replicas.pop().unwrap();
    scene.run_until(|scene| scene.content().authorities.len() == 1);
    let known = scene.content();
    scene.world.secret = None;
    // It is first, and restores what it knows.
    scene.replicas.insert(0, lost);
    for replica in &mut scene.replicas[..1] {
        replica.pass(&mut scene.world, false).unwrap();
    }
    assert!(scene.content().history.changes < known.history.changes);
    scene.run_until(|scene| {
        let content = scene.content();
        let certificate = known.serving.as_ref().map(|it| &it.pair.certificate);
        let mut replicas = scene.replicas.iter();
        content.authorities == known.authorities
            && content.serving == known.serving
            && replicas.all(|replica| replica.serving.as_ref() == certificate)
    });
}
