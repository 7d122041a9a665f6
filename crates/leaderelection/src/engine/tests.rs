use super::*;
use crate::simulate::server::Server;

const TIMING: Timing = Timing {
    lease_seconds: 15,
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};
/// A wall-clock time.
const WALL_MICROS: i64 = 1_700_000_000_000_000;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn record(holder: &str, transitions: u32) -> LeaseRecord {
    LeaseRecord {
        holder: holder.to_owned(),
        lease_seconds: 15,
        acquire_time: 7,
        renew_time: 8,
        transitions,
    }
}

/// Engine and a server that responds immediately.
struct Harness {
    engine: ElectionEngine,
    server: Server,
    sent: Vec<&'static str>,
}

impl Harness {
    fn new(lease: Option<LeaseRecord>) -> Self {
        let mut server = Server::default();
        let lease = lease.map(LeaseRequest::Create);
        if let Some(lease) = lease {
            server.handle(Duration::ZERO, lease);
        }
        Self {
            engine: ElectionEngine::new("baz".to_owned(), TIMING, true, 1),
            server,
            sent: Vec::new(),
        }
    }

    /// Passes an input and the responses to all requests that follow. Returns the next wake-up
    /// time.
    fn step(&mut self, now: Duration, input: Input) -> Option<Duration> {
        self.step_with(now, input, |_| None)
    }

    /// Same as `step`, but `respond` may return another response for a request, which is then not
    /// executed.
    fn step_with(
        &mut self,
        now: Duration,
        input: Input,
        respond: fn(&LeaseRequest) -> Option<LeaseResponse>,
    ) -> Option<Duration> {
        let mut output = self.engine.step(now, WALL_MICROS, input);
        while let Some(request) = output.send {
            self.sent.push(match &request {
                LeaseRequest::Get => "get",
                LeaseRequest::Create(_) => "create",
                LeaseRequest::Update(..) => "update",
            });
            let response = respond(&request).unwrap_or_else(|| self.server.handle(now, request));
            output = self
                .engine
                .step(now, WALL_MICROS, Input::Response(response));
        }
        output.wake
    }

    fn lease(&self) -> LeaseRecord {
        self.server.lease().unwrap().record.clone()
    }

    fn leads(&self) -> bool {
        matches!(self.engine.phase(), Phase::Leading { .. })
    }

    fn sent(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.sent)
    }

    /// Writes the Lease as another candidate.
    fn write(&mut self, now: Duration, record: LeaseRecord) {
        let version = self.server.lease().unwrap().version.clone();
        self.server
            .handle(now, LeaseRequest::Update(record, version));
    }
}

fn failing(_: &LeaseRequest) -> Option<LeaseResponse> {
    Some(LeaseResponse::Failed)
}

/// client-go's table `TestTryAcquireOrRenewLeases`: the Lease, the time in seconds for which it was
/// observed, the expected requests, and the number of transitions if the Lease is acquired.
#[test]
fn a_lease_without_a_holder_is_acquired() {
    let check =
        |lease: Option<LeaseRecord>, watched: u64, sent: &[&str], transitions: Option<u32>| {
            let mut harness = Harness::new(lease.clone());
            if watched > 0 {
                harness.step(seconds(0), Input::Wake);
                harness.sent();
            }
            harness.step(seconds(watched), Input::Wake);
            assert_eq!(harness.sent(), sent, "{lease:?}");
            assert_eq!(harness.leads(), transitions.is_some(), "{lease:?}");
            match transitions {
                Some(transitions) => {
                    let taken = LeaseRecord {
                        acquire_time: WALL_MICROS,
                        renew_time: WALL_MICROS,
                        ..record("baz", transitions)
                    };
                    assert_eq!(harness.lease(), taken);
                }
                None => assert_eq!(Some(harness.lease()), lease),
            }
        };
    // No object.
    check(None, 0, &["get", "create"], Some(0));
    // An empty object.
    let empty = LeaseRecord {
        lease_seconds: 0,
        ..record("", 0)
    };
    check(Some(empty), 0, &["get", "update"], Some(1));
    // A holder with another duration, which has passed.
    let short = LeaseRecord {
        lease_seconds: 5,
        ..record("bing", 2)
    };
    check(Some(short.clone()), 6, &["get", "update"], Some(3));
    check(Some(short), 4, &["get"], None);
    // No holder.
    check(Some(record("", 1)), 0, &["get", "update"], Some(2));
    // A holder that has not renewed for the Lease's duration.
    check(Some(record("bing", 2)), 15, &["get", "update"], Some(3));
    check(Some(record("bing", 2)), 14, &["get"], None);
    // A holder that was not observed before.
    check(Some(record("bing", 2)), 0, &["get"], None);
}

