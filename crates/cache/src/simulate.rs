//! Model test of the informer. An API server with a random history delivers changes to reflectors
//! over faulty connections, and the reflectors write to one informer with listeners. Some of the
//! writes on the server are *own* writes, that is, writes of the process under test, whose
//! responses are passed to the informer. Reads must never show a state older than an own write or
//! deletion, or differ from a list that was just completed. At the end the store must equal the
//! server, and every listener must have received a history that leads to that state.
//!
//! Everything is derived from one seed and runs without a clock, so that a failure can be
//! reproduced: `cargo xtask simulate --only cache --seed N`.

mod link;
mod mirror;
mod oracle;
mod server;
mod subject;

use std::time::Duration;

use opkit_apimachinery::shard::{ShardKey, ShardSelector};
use opkit_random::Random;

use self::link::{Form, Link};
use self::mirror::Mirror;
use self::oracle::Oracle;
use self::server::{Response, Server};
use self::subject::Subject;
use crate::InformerOptions;
use crate::shard::{Part, Shards};
use crate::store;

/// Fault that is injected into the informer under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Fault in the overlay, which keeps the writes of the process under test until the watch
    /// reports them.
    Overlay(store::Fault),
    /// A deletion hides the object even if finalizers keep the object on the server.
    TerminatingIsGone,
}

/// State of one run of the simulation.
struct World {
    random: Random,
    server: Server,
    subject: Subject,
    links: Vec<Link>,
    /// Number of lists that each link (reflector with its connection) had completed when the server
    /// was last restored. Until its next list, a link shows state that the restore has undone.
    lists_before: Vec<u64>,
    /// Reflectors from before the last resplit, which may still run for a while.
    previous: Vec<Link>,
    namespaces: Vec<Option<String>>,
    mirrors: Vec<Mirror>,
    /// Selector and encoding that reflectors request.
    form: Form,
    /// Whether some of the writes are made by the process under test.
    writes: bool,
    /// Whether reflectors lag far behind.
    is_slow: bool,
    /// Responses to writes of the process under test that the informer has not received yet.
    responses: Vec<Response>,
    oracle: Oracle,
    now: Duration,
}

impl World {
    fn new(seed: u64, fault: Fault) -> Self {
        let mut random = Random::new(seed);
        let mut server = Server::new(&mut random);
        let form = Form {
            selects: random.percent(40),
            protobuf: random.percent(30),
        };
        let mut options = InformerOptions::default();
        if form.selects {
            options = options.labels("app=web").unwrap();
        }
        // An object that does not match its type cannot be encoded as protobuf, and is not detected
        // if its body is evicted.
        server.has_broken = !form.protobuf;
        if random.percent(20) {
            options = options.memory_budget(random.below(3000) as usize);
            server.has_broken = false;
        }
        // All namespaces, or some of them.
        let namespaces: Vec<Option<String>> = match random.percent(60) {
            true => vec![None],
            false => {
                let some = 1 + random.below(server::NAMESPACES.len() as u64) as usize;
                let names = server::NAMESPACES.iter().take(some);
                names.map(|name| Some((*name).to_owned())).collect()
            }
        };
        let subject = Subject::new(options, fault);
        let parts = shards(&mut random).parts(&namespaces);
        let links = links(&subject, parts, form, &mut random);
        Self {
            lists_before: vec![0; links.len()],
            form,
            writes: random.percent(70),
            is_slow: random.percent(30),
            random,
            server,
            subject,
            links,
            previous: Vec::new(),
            namespaces,
            mirrors: Vec::new(),
            responses: Vec::new(),
            oracle: Oracle::default(),
            now: Duration::ZERO,
        }
    }

    /// Reports whether some reflector reports the object with this namespace and UID.
    fn is_read(&self, namespace: &str, uid: &str) -> bool {
        self.links.iter().any(|link| link.covers(namespace, uid))
    }

