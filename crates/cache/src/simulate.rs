//! The model test: random histories of an API server, told to reflectors over connections that
//! fail in every way there is, into one informer with listeners. At the end the store equals the
//! server, and every listener saw a history that leads there.
//!
//! Everything is drawn from one seed and runs without a clock, so that a failure can be repeated:
//! `cargo xtask simulate --only cache --seed N`.

mod link;
mod mirror;
mod server;
mod subject;

use std::time::Duration;

use opkit_apimachinery::random::Random;
use opkit_apimachinery::shard::ShardKey;

use self::link::Link;
use self::mirror::Mirror;
use self::server::Server;
use self::subject::Subject;
use crate::shard::{Part, Shards};

/// One run: what exists, and what may still go wrong.
struct World {
    random: Random,
    server: Server,
    subject: Subject,
    links: Vec<Link>,
    /// Reflectors of before, which may go on for a while.
    former: Vec<Link>,
    namespaces: Vec<Option<String>>,
    mirrors: Vec<Mirror>,
    /// Whether some of the writes are our own. A restore would undo them, which nobody can know.
    writes: bool,
    /// Writes of our own whose answers have not been taken in yet.
    answers: Vec<Answer>,
    now: Duration,
}

/// The answer to a write of our own.
enum Answer {
    Written(server::Object),
    Deleted(server::Object),
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let server = Server::new(&mut random);
        // Everything, or some namespaces.
        let namespaces: Vec<Option<String>> = match random.percent(60) {
            true => vec![None],
            false => {
                let some = 1 + random.below(server::NAMESPACES.len() as u64) as usize;
                let names = server::NAMESPACES.iter().take(some);
                names.map(|name| Some((*name).to_owned())).collect()
            }
        };
        let subject = Subject::new();
        let parts = shards(&mut random).parts(&namespaces);
        let links = links(&subject, parts, &mut random);
        World {
            writes: random.percent(60),
            random,
            server,
            subject,
            links,
            former: Vec::new(),
            namespaces,
            mirrors: Vec::new(),
            answers: Vec::new(),
            now: Duration::ZERO,
        }
    }

    /// Whether some reflector reads this object.
    fn is_read(&self, object: &server::Object) -> bool {
        self.links.iter().any(|link| link.reads(object))
    }

    /// Other reflectors read it all, or another part of it.
    fn resplit(&mut self) {
        let parts = shards(&mut self.random).parts(&self.namespaces);
        let links = links(&self.subject, parts, &mut self.random);
        self.former = std::mem::replace(&mut self.links, links);
    }

    /// Something happens somewhere.
    fn happen(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..25 => self.write(),
            25..85 => {
                let link = self.random.below(self.links.len() as u64) as usize;
                self.links[link].turn(&mut self.now, &mut self.server, &mut self.random, true);
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
                self.mirrors[mirror].receive(some, self.server.restored())?;
            }
            96..99 => self.take_in_answer()?,
            // A life that the restore undid, in one shard, hides an earlier one in another.
            99 if !self.writes
                && self.links.iter().all(|link| !link.is_sharded())
                && self.random.percent(10) =>
            {
                self.server.restore(&mut self.random);
            }
            _ => self.now += Duration::from_millis(self.random.below(5000)),
        }
        Ok(())
    }

    /// Somebody changes an object, perhaps we ourselves.
    fn write(&mut self) {
        if self.server.is_frozen(&self.links) {
            return;
        }
        let (object, is_gone) = self.server.write(&mut self.random);
        if self.writes && self.is_read(&object) && self.random.percent(30) {
            self.answers.push(match is_gone {
                true => Answer::Deleted(object),
                false => Answer::Written(object),
            });
        }
    }

    /// The answer to a write of our own arrives, in any order, and reads see it at once.
    fn take_in_answer(&mut self) -> Result<(), String> {
        if self.answers.is_empty() || !self.subject.is_synced() {
            return Ok(());
        }
        let at = self.random.below(self.answers.len() as u64) as usize;
        match self.answers.swap_remove(at) {
            // It was read when it was written, but not all the time since.
            Answer::Written(object) | Answer::Deleted(object)
                if !self.is_read(&object) || !self.links.iter().all(Link::has_listed) => {}
            Answer::Written(written) => {
                self.subject.observe(&written);
                let read = self.subject.get(&written.key);
                let is_ours = |version: u64| version >= written.version;
                let is_gone = self.server.is_gone(&written);
                match read {
                    Some(read) if is_ours(read.version) => {}
                    None if is_gone => {}
                    // A deletion of ours, or one that the watch has told, comes after the write.
                    Some(read) if is_gone && read.uid != written.uid => {}
                    read => {
                        return Err(format!("wrote {written:?} but then read {read:?}"));
                    }
                }
            }
            Answer::Deleted(deleted) => {
                self.subject.observe_deletion(&deleted);
                let read = self.subject.get(&deleted.key);
                if let Some(read) = read.filter(|read| read.uid == deleted.uid) {
                    return Err(format!("deleted {deleted:?} but then read {read:?}"));
                }
            }
        }
        Ok(())
    }

    /// Nothing fails any more and nothing is written: what is left to be told is told.
    fn settle(&mut self) -> Result<(), String> {
        for link in 0..self.links.len() {
            let mut turns = 0;
            while !self.links[link].is_settled(&self.server) {
                self.links[link].turn(&mut self.now, &mut self.server, &mut self.random, false);
                turns += 1;
                if turns > 10_000 {
                    return Err(format!("{:?} does not settle", self.links[link]));
                }
            }
        }
        while !self.answers.is_empty() {
            self.take_in_answer()?;
        }
        let expected: Vec<_> = self.server.objects();
        let expected: Vec<_> = expected.iter().filter(|o| self.is_read(o)).collect();
        let found = self.subject.contents();
        if !found.iter().eq(expected.iter().copied()) {
            return Err(format!(
                "the store differs\n server {expected:?}\n store  {found:?}"
            ));
        }
        if let Some(error) = self.subject.last_error() {
            return Err(format!("all is well but the last error is {error}"));
        }
        self.mirrors.push(Mirror::new(&self.subject));
        for mirror in &mut self.mirrors {
            mirror.receive(u64::MAX, self.server.restored())?;
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
fn links(subject: &Subject, parts: Vec<Part>, random: &mut Random) -> Vec<Link> {
    let sinks = subject.split(parts.clone());
    let pairs = parts.into_iter().zip(sinks);
    pairs
        .map(|(part, sink)| Link::new(part, sink, random))
        .collect()
}

/// One run from `seed`.
fn run(seed: u64) -> Result<(), String> {
    let mut world = World::new(seed);
    let steps = 20 + world.random.below(400);
    for _ in 0..steps {
        world.happen()?;
    }
    world.settle()
}

fn check(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let run = std::panic::catch_unwind(|| run(seed));
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
