use super::*;
use crate::simulate::server::Server;

const TIMING: Timing = Timing {
    lease_seconds: 15,
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
/// Some time of day.
const WALL: i64 = 1_700_000_000_000_000;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn record(holder: &str, transitions: u32) -> Record {
    Record {
        holder: holder.to_owned(),
        lease_seconds: 15,
        acquire_time: 7,
        renew_time: 8,
        transitions,
    }
}

/// An elector and a server that answers at once.
struct Bench {
    elector: Elector,
    server: Server,
    sent: Vec<&'static str>,
}

impl Bench {
    fn new(lease: Option<Record>) -> Self {
        let mut server = Server::default();
        let lease = lease.map(Request::Create);
        if let Some(lease) = lease {
            server.act(Duration::ZERO, lease);
        }
        Self {
            elector: Elector::new("baz".to_owned(), TIMING, true, 1),
            server,
            sent: Vec::new(),
        }
    }

    /// Takes something in, and answers all that is sent for it. Returns when it wants to wake.
    fn step(&mut self, now: Duration, input: Input) -> Option<Duration> {
        self.step_but(now, input, |_| None)
    }

    /// The same with a server that answers some requests otherwise, without acting on them.
    fn step_but(
        &mut self,
        now: Duration,
        input: Input,
        other: fn(&Request) -> Option<Answer>,
    ) -> Option<Duration> {
        let mut output = self.elector.step(now, WALL, input);
        while let Some(request) = output.send {
            self.sent.push(match &request {
                Request::Get => "get",
                Request::Create(_) => "create",
                Request::Update(..) => "update",
            });
            let answer = other(&request).unwrap_or_else(|| self.server.act(now, request));
            output = self.elector.step(now, WALL, Input::Answer(answer));
        }
        output.wake
    }

    fn lease(&self) -> Record {
        self.server.lease().unwrap().record.clone()
    }

    fn leads(&self) -> bool {
        matches!(self.elector.phase(), Phase::Leading { .. })
    }

    fn sent(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.sent)
    }

    /// Somebody else writes the lease.
    fn write(&mut self, now: Duration, record: Record) {
        let version = self.server.lease().unwrap().version.clone();
        self.server.act(now, Request::Update(record, version));
    }
}

fn failing(_: &Request) -> Option<Answer> {
    Some(Answer::Failed)
}

/// client-go's table `TestTryAcquireOrRenewLeases`: the lease, how long it was watched, and then
/// what was sent, whether it was taken, and how often the holder has changed.
#[test]
fn a_lease_is_taken_when_nobody_holds_it() {
    let check = |lease: Option<Record>, watched: u64, sent: &[&str], transitions: Option<u32>| {
        let mut bench = Bench::new(lease.clone());
        if watched > 0 {
            bench.step(at(0), Input::Wake);
            bench.sent();
        }
        bench.step(at(watched), Input::Wake);
        assert_eq!(bench.sent(), sent, "{lease:?}");
        assert_eq!(bench.leads(), transitions.is_some(), "{lease:?}");
        match transitions {
            Some(transitions) => {
                let taken = Record {
                    acquire_time: WALL,
                    renew_time: WALL,
                    ..record("baz", transitions)
                };
                assert_eq!(bench.lease(), taken);
            }
            None => assert_eq!(Some(bench.lease()), lease),
        }
    };
    // No object.
    check(None, 0, &["get", "create"], Some(0));
    // An object that says nothing.
    let nothing = Record {
        lease_seconds: 0,
        ..record("", 0)
    };
    check(Some(nothing), 0, &["get", "update"], Some(1));
    // Led, with a duration of its own that has passed.
    let short = Record {
        lease_seconds: 5,
        ..record("bing", 2)
    };
    check(Some(short.clone()), 6, &["get", "update"], Some(3));
    check(Some(short), 4, &["get"], None);
    // Not led.
    check(Some(record("", 1)), 0, &["get", "update"], Some(2));
    // Led, and not renewed for the lease's duration.
    check(Some(record("bing", 2)), 15, &["get", "update"], Some(3));
    check(Some(record("bing", 2)), 14, &["get"], None);
    // Led, and never seen before.
    check(Some(record("bing", 2)), 0, &["get"], None);
}

