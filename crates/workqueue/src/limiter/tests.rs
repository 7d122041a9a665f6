//! client-go's `default_rate_limiters_test.go`.

use super::*;

const NOW: Duration = Duration::ZERO;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn check(limiter: &mut impl RateLimiter<&'static str>, key: &'static str, delays: &[u64]) {
    for delay in delays {
        assert_eq!(limiter.when(NOW, &key), ms(*delay), "{key}");
    }
}

#[test]
fn the_exponential_delay_doubles_per_key() {
    let mut limiter = ItemExponential::new(ms(1), ms(1000));
    check(&mut limiter, "one", &[1, 2, 4, 8, 16]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    check(&mut limiter, "two", &[1, 2]);
    assert_eq!(limiter.num_requeues(&"two"), 2);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    check(&mut limiter, "one", &[1]);
}

#[test]
fn the_exponential_delay_does_not_overflow() {
    let minute = ms(60_000);
    let hours = ms(1000 * 3_600_000);
    for (base, max, nth, delay) in [
        (ms(1), ms(1_000_000), 6, ms(32)),
        (ms(1), ms(1_000_000), 1000, ms(1_000_000)),
        (minute, hours, 3, ms(4 * 60_000)),
        (minute, hours, 1000, hours),
        (Duration::from_nanos(1), ms(1_000_000), 1000, ms(1_000_000)),
        (Duration::MAX, Duration::MAX, 70, Duration::MAX),
        (Duration::ZERO, ms(5), 1000, Duration::ZERO),
    ] {
        let mut limiter = ItemExponential::new(base, max);
        for _ in 1..nth {
            limiter.when(NOW, &"a");
        }
        assert_eq!(limiter.when(NOW, &"a"), delay, "{base:?} {nth}");
    }
}

#[test]
fn the_default_delays_are_controller_runtimes() {
    let mut limiter = ItemExponential::default();
    let delays: Vec<_> = (0..20).map(|_| limiter.when(NOW, &"a")).collect();
    for (failure, expected) in [(0, 5), (14, 81_920), (17, 655_360), (18, 1_000_000)] {
        assert_eq!(delays[failure], ms(expected));
    }
}

#[test]
fn fast_then_slow() {
    let mut limiter = ItemFastSlow::new(ms(5), ms(10_000), 3);
    check(&mut limiter, "one", &[5, 5, 5, 10_000, 10_000]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    check(&mut limiter, "two", &[5]);
    limiter.forget(&"one");
    check(&mut limiter, "one", &[5]);
}

#[test]
fn the_longest_of_all_counts_and_all_advance() {
    let mut limiter = MaxOf::new(vec![
        Box::new(ItemFastSlow::new(ms(5), ms(3000), 3)),
        Box::new(ItemExponential::new(ms(1), ms(1000))),
    ]);
    check(&mut limiter, "one", &[5, 5, 5, 3000, 3000]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    check(&mut limiter, "two", &[5, 5]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    check(&mut limiter, "one", &[5]);
}

#[test]
fn the_wait_is_capped() {
    let inner = ItemExponential::new(ms(1), ms(1000));
    let mut limiter = WithMaxWait::new(inner, ms(5));
    check(&mut limiter, "one", &[1, 2, 4, 5, 5]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    limiter.forget(&"one");
    check(&mut limiter, "one", &[1]);
}

#[test]
fn a_bucket_gives_its_burst_and_then_its_rate() {
    let mut limiter = TokenBucket::new(10.0, 3);
    check(&mut limiter, "any", &[0, 0, 0, 100, 200]);
    // The bucket owes two tokens; a third one came in.
    assert_eq!(limiter.when(ms(300), &"any"), ms(0));
    assert_eq!(limiter.when(ms(300), &"any"), ms(100));
    // The bucket never holds more than its burst.
    for delay in [0, 0, 0, 100] {
        assert_eq!(limiter.when(ms(100_000), &"any"), ms(delay));
    }
    assert_eq!(RateLimiter::<&str>::num_requeues(&limiter, &"any"), 0);
}

#[test]
fn a_bucket_survives_senseless_rates() {
    for rate in [0.0, -1.0, f64::NAN, f64::MIN_POSITIVE] {
        let mut limiter = TokenBucket::new(rate, 0);
        assert_eq!(limiter.when(NOW, &"a"), Duration::ZERO);
        assert!(limiter.when(NOW, &"a") > ms(1_000_000), "{rate}");
    }
    let mut limiter = TokenBucket::new(f64::INFINITY, 1);
    check(&mut limiter, "a", &[0, 0, 0]);
}

#[test]
fn the_default_controller_limiter_shares_a_bucket() {
    let mut limiter = default_controller_rate_limiter::<u32>();
    for key in 0..100 {
        assert_eq!(limiter.when(NOW, &key), ms(5));
    }
    assert_eq!(limiter.when(NOW, &100), ms(100));
    assert_eq!(limiter.when(NOW, &101), ms(200));
    assert_eq!(limiter.num_requeues(&101), 1);
}

#[test]
fn jitter_stays_in_its_bounds_and_repeats() {
    let limiter = |seed| Jittered::with_seed(ItemExponential::new(ms(100), ms(100)), 0.2, seed);
    let delays = |seed| {
        let mut limiter = limiter(seed);
        (0..100)
            .map(|_| limiter.when(NOW, &"a"))
            .collect::<Vec<_>>()
    };
    assert!(delays(1).iter().all(|d| (ms(100)..ms(120)).contains(d)));
    assert_eq!(delays(1), delays(1));
    assert_ne!(delays(1), delays(2));
    let mut limiter = limiter(1);
    limiter.when(NOW, &"a");
    assert_eq!(limiter.num_requeues(&"a"), 1);
    limiter.forget(&"a");
    assert_eq!(limiter.num_requeues(&"a"), 0);
}

#[test]
fn forgotten_failures_give_memory_back() {
    let mut limiter = ItemExponential::default();
    for key in 0..10_000 {
        limiter.when(NOW, &key);
    }
    for key in 0..10_000 {
        limiter.forget(&key);
    }
    assert!(limiter.failures.0.capacity() <= SHRINK_ABOVE);
}