    /// Replaces the reflectors by new ones, which read all objects or a random part of them.
    fn resplit(&mut self) {
        let parts = shards(&mut self.random).parts(&self.namespaces);
        let links = links(&self.subject, parts, self.form, &mut self.random);
        self.oracle.resplit(&links);
        self.lists_before = vec![0; links.len()];
        self.previous = std::mem::replace(&mut self.links, links);
    }

    /// Performs one random step of the simulation.
    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..25 => self.write(),
            25..85 if self.is_slow && self.random.percent(70) => match self.random.percent(50) {
                true => self.write(),
                false => self.observe_response(),
            },
            // The informer reads an empty part of the kind.
            25..85 if self.links.is_empty() => self.write(),
            25..85 => {
                let link = self.random.below(self.links.len() as u64) as usize;
                self.turn(link, true)?;
            }
            85 if !self.previous.is_empty() => {
                let link = self.random.below(self.previous.len() as u64) as usize;
                let (server, random) = (&mut self.server, &mut self.random);
                self.previous[link].turn(&mut self.now, server, random, true);
            }
            86 if self.server.restored() == 0 && self.random.percent(30) => self.resplit(),
            85..88 => self.server.compact(&mut self.random),
            88..91 if self.mirrors.len() < 4 => self.mirrors.push(Mirror::new(&self.subject)),
            91..96 if !self.mirrors.is_empty() => {
                let mirror = self.random.below(self.mirrors.len() as u64) as usize;
                let some = self.random.below(20);
                self.mirrors[mirror].receive(some, self.server.restored() > 0)?;
            }
            96..99 => self.observe_response(),
            // An object of one shard that the restore undid can hide an earlier object of another
            // shard.
            99 if self.links.iter().all(|link| !link.is_sharded()) && self.random.percent(10) => {
                self.restore();
            }
            _ => self.now += Duration::from_millis(self.random.below(5000)),
        }
        Ok(())
    }

    /// Delivers to a reflector what the reflector requested last. If that completes a list, checks
    /// that reads show the list.
    fn turn(&mut self, link: usize, faults: bool) -> Result<(), String> {
        let (server, random) = (&mut self.server, &mut self.random);
        let link = &mut self.links[link];
        let lists = link.lists();
        link.turn(&mut self.now, server, random, faults);
        if link.lists() == lists {
            return Ok(());
        }
        let selects = self.form.selects;
        self.oracle.check_list(&self.subject, server, link, selects)
    }

    /// Changes an object. Some of these writes count as writes of the process under test.
    fn write(&mut self) {
        if self.server.is_frozen(&self.links) {
            return;
        }
        let response = self.server.write(&mut self.random);
        let (namespace, uid) = response.of();
        if self.writes && self.is_read(namespace, uid) && self.random.percent(40) {
            self.responses.push(response);
        }
    }

    /// Passes a random pending response to a write of the process under test to the informer.
    fn observe_response(&mut self) {
        if self.responses.is_empty() {
            return;
        }
        let at = self.random.below(self.responses.len() as u64) as usize;
        let response = self.responses.swap_remove(at);
        let (namespace, uid) = response.of();
        // A reflector read the object when it was written, but perhaps not any more.
        if !self.is_read(namespace, uid) {
            return;
        }
        let mut lists = self.links.iter().zip(&self.lists_before);
        let is_listed = lists.all(|(link, before)| link.lists() > *before);
        let (subject, server) = (&self.subject, &self.server);
        let mut links = self.links.iter();
        let is_partial = links.any(|link| link.is_sharded() || link.is_by_owner());
        let oracle = &mut self.oracle;
        oracle.observed(&response, subject, server, is_listed, is_partial);
        self.subject.observe(&response);
    }

    /// Restores the cluster from a backup. Connections break, so pending responses are lost.
    fn restore(&mut self) {
        for _ in 0..self.random.below(3) {
            self.observe_response();
        }
        self.responses.clear();
        self.server.restore(&self.links, &mut self.random);
        self.lists_before = self.links.iter().map(Link::lists).collect();
        self.oracle.restored();
    }

    fn check(&self) -> Result<(), String> {
        let selects = self.form.selects;
        self.oracle
            .check(&self.subject, &self.server, &self.links, selects)
    }

    /// Runs the simulation without further faults or writes until everything has been delivered.
    fn settle(&mut self) -> Result<(), String> {
        for link in 0..self.links.len() {
            let mut turns = 0;
            while !self.links[link].is_settled(&self.server) {
                self.turn(link, false)?;
                self.check()?;
                turns += 1;
                if turns > 10_000 {
                    return Err(format!("{:?} does not settle", self.links[link]));
                }
            }
        }
        while !self.responses.is_empty() {
            self.observe_response();
            self.check()?;
        }
        let expected = self.server.objects();
        let is_expected = |object: &&server::Object| {
            self.links.iter().any(|link| link.reads(object))
                && (!self.form.selects || object.is_selected)
        };
        let expected: Vec<_> = expected.iter().filter(is_expected).collect();
        let found = self.subject.contents();
        if !found.iter().eq(expected.iter().copied()) {
            return Err(format!(
                "the store differs\n server {expected:?}\n store  {found:?}"
            ));
        }
        // A watch with a selector never proves that an object is deleted, and a list of objects
        // with certain owners does not either. With several watches of a namespace, the first one
        // to settle does not know the progress of the others.
        let is_plain = |link: &Link| !link.is_sharded() && !link.is_by_owner();
        let is_one_watch = self.links.iter().all(is_plain);
        if self.subject.has_overlay() && is_one_watch && !self.form.selects {
            let overlay_text = self.subject.overlay_text();
            return Err(format!(
                "everything is reported, but the overlay still has {overlay_text}"
            ));
        }
        if let Some(error) = self.subject.last_error() {
            return Err(format!(
                "there are no failures any more, but the last error is {error}"
            ));
        }
        self.mirrors.push(Mirror::new(&self.subject));
        for mirror in &mut self.mirrors {
            mirror.receive(u64::MAX, self.server.restored() > 0)?;
            mirror.check(&expected)?;
        }
        Ok(())
    }
}