#[test]
fn a_holder_keeps_its_acquire_time_and_transitions() {
    let mut bench = Bench::new(Some(record("baz", 2)));
    bench.step(at(0), Input::Wake);
    assert!(bench.leads());
    let renewed = Record {
        renew_time: WALL,
        ..record("baz", 2)
    };
    assert_eq!(bench.lease(), renewed);
    bench.step(at(2), Input::Wake);
    // The time of day stood still, and the record changed all the same.
    assert_eq!(bench.lease().renew_time, WALL + 1);
    assert_eq!(
        (bench.lease().acquire_time, bench.lease().transitions),
        (7, 2)
    );
}

/// client-go's `TestFastPathLeaderElection`.
#[test]
fn a_holder_does_not_read_while_its_writes_succeed() {
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    assert_eq!(bench.sent(), ["get", "create"]);
    assert_eq!(bench.step(at(2), Input::Wake), Some(at(4)));
    assert_eq!(bench.sent(), ["update"]);
    assert_eq!(bench.elector.slow_paths(), 0);
    // Somebody changed a label: the write conflicts, and the slow path mends it.
    bench.server.touch(Duration::ZERO);
    bench.step(at(4), Input::Wake);
    assert_eq!(bench.sent(), ["update", "get", "update"]);
    assert_eq!(bench.elector.slow_paths(), 1);
    bench.step(at(6), Input::Wake);
    assert_eq!(bench.sent(), ["update"]);
    assert!(bench.leads());
}

#[test]
fn candidates_try_in_jittered_intervals() {
    let mut waits: Vec<Duration> = (0..1000)
        .map(|seed| {
            let mut bench = Bench::new(Some(record("bing", 0)));
            bench.elector = Elector::new("baz".to_owned(), TIMING, true, seed);
            bench.step(at(10), Input::Wake).unwrap() - at(10)
        })
        .collect();
    waits.sort();
    let (first, last) = (waits[0], waits[999]);
    assert!(
        first >= at(2) && first < at(2) + Duration::from_millis(50),
        "{first:?}"
    );
    assert!(last < Duration::from_millis(4400), "{last:?}");
    assert!(last > Duration::from_millis(4350), "{last:?}");
}

#[test]
fn a_leader_tries_every_retry_period_until_its_deadline() {
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    for now in [2, 4, 6, 8] {
        assert_eq!(
            bench.step_but(at(now), Input::Wake, failing),
            Some(at(now + 2))
        );
        assert!(bench.leads());
    }
    assert_eq!(bench.step_but(at(10), Input::Wake, failing), None);
    assert_eq!(bench.elector.phase(), Phase::Ending { since: at(10) });
    assert!(bench.elector.awaits_work());
}

/// The deadline counts from the sending of the request, and an answer after it changes nothing.
#[test]
fn an_answer_that_comes_too_late_is_no_renewal() {
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    let output = bench.elector.step(at(2), WALL, Input::Wake);
    let renewal = output.send.unwrap();
    let answer = bench.server.act(at(2), renewal);
    // Sent at 2 s and answered at 5 s, so it is good until 12 s.
    bench.elector.step(at(5), WALL, Input::Answer(answer));
    assert_eq!(bench.elector.phase(), Phase::Leading { deadline: at(12) });
    let output = bench.elector.step(at(7), WALL, Input::Wake);
    let answer = bench.server.act(at(7), output.send.unwrap());
    assert!(matches!(answer, Answer::Written(_)));
    bench.elector.step(at(12), WALL, Input::Answer(answer));
    assert_eq!(bench.elector.phase(), Phase::Ending { since: at(12) });
    // It was done, though: what follows it is a change to whoever saw it.
    let done = bench.lease();
    bench.step(at(12), Input::WorkEnded);
    assert!(bench.leads());
    assert!(bench.lease().renew_time > done.renew_time);
    assert_eq!(bench.sent().last(), Some(&"update"));

    // One that is answered after the whole term does not begin one.
    let mut bench = Bench::new(None);
    let get = bench.elector.step(at(0), WALL, Input::Wake);
    assert_eq!(get.send, Some(Request::Get));
    let create = bench
        .elector
        .step(at(0), WALL, Input::Answer(Answer::Read(None)));
    let answer = bench.server.act(at(0), create.send.unwrap());
    let output = bench.elector.step(at(10), WALL, Input::Answer(answer));
    assert_eq!(bench.elector.phase(), Phase::Standing);
    assert!(matches!(output.send, Some(Request::Update(..))));
}

