//! Compares the engine with a naive one that searches everything, in a thousand random runs.

use std::collections::{BTreeMap, BTreeSet};

use opkit_random::Random;

use super::*;

#[derive(Debug, Clone, PartialEq)]
struct Ids(Vec<u32>);

impl Merge for Ids {
    fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}

#[derive(Debug, Clone)]
struct Entry {
    ids: Vec<u32>,
    priority: i32,
    place: Place,
    ready_at: u64,
    /// Priority with which the key is queued, the time since then, and the order of arrival.
    level: (i32, u64, u64),
}

/// Naive model of the engine.
#[derive(Default)]
struct Oracle {
    waiting: BTreeMap<u8, Entry>,
    in_work: BTreeSet<u8>,
    turns: BTreeMap<i32, Vec<u64>>,
    arrivals: u64,
    now: u64,
    step: i64,
    fair: bool,
}

fn group(key: &u8) -> u64 {
    u64::from(*key % 4)
}

impl Oracle {
    fn advance(&mut self, now: u64) {
        self.now = now;
        loop {
            let due = |entry: &Entry| entry.place == Place::Delayed && entry.ready_at <= now;
            let due = self.waiting.iter().filter(|(_, entry)| due(entry));
            let Some(key) = due
                .min_by_key(|(_, entry)| (entry.ready_at, entry.level.2))
                .map(|(key, _)| *key)
            else {
                break;
            };
            let since = self.waiting[&key].ready_at;
            self.make_ready(key, since);
        }
    }

    fn make_ready(&mut self, key: u8, since: u64) {
        let in_work = self.in_work.contains(&key);
        self.arrivals += 1;
        let entry = self.waiting.get_mut(&key).unwrap();
        entry.level = (entry.priority, since, self.arrivals);
        entry.place = if in_work { Place::Marked } else { Place::Ready };
        let priority = entry.priority;
        if !in_work {
            let turns = self.turns.entry(priority).or_default();
            if !turns.contains(&group(&key)) {
                turns.push(group(&key));
            }
        }
    }

    fn leave(&mut self, key: u8, turn: bool) {
        let level = self.waiting[&key].level.0;
        let same = |(other, entry): (&u8, &Entry)| {
            *other != key
                && entry.place == Place::Ready
                && entry.level.0 == level
                && group(other) == group(&key)
        };
        let rest = self.waiting.iter().any(same);
        let turns = self.turns.get_mut(&level).unwrap();
        if !rest || turn {
            turns.retain(|other| *other != group(&key));
        }
        if rest && turn {
            turns.push(group(&key));
        }
    }

    fn rank(&self, (priority, since, _): (i32, u64, u64)) -> (i64, i32) {
        match self.step {
            0 => (-i64::from(priority), 0),
            step => (since as i64 - i64::from(priority) * step, -priority),
        }
    }

    fn add(&mut self, key: u8, id: u32, priority: i32, delay: u64) {
        let ready_at = self.now + delay;
        let Some(entry) = self.waiting.get_mut(&key) else {
            self.arrivals += 1;
            let entry = Entry {
                ids: vec![id],
                priority,
                place: Place::Delayed,
                ready_at,
                level: (priority, 0, self.arrivals),
            };
            self.waiting.insert(key, entry);
            if delay == 0 {
                self.make_ready(key, self.now);
            }
            return;
        };
        entry.ids.push(id);
        let raised = priority > entry.priority;
        entry.priority = entry.priority.max(priority);
        let entry = entry.clone();
        match entry.place {
            Place::Ready
                if raised && self.rank((priority, self.now, 0)) < self.rank(entry.level) =>
            {
                self.leave(key, false);
                self.make_ready(key, self.now);
            }
            Place::Delayed if ready_at < entry.ready_at => {
                self.arrivals += 1;
                let arrivals = self.arrivals;
                let entry = self.waiting.get_mut(&key).unwrap();
                entry.ready_at = ready_at;
                entry.level.2 = arrivals;
                if delay == 0 {
                    self.make_ready(key, self.now);
                }
            }
            _ => {}
        }
    }

    fn get(&mut self) -> Option<(u8, Entry)> {
        let ready = || {
            self.waiting
                .iter()
                .filter(|(_, entry)| entry.place == Place::Ready)
        };
        let order = |entry: &Entry| (self.rank(entry.level), entry.level.2);
        let (mut key, oldest) = ready().min_by_key(|(_, entry)| order(entry))?;
        if self.fair {
            let level = oldest.level.0;
            let turn = self.turns[&level][0];
            let same = |(key, entry): &(&u8, &Entry)| entry.level.0 == level && group(key) == turn;
            key = ready()
                .filter(same)
                .min_by_key(|(_, entry)| entry.level.2)
                .unwrap()
                .0;
        }
        let key = *key;
        self.leave(key, true);
        assert!(self.in_work.insert(key), "two workers have {key}");
        Some((key, self.waiting.remove(&key)?))
    }

    fn done(&mut self, key: u8) {
        self.in_work.remove(&key);
        if self
            .waiting
            .get(&key)
            .is_some_and(|e| e.place == Place::Marked)
        {
            self.make_ready(key, self.now);
        }
    }
}