#[test]
fn a_holder_keeps_its_acquire_time_and_transitions() {
    let mut harness = Harness::new(Some(record("baz", 2)));
    harness.step(seconds(0), Input::Wake);
    assert!(harness.leads());
    let renewed = LeaseRecord {
        renew_time: WALL_MICROS,
        ..record("baz", 2)
    };
    assert_eq!(harness.lease(), renewed);
    harness.step(seconds(2), Input::Wake);
    // The record changes although the wall clock does not.
    assert_eq!(harness.lease().renew_time, WALL_MICROS + 1);
    assert_eq!(
        (harness.lease().acquire_time, harness.lease().transitions),
        (7, 2)
    );
}

/// client-go's `TestFastPathLeaderElection`.
#[test]
fn a_holder_does_not_read_while_its_writes_succeed() {
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    assert_eq!(harness.sent(), ["get", "create"]);
    assert_eq!(harness.step(seconds(2), Input::Wake), Some(seconds(4)));
    assert_eq!(harness.sent(), ["update"]);
    assert_eq!(harness.engine.slow_paths(), 0);
    // Another client changes a label: the write conflicts, and the slow path renews the Lease.
    harness.server.touch(Duration::ZERO);
    harness.step(seconds(4), Input::Wake);
    assert_eq!(harness.sent(), ["update", "get", "update"]);
    assert_eq!(harness.engine.slow_paths(), 1);
    harness.step(seconds(6), Input::Wake);
    assert_eq!(harness.sent(), ["update"]);
    assert!(harness.leads());
}

#[test]
fn candidates_try_in_jittered_intervals() {
    let mut waits: Vec<Duration> = (0..1000)
        .map(|seed| {
            let mut harness = Harness::new(Some(record("bing", 0)));
            harness.engine = ElectionEngine::new("baz".to_owned(), TIMING, true, seed);
            harness.step(seconds(10), Input::Wake).unwrap() - seconds(10)
        })
        .collect();
    waits.sort();
    let (first, last) = (waits[0], waits[999]);
    assert!(
        first >= seconds(2) && first < seconds(2) + Duration::from_millis(50),
        "{first:?}"
    );
    assert!(last < Duration::from_millis(4400), "{last:?}");
    assert!(last > Duration::from_millis(4350), "{last:?}");
}

#[test]
fn a_leader_tries_every_retry_period_until_its_deadline() {
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    for now in [2, 4, 6, 8] {
        assert_eq!(
            harness.step_with(seconds(now), Input::Wake, failing),
            Some(seconds(now + 2))
        );
        assert!(harness.leads());
    }
    assert_eq!(harness.step_with(seconds(10), Input::Wake, failing), None);
    assert_eq!(harness.engine.phase(), Phase::Ending { since: seconds(10) });
    assert!(harness.engine.awaits_work_end());
}

/// Checks that the deadline counts from the time at which the request was sent, and that a response
/// after the deadline does not extend the term.
#[test]
fn a_late_response_does_not_extend_the_term() {
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    let output = harness.engine.step(seconds(2), WALL_MICROS, Input::Wake);
    let renewal = output.send.unwrap();
    let response = harness.server.handle(seconds(2), renewal);
    // The request was sent at 2 s, so the term ends at 12 s although the response comes at 5 s.
    harness
        .engine
        .step(seconds(5), WALL_MICROS, Input::Response(response));
    assert_eq!(
        harness.engine.phase(),
        Phase::Leading {
            deadline: seconds(12)
        }
    );
    let output = harness.engine.step(seconds(7), WALL_MICROS, Input::Wake);
    let response = harness.server.handle(seconds(7), output.send.unwrap());
    assert!(matches!(response, LeaseResponse::Written(_)));
    harness
        .engine
        .step(seconds(12), WALL_MICROS, Input::Response(response));
    assert_eq!(harness.engine.phase(), Phase::Ending { since: seconds(12) });
    // The write succeeded, so the next renewal must differ from it for other candidates.
    let done = harness.lease();
    harness.step(seconds(12), Input::WorkEnded);
    assert!(harness.leads());
    assert!(harness.lease().renew_time > done.renew_time);
    assert_eq!(harness.sent().last(), Some(&"update"));

    // A first write whose response comes after the end of the term starts no term.
    let mut harness = Harness::new(None);
    let get = harness.engine.step(seconds(0), WALL_MICROS, Input::Wake);
    assert_eq!(get.send, Some(LeaseRequest::Get));
    let create = harness.engine.step(
        seconds(0),
        WALL_MICROS,
        Input::Response(LeaseResponse::Read(None)),
    );
    let response = harness.server.handle(seconds(0), create.send.unwrap());
    let output = harness
        .engine
        .step(seconds(10), WALL_MICROS, Input::Response(response));
    assert_eq!(harness.engine.phase(), Phase::Acquiring);
    assert!(matches!(output.send, Some(LeaseRequest::Update(..))));
}