/// Returns a random split of the objects over watches.
fn shards(random: &mut Random) -> Shards {
    let key = match random.percent(80) {
        true => ShardKey::Uid,
        false => ShardKey::Namespace,
    };
    let index = random.below(2) as u32;
    let shards = match random.below(100) {
        0..55 => Shards::default(),
        55..75 => Shards::part(key, index, 2),
        75..97 => Shards::owners(ShardSelector::part(ShardKey::Uid, index, 2)),
        _ => Shards::range(ShardSelector::slots(key, [], 2)),
    };
    match random.percent(50) {
        true => shards,
        false => shards.watches(1 + random.below(4) as u32),
    }
}

/// Creates a reflector with its connection for each of the parts.
fn links(subject: &Subject, parts: Vec<Part>, form: Form, random: &mut Random) -> Vec<Link> {
    let sinks = subject.split(parts.clone());
    let pairs = parts.into_iter().zip(sinks);
    pairs
        .map(|(part, sink)| Link::new(part, sink, form, random))
        .collect()
}

/// Runs the simulation from `seed`.
fn run(seed: u64, fault: Fault) -> Result<(), String> {
    let mut world = World::new(seed, fault);
    let steps = 20 + world.random.below(400);
    for _ in 0..steps {
        world.step()?;
        world.check()?;
    }
    world.settle()
}

fn check(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let run = std::panic::catch_unwind(|| run(seed, Fault::None));
        let failure = match run {
            Ok(Ok(())) => continue,
            Ok(Err(failure)) => failure,
            Err(_) => "the simulation panicked".to_owned(),
        };
        panic!(
            "seed {seed}: {failure}\nreproduce it with: cargo xtask simulate --only cache --seed {seed}"
        );
    }
}

#[cfg(test)]
mod tests;