struct Run {
    engine: Engine<u8, Ids>,
    oracle: Oracle,
    random: Random,
    held: Vec<Work<u8, Ids>>,
    /// Ids that were added and not yet worked on.
    owed: BTreeSet<u32>,
    next_id: u32,
    now: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (ageing, fair) = (random.percent(70), random.percent(40));
        let options = QueueOptions {
            ageing: ageing.then_some(ms(100)),
            fair_by: fair.then_some(group as fn(&u8) -> u64),
            ..QueueOptions::default()
        };
        let oracle = Oracle {
            step: if ageing { 100_000_000 } else { 0 },
            fair,
            ..Oracle::default()
        };
        Self {
            engine: Engine::new(options),
            oracle,
            random,
            held: Vec::new(),
            owed: BTreeSet::new(),
            next_id: 0,
            now: 0,
        }
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..45 => self.add(),
            45..70 => drop(self.take()),
            70..85 => self.finish(false),
            85..88 => self.finish(true),
            _ => self.now += self.random.below(60) * 1_000_000,
        }
        self.engine.advance(self.time());
        self.oracle.advance(self.now);
        if self.random.percent(20) {
            self.compare();
        }
    }

    fn add(&mut self) {
        let key = self.random.below(24) as u8;
        let priority = [-100, -1, 0, 0, 0, 1, 5][self.random.below(7) as usize];
        let delay = match self.random.percent(60) {
            true => 0,
            false => self.random.below(80),
        };
        let id = self.next_id;
        self.next_id += 1;
        self.owed.insert(id);
        let options = AddOptions {
            priority: Some(priority),
            after: ms(delay),
            rate_limited: false,
        };
        self.engine
            .add_with(self.time(), key, Ids(vec![id]), options);
        self.oracle.add(key, id, priority, delay * 1_000_000);
    }

    fn take(&mut self) -> bool {
        let work = self.engine.get(self.time());
        let expected = self.oracle.get();
        let Some(work) = work else {
            assert!(expected.is_none(), "{expected:?} is not handed out");
            return false;
        };
        let (key, entry) = expected.expect("nothing is ready");
        let waited = Duration::from_nanos(self.now - entry.ready_at);
        assert_eq!(
            (work.key, work.priority, work.waited),
            (key, entry.priority, waited)
        );
        assert_eq!(work.payload.0, entry.ids);
        self.held.push(work);
        true
    }

    fn finish(&mut self, unworked: bool) {
        if self.held.is_empty() {
            return;
        }
        let index = self.random.below(self.held.len() as u64) as usize;
        let work = self.held.swap_remove(index);
        let key = work.key;
        if unworked {
            let (ids, priority) = (work.payload.0.clone(), work.priority);
            let ready_at = self.now - work.waited.as_nanos() as u64;
            self.engine.requeue_unworked(self.time(), work);
            let meanwhile = self.oracle.waiting.remove(&key);
            let later = meanwhile.as_ref().map_or(&[][..], |entry| &entry.ids);
            let entry = Entry {
                ids: [&ids, later].concat(),
                priority: meanwhile
                    .as_ref()
                    .map_or(priority, |e| e.priority.max(priority)),
                place: Place::Marked,
                ready_at,
                level: (0, 0, 0),
            };
            self.oracle.waiting.insert(key, entry);
        } else {
            for id in &work.payload.0 {
                assert!(self.owed.remove(id), "{id} is worked on twice");
            }
            self.engine.done(self.time(), work.ticket);
        }
        self.oracle.done(key);
    }

    fn compare(&self) {
        let places = |place| {
            let of = self.oracle.waiting.values();
            of.filter(move |entry| entry.place == place)
        };
        assert_eq!(self.engine.len(), places(Place::Ready).count());
        let depths: usize = self.engine.ready.depths().map(|(_, depth)| depth).sum();
        assert_eq!(self.engine.len(), depths);
        let next = places(Place::Delayed).map(|entry| entry.ready_at).min();
        assert_eq!(self.engine.next_ready_at(), next.map(Duration::from_nanos));
        let snapshot = self.engine.snapshot(self.time(), 100);
        assert_eq!(snapshot.in_work, self.held.len());
        assert_eq!(snapshot.delayed, places(Place::Delayed).count());
        let listed: BTreeSet<u8> = snapshot.keys.iter().map(|key| key.key).collect();
        let mut known: BTreeSet<u8> = self.oracle.waiting.keys().copied().collect();
        known.extend(&self.oracle.in_work);
        assert_eq!((snapshot.keys.len(), listed), (known.len(), known));
        let oldest = places(Place::Ready).map(|entry| entry.level.1).min();
        let oldest = oldest.map_or(0, |since| self.now - since);
        let stats = self.engine.stats(self.time());
        assert_eq!(stats.oldest_key, Duration::from_nanos(oldest));
    }

    /// Works off everything: no added id may be lost.
    fn end(&mut self) {
        loop {
            while self.take() {}
            while !self.held.is_empty() {
                self.finish(false);
            }
            let Some(next) = self.engine.next_ready_at() else {
                break;
            };
            self.now = self.now.max(next.as_nanos() as u64);
            self.engine.advance(self.time());
            self.oracle.advance(self.now);
            self.compare();
        }
        self.engine.shut_down();
        if self.engine.is_empty() {
            assert!(self.owed.is_empty(), "{:?} were lost", self.owed);
            assert!(self.engine.is_drained());
        } else {
            self.end();
        }
    }
}

#[test]
fn a_thousand_runs_agree_with_the_naive_queue() {
    for seed in 0..1000 {
        let outcome = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            for _ in 0..300 {
                run.step();
            }
            run.end();
        });
        assert!(outcome.is_ok(), "seed {seed}");
    }
}
