//! The model test: random histories of an API server, delivered to reflectors over connections that
//! fail in every way there is, into one informer with listeners. Some writes are our own. At no
//! moment do reads go back behind what we did, or differ from a list that was just completed; at
//! the end the store equals the server, and every listener saw a history that leads there.
//!
//! Everything is drawn from one seed and runs without a clock, so that a failure can be repeated:
//! `cargo xtask simulate --only cache --seed N`.

mod link;
mod mirror;
mod oracle;
mod server;
mod subject;

use std::time::Duration;

use opkit_apimachinery::random::Random;
use opkit_apimachinery::shard::ShardKey;

use self::link::{Form, Link};
use self::mirror::Mirror;
use self::oracle::Oracle;
use self::server::{Response, Server};
use self::subject::Subject;
use crate::InformerOptions;
use crate::shard::{Part, Shards};
use crate::store;

/// What the subject does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// In how it keeps own writes.
    Overlay(store::Fault),
    /// A deletion whose object stays for its finalizers hides the object.
    TerminatingIsGone,
}

/// One run: what exists, and what may still go wrong.
struct World {
    random: Random,
    server: Server,
    subject: Subject,
    links: Vec<Link>,
    /// How many lists each had completed when the server was restored last: until the next one, it
    /// shows what the restore has undone.
    lists_before: Vec<u64>,
    /// Reflectors of before, which may go on for a while.
    former: Vec<Link>,
    namespaces: Vec<Option<String>>,
    mirrors: Vec<Mirror>,
    /// What reflectors ask for.
    form: Form,
    /// Whether some of the writes are our own.
    writes: bool,
    /// Whether reflectors lag far behind.
    is_slow: bool,
    /// Responses to writes of our own that have not been taken in yet.
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
        // What does not fit its type has no form in protobuf, nor is it known of an evicted body.
        server.has_broken = !form.protobuf;
        if random.percent(20) {
            options = options.memory_budget(random.below(3000) as usize);
            server.has_broken = false;
        }
        // Everything, or some namespaces.
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
            former: Vec::new(),
            namespaces,
            mirrors: Vec::new(),
            responses: Vec::new(),
            oracle: Oracle::default(),
            now: Duration::ZERO,
        }
    }

    /// Whether some reflector reads this object.
    fn is_read(&self, namespace: &str, uid: &str) -> bool {
        self.links.iter().any(|link| link.covers(namespace, uid))
    }

    /// Other reflectors read it all, or another part of it.
    fn resplit(&mut self) {
        let parts = shards(&mut self.random).parts(&self.namespaces);
        let links = links(&self.subject, parts, self.form, &mut self.random);
        self.oracle.resplit(&links);
        self.lists_before = vec![0; links.len()];
        self.former = std::mem::replace(&mut self.links, links);
    }

    /// Something happens somewhere.
    fn happen(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..25 => self.write(),
            25..85 if self.is_slow && self.random.percent(70) => match self.random.percent(50) {
                true => self.write(),
                false => self.take_in_response(),
            },
            25..85 => {
                let link = self.random.below(self.links.len() as u64) as usize;
                self.turn(link, true)?;
            }
            85 if !self.former.is_empty() => {
                let link = self.random.below(self.former.len() as u64) as usize;
                let (server, random) = (&mut self.server, &mut self.random);
                self.former[link].turn(&mut self.now, server, random, true);
            }
            86 if self.server.restored() == 0 && self.random.percent(30) => self.resplit(),
            85..88 => self.server.compact(&mut self.random),
            88..91 if self.mirrors.len() < 4 => self.mirrors.push(Mirror::new(&self.subject)),
            91..96 if !self.mirrors.is_empty() => {
                let mirror = self.random.below(self.mirrors.len() as u64) as usize;
                let some = self.random.below(20);
                self.mirrors[mirror].receive(some, self.server.restored() > 0)?;
            }
            96..99 => self.take_in_response(),
            // A life that the restore undid, in one shard, hides an earlier one in another.
            99 if self.links.iter().all(|link| !link.is_sharded()) && self.random.percent(10) => {
                self.restore();
            }
            _ => self.now += Duration::from_millis(self.random.below(5000)),
        }
        Ok(())
    }

    /// A reflector gets what it asked for last. If that completes a list, reads show the list.
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

    /// Somebody changes an object, perhaps we ourselves.
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

    /// The response to a write of our own arrives, in any order.
    fn take_in_response(&mut self) {
        if self.responses.is_empty() {
            return;
        }
        let at = self.random.below(self.responses.len() as u64) as usize;
        let response = self.responses.swap_remove(at);
        let (namespace, uid) = response.of();
        // It was read when it was written, but perhaps not since.
        if !self.is_read(namespace, uid) {
            return;
        }
        let mut lists = self.links.iter().zip(&self.lists_before);
        let is_listed = lists.all(|(link, before)| link.lists() > *before);
        let (subject, server) = (&self.subject, &self.server);
        self.oracle.observed(&response, subject, server, is_listed);
        self.subject.observe(&response);
    }

    /// The cluster is restored from a backup. Connections break, and with them responses are lost.
    fn restore(&mut self) {
        for _ in 0..self.random.below(3) {
            self.take_in_response();
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

    /// Nothing fails any more and nothing is written: what is left to be told is told.
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
            self.take_in_response();
            self.check()?;
        }
        let expected = self.server.objects();
        let is_expected = |object: &&server::Object| {
            self.is_read(object.key.namespace, &object.uid)
                && (!self.form.selects || object.is_selected)
        };
        let expected: Vec<_> = expected.iter().filter(is_expected).collect();
        let found = self.subject.contents();
        if !found.iter().eq(expected.iter().copied()) {
            return Err(format!(
                "the store differs\n server {expected:?}\n store  {found:?}"
            ));
        }
        // A watch with a selector never proves that an object is gone, and of several watches of a
        // namespace the first to settle has not heard how far the others came.
        let is_one_watch = self.links.iter().all(|link| !link.is_sharded());
        if self.subject.is_waiting() && is_one_watch && !self.form.selects {
            let waits_for = self.subject.waits_for();
            return Err(format!("all is reported but {waits_for} is waited for"));
        }
        if let Some(error) = self.subject.last_error() {
            return Err(format!("all is well but the last error is {error}"));
        }
        self.mirrors.push(Mirror::new(&self.subject));
        for mirror in &mut self.mirrors {
            mirror.receive(u64::MAX, self.server.restored() > 0)?;
            mirror.check(&expected)?;
        }
        Ok(())
    }
}