/// Checks that a Lease expires by the time since its last observed change, whatever times it
/// contains.
#[test]
fn a_lease_expires_by_the_local_clock() {
    let mut harness = Harness::new(Some(record("bing", 0)));
    harness.step(seconds(0), Input::Wake);
    for now in (10..100).step_by(10) {
        let renewed = LeaseRecord {
            renew_time: i64::try_from(now).unwrap(),
            ..record("bing", 0)
        };
        harness.write(seconds(now), renewed);
        harness.step(seconds(now), Input::Wake);
        assert!(!harness.leads());
    }
    // A changed label does not change the record.
    harness.server.touch(Duration::ZERO);
    harness.step(seconds(99), Input::Wake);
    assert!(!harness.leads());
    harness.step(seconds(105), Input::Wake);
    assert!(harness.leads());
}

#[test]
fn a_leader_that_reads_another_holder_gives_up_immediately() {
    for holder in ["bing", ""] {
        let mut harness = Harness::new(None);
        harness.step(seconds(0), Input::Wake);
        harness.write(seconds(1), record(holder, 1));
        harness.step(seconds(2), Input::Wake);
        assert_eq!(harness.engine.phase(), Phase::Ending { since: seconds(2) });
    }
}

#[test]
fn a_deleted_lease_is_created_again() {
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    harness.server = Server::default();
    harness.sent();
    harness.step(seconds(2), Input::Wake);
    assert_eq!(harness.sent(), ["update", "get", "create"]);
    assert!(harness.leads());
    assert_eq!(harness.engine.term(), 1);
}

/// Checks that the next read finds a write whose response was lost.
#[test]
fn a_write_with_a_lost_response_is_found() {
    let mut harness = Harness::new(Some(record("bing", 3)));
    harness.step(seconds(0), Input::Wake);
    let get = harness
        .engine
        .step(seconds(15), WALL_MICROS, Input::Wake)
        .send;
    assert_eq!(get, Some(LeaseRequest::Get));
    let response = harness.server.handle(seconds(15), LeaseRequest::Get);
    let update = harness
        .engine
        .step(seconds(15), WALL_MICROS, Input::Response(response))
        .send
        .unwrap();
    harness.server.handle(seconds(15), update);
    let output = harness.engine.step(
        seconds(20),
        WALL_MICROS,
        Input::Response(LeaseResponse::Failed),
    );
    assert_eq!(harness.engine.phase(), Phase::Acquiring);
    let next = output.wake.unwrap();
    assert!(next >= seconds(22) && next < seconds(25));
    harness.step(next, Input::Wake);
    assert!(harness.leads());
    assert_eq!(harness.lease().transitions, 4);
}

/// runlore#250: client-go's elector returned when it lost the Lease, and the process was a standby
/// forever.
#[test]
fn a_candidate_acquires_again_after_a_loss() {
    let mut harness = Harness::new(None);
    let mut now = seconds(0);
    harness.step(now, Input::Wake);
    for term in 1..100 {
        assert!(harness.leads());
        assert_eq!(harness.engine.term(), term);
        now += seconds(10);
        harness.step_with(now, Input::Wake, failing);
        assert_eq!(harness.engine.phase(), Phase::Ending { since: now });
        // No attempt is made before the work has ended.
        now += seconds(60);
        assert_eq!(harness.step(now, Input::Wake), None);
        assert_eq!(
            harness.engine.phase(),
            Phase::Ending {
                since: now - seconds(60)
            }
        );
        harness.step(now, Input::WorkEnded);
    }
    // No other candidate held the Lease in between.
    assert_eq!(harness.lease().transitions, 0);
}

/// client-go's `TestReleaseLeaseLeases` and `TestReleaseMethodCallsGet`.
#[test]
fn a_release_empties_the_lease_and_keeps_its_transitions() {
    let mut harness = Harness::new(Some(record("", 4)));
    harness.step(seconds(0), Input::Wake);
    harness.step(seconds(1), Input::Stop);
    // The Lease is renewed while the work runs.
    assert!(harness.leads() && harness.engine.awaits_work_end());
    harness.step(seconds(2), Input::Wake);
    assert!(harness.leads());
    harness.sent();
    harness.step(seconds(3), Input::WorkEnded);
    assert_eq!(harness.sent(), ["get", "update"]);
    assert_eq!(harness.engine.phase(), Phase::Done);
    let released = LeaseRecord {
        lease_seconds: 1,
        acquire_time: WALL_MICROS,
        renew_time: WALL_MICROS,
        ..record("", 5)
    };
    assert_eq!(harness.lease(), released);
}