/// The age of a lease is how long it was not seen to change, whatever it says of itself.
#[test]
fn a_lease_is_judged_by_ones_own_clock() {
    let mut bench = Bench::new(Some(record("bing", 0)));
    bench.step(at(0), Input::Wake);
    for now in (10..100).step_by(10) {
        let renewed = Record {
            renew_time: i64::try_from(now).unwrap(),
            ..record("bing", 0)
        };
        bench.write(at(now), renewed);
        bench.step(at(now), Input::Wake);
        assert!(!bench.leads());
    }
    // A label is not the record.
    bench.server.touch(Duration::ZERO);
    bench.step(at(99), Input::Wake);
    assert!(!bench.leads());
    bench.step(at(105), Input::Wake);
    assert!(bench.leads());
}

#[test]
fn a_leader_that_reads_another_holder_gives_up_at_once() {
    for holder in ["bing", ""] {
        let mut bench = Bench::new(None);
        bench.step(at(0), Input::Wake);
        bench.write(at(1), record(holder, 1));
        bench.step(at(2), Input::Wake);
        assert_eq!(bench.elector.phase(), Phase::Ending { since: at(2) });
    }
}

#[test]
fn a_lease_that_was_deleted_is_made_again() {
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    bench.server = Server::default();
    bench.sent();
    bench.step(at(2), Input::Wake);
    assert_eq!(bench.sent(), ["update", "get", "create"]);
    assert!(bench.leads());
    assert_eq!(bench.elector.term(), 1);
}

/// A write whose answer was lost is found by the next read.
#[test]
fn a_lost_answer_is_noticed() {
    let mut bench = Bench::new(Some(record("bing", 3)));
    bench.step(at(0), Input::Wake);
    let get = bench.elector.step(at(15), WALL, Input::Wake).send;
    assert_eq!(get, Some(Request::Get));
    let answer = bench.server.act(at(15), Request::Get);
    let update = bench
        .elector
        .step(at(15), WALL, Input::Answer(answer))
        .send
        .unwrap();
    bench.server.act(at(15), update);
    let output = bench
        .elector
        .step(at(20), WALL, Input::Answer(Answer::Failed));
    assert_eq!(bench.elector.phase(), Phase::Standing);
    let next = output.wake.unwrap();
    assert!(next >= at(22) && next < at(25));
    bench.step(next, Input::Wake);
    assert!(bench.leads());
    assert_eq!(bench.lease().transitions, 4);
}

/// runlore#250: client-go's elector returned when it lost the lease, and the process was a standby
/// for ever.
#[test]
fn who_loses_the_lease_stands_again() {
    let mut bench = Bench::new(None);
    let mut now = at(0);
    bench.step(now, Input::Wake);
    for term in 1..100 {
        assert!(bench.leads());
        assert_eq!(bench.elector.term(), term);
        now += at(10);
        bench.step_but(now, Input::Wake, failing);
        assert_eq!(bench.elector.phase(), Phase::Ending { since: now });
        // Not before its work has ended.
        now += at(60);
        assert_eq!(bench.step(now, Input::Wake), None);
        assert_eq!(
            bench.elector.phase(),
            Phase::Ending {
                since: now - at(60)
            }
        );
        bench.step(now, Input::WorkEnded);
    }
    // Nobody else held it meanwhile.
    assert_eq!(bench.lease().transitions, 0);
}

/// client-go's `TestReleaseLeaseLeases` and `TestReleaseMethodCallsGet`.
#[test]
fn a_release_empties_the_lease_and_keeps_its_transitions() {
    let mut bench = Bench::new(Some(record("", 4)));
    bench.step(at(0), Input::Wake);
    bench.step(at(1), Input::Stop);
    // The work goes on, and so does the lease.
    assert!(bench.leads() && bench.elector.awaits_work());
    bench.step(at(2), Input::Wake);
    assert!(bench.leads());
    bench.sent();
    bench.step(at(3), Input::WorkEnded);
    assert_eq!(bench.sent(), ["get", "update"]);
    assert_eq!(bench.elector.phase(), Phase::Done);
    let released = Record {
        lease_seconds: 1,
        acquire_time: WALL,
        renew_time: WALL,
        ..record("", 5)
    };
    assert_eq!(bench.lease(), released);
}