/// Some way to split the objects.
fn shards(random: &mut Random) -> Shards {
    let key = match random.percent(80) {
        true => ShardKey::Uid,
        false => ShardKey::Namespace,
    };
    let shards = match random.percent(75) {
        true => Shards::default(),
        false => Shards::part(key, random.below(2) as u32, 2),
    };
    match random.percent(50) {
        true => shards,
        false => shards.watches(1 + random.below(4) as u32),
    }
}

/// Reflectors for these parts.
fn links(subject: &Subject, parts: Vec<Part>, form: Form, random: &mut Random) -> Vec<Link> {
    let sinks = subject.split(parts.clone());
    let pairs = parts.into_iter().zip(sinks);
    pairs
        .map(|(part, sink)| Link::new(part, sink, form, random))
        .collect()
}

/// One run from `seed`.
fn run(seed: u64, fault: Fault) -> Result<(), String> {
    let mut world = World::new(seed, fault);
    let steps = 20 + world.random.below(400);
    for _ in 0..steps {
        world.happen()?;
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
            Err(_) => "it panicked".to_owned(),
        };
        panic!(
            "seed {seed}: {failure}\nrepeat it with: cargo xtask simulate --only cache --seed {seed}"
        );
    }
}

#[cfg(test)]
mod tests;