/// client-go's `TestReleaseRetriesOnConflict`.
#[test]
fn a_release_is_retried_after_a_conflict() {
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    harness.sent();
    harness.step(seconds(1), Input::Stop);
    let get = harness
        .engine
        .step(seconds(1), WALL_MICROS, Input::WorkEnded)
        .send;
    let response = harness.server.handle(seconds(1), get.unwrap());
    let release = harness
        .engine
        .step(seconds(1), WALL_MICROS, Input::Response(response));
    assert!(matches!(release.send, Some(LeaseRequest::Update(..))));
    harness.server.touch(Duration::ZERO);
    harness.step(seconds(1), Input::Response(LeaseResponse::Conflict));
    assert_eq!(harness.sent(), ["get", "update"]);
    assert_eq!(harness.engine.phase(), Phase::Done);
    assert_eq!(harness.lease().holder, "");
}

#[test]
fn only_a_holder_releases() {
    // A candidate that never held the Lease sends nothing.
    let mut harness = Harness::new(Some(record("bing", 0)));
    harness.step(seconds(0), Input::Wake);
    harness.sent();
    harness.step(seconds(1), Input::Stop);
    assert_eq!(harness.sent(), [""; 0]);
    assert_eq!(harness.engine.phase(), Phase::Done);

    // A former holder reads another holder, and does not write.
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    harness.sent();
    harness.step(seconds(1), Input::Stop);
    harness.write(seconds(1), record("bing", 1));
    harness.step(seconds(1), Input::WorkEnded);
    assert_eq!(harness.sent(), ["get"]);
    assert_eq!(harness.engine.phase(), Phase::Done);
    assert_eq!(harness.lease().holder, "bing");

    // The Lease was deleted.
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    harness.server = Server::default();
    harness.step(seconds(1), Input::Stop);
    harness.step(seconds(1), Input::WorkEnded);
    assert_eq!(harness.engine.phase(), Phase::Done);
    assert_eq!(harness.server.lease(), None);
}

/// client-go's `TestReleaseOnCancellation_Leases`: a stop while a request is in flight.
#[test]
fn a_stop_releases_a_lease_that_may_be_held() {
    // A renewal is in flight, and succeeds after the stop.
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    let renewal = harness
        .engine
        .step(seconds(2), WALL_MICROS, Input::Wake)
        .send
        .unwrap();
    harness.step(seconds(2), Input::Stop);
    harness.server.handle(seconds(2), renewal);
    harness.step(seconds(2), Input::WorkEnded);
    assert_eq!(harness.engine.phase(), Phase::Done);
    assert_eq!(harness.lease().holder, "");

    // The first write is in flight: the engine does not know whether it holds the Lease.
    let mut harness = Harness::new(Some(record("", 0)));
    harness.engine.step(seconds(0), WALL_MICROS, Input::Wake);
    let response = harness.server.handle(seconds(0), LeaseRequest::Get);
    let take = harness
        .engine
        .step(seconds(0), WALL_MICROS, Input::Response(response))
        .send
        .unwrap();
    harness.server.handle(seconds(0), take);
    assert_eq!(harness.lease().holder, "baz");
    harness.step(seconds(1), Input::Stop);
    assert_eq!(harness.lease().holder, "");
    assert_eq!(harness.engine.phase(), Phase::Done);

    // A read is in flight: there is nothing to release.
    let mut harness = Harness::new(Some(record("", 0)));
    harness.engine.step(seconds(0), WALL_MICROS, Input::Wake);
    harness.step(seconds(1), Input::Stop);
    assert_eq!(harness.engine.phase(), Phase::Done);
    assert_eq!(harness.sent(), [""; 0]);
}

#[test]
fn a_release_does_not_take_longer_than_the_renew_deadline() {
    let mut harness = Harness::new(None);
    harness.step(seconds(0), Input::Wake);
    harness.step(seconds(1), Input::Stop);
    let output = harness
        .engine
        .step(seconds(1), WALL_MICROS, Input::WorkEnded);
    assert_eq!(output.wake, Some(seconds(11)));
    harness.step(seconds(11), Input::Wake);
    assert_eq!(harness.engine.phase(), Phase::Done);
}

#[test]
fn a_term_ends_before_another_one_can_start() {
    let check = |lease_seconds: u32, renew_ms: u64, term_ms: u128| {
        let timing = Timing {
            lease_seconds,
            renew_deadline: Duration::from_millis(renew_ms),
            retry_period: Duration::from_secs(2),
        };
        assert_eq!(timing.term().as_millis(), term_ms);
        // The slowest clock of the holder, and the fastest clock of another candidate.
        let end = timing.term() * 100 / (100 - CLOCK_DRIFT_PERCENT);
        let next_start =
            Duration::from_secs(lease_seconds.into()) * 100 / (100 + CLOCK_DRIFT_PERCENT);
        assert!(end <= next_start, "{timing:?}");
    };
    check(15, 10_000, 10_000);
    check(3, 2000, 2000);
    check(12, 11_900, 9818);
    check(60, 59_999, 49_090);
}