/// client-go's `TestReleaseRetriesOnConflict`.
#[test]
fn a_release_is_tried_again_after_a_conflict() {
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    bench.sent();
    bench.step(at(1), Input::Stop);
    let get = bench.elector.step(at(1), WALL, Input::WorkEnded).send;
    let answer = bench.server.act(at(1), get.unwrap());
    let release = bench.elector.step(at(1), WALL, Input::Answer(answer));
    assert!(matches!(release.send, Some(Request::Update(..))));
    bench.server.touch(Duration::ZERO);
    bench.step(at(1), Input::Answer(Answer::Conflict));
    assert_eq!(bench.sent(), ["get", "update"]);
    assert_eq!(bench.elector.phase(), Phase::Done);
    assert_eq!(bench.lease().holder, "");
}

#[test]
fn only_a_holder_releases() {
    // A candidate that never held it sends nothing.
    let mut bench = Bench::new(Some(record("bing", 0)));
    bench.step(at(0), Input::Wake);
    bench.sent();
    bench.step(at(1), Input::Stop);
    assert_eq!(bench.sent(), [""; 0]);
    assert_eq!(bench.elector.phase(), Phase::Done);

    // One that was pushed out reads that, and leaves it.
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    bench.sent();
    bench.step(at(1), Input::Stop);
    bench.write(at(1), record("bing", 1));
    bench.step(at(1), Input::WorkEnded);
    assert_eq!(bench.sent(), ["get"]);
    assert_eq!(bench.elector.phase(), Phase::Done);
    assert_eq!(bench.lease().holder, "bing");

    // The lease is gone.
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    bench.server = Server::default();
    bench.step(at(1), Input::Stop);
    bench.step(at(1), Input::WorkEnded);
    assert_eq!(bench.elector.phase(), Phase::Done);
    assert_eq!(bench.server.lease(), None);
}

/// client-go's `TestReleaseOnCancellation_Leases`: a stop while a request is under way.
#[test]
fn a_stop_during_a_request_releases_what_it_may_have_done() {
    // A renewal is under way and is done behind our back.
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    let renewal = bench.elector.step(at(2), WALL, Input::Wake).send.unwrap();
    bench.step(at(2), Input::Stop);
    bench.server.act(at(2), renewal);
    bench.step(at(2), Input::WorkEnded);
    assert_eq!(bench.elector.phase(), Phase::Done);
    assert_eq!(bench.lease().holder, "");

    // The first write is under way: nobody knows whether we hold the lease.
    let mut bench = Bench::new(Some(record("", 0)));
    bench.elector.step(at(0), WALL, Input::Wake);
    let answer = bench.server.act(at(0), Request::Get);
    let take = bench
        .elector
        .step(at(0), WALL, Input::Answer(answer))
        .send
        .unwrap();
    bench.server.act(at(0), take);
    assert_eq!(bench.lease().holder, "baz");
    bench.step(at(1), Input::Stop);
    assert_eq!(bench.lease().holder, "");
    assert_eq!(bench.elector.phase(), Phase::Done);

    // A read is under way: there is nothing to release.
    let mut bench = Bench::new(Some(record("", 0)));
    bench.elector.step(at(0), WALL, Input::Wake);
    bench.step(at(1), Input::Stop);
    assert_eq!(bench.elector.phase(), Phase::Done);
    assert_eq!(bench.sent(), [""; 0]);
}

#[test]
fn a_release_does_not_take_longer_than_the_renew_deadline() {
    let mut bench = Bench::new(None);
    bench.step(at(0), Input::Wake);
    bench.step(at(1), Input::Stop);
    let output = bench.elector.step(at(1), WALL, Input::WorkEnded);
    assert_eq!(output.wake, Some(at(11)));
    bench.step(at(11), Input::Wake);
    assert_eq!(bench.elector.phase(), Phase::Done);
}

#[test]
fn a_term_ends_before_another_may_begin() {
    let check = |lease_seconds: u32, renew_ms: u64, term_ms: u128| {
        let timing = Timing {
            lease_seconds,
            renew_deadline: Duration::from_millis(renew_ms),
            retry_period: Duration::from_secs(2),
        };
        assert_eq!(timing.term().as_millis(), term_ms);
        // The slowest clock of the holder, and the fastest of the others.
        let ends = timing.term() * 100 / (100 - CLOCK_DRIFT_PERCENT);
        let begins = Duration::from_secs(lease_seconds.into()) * 100 / (100 + CLOCK_DRIFT_PERCENT);
        assert!(ends <= begins, "{timing:?}");
    };
    check(15, 10_000, 10_000);
    check(3, 2000, 2000);
    check(12, 11_900, 9818);
    check(60, 59_999, 49_090);
}
