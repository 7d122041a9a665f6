use super::*;

fn options(lease_ms: u64, renew_ms: u64, retry_ms: u64) -> LeaderElectionOptions {
    LeaderElectionOptions {
        lease_duration: Duration::from_millis(lease_ms),
        renew_deadline: Duration::from_millis(renew_ms),
        retry_period: Duration::from_millis(retry_ms),
        ..LeaderElectionOptions::new("lease")
    }
}

/// client-go's `TestLeaderElectionConfigValidation`.
#[test]
fn errors_name_the_duration_that_is_not_valid() {
    let check = |options: LeaderElectionOptions, expected: &str| {
        let error = options.timing().unwrap_err().to_string();
        assert_eq!(error, format!("the leader election option {expected}"));
    };
    assert!(options(15_000, 10_000, 2000).timing().is_ok());
    check(
        options(10_000, 10_000, 2000),
        "lease_duration must be greater than renew_deadline (10s <= 10s)",
    );
    check(
        options(15_000, 2400, 2000),
        "renew_deadline must be greater than 1.2 times retry_period (2.4s <= 2.4s)",
    );
    assert!(options(15_000, 2401, 2000).timing().is_ok());
    check(
        options(0, 10_000, 2000),
        "lease_duration must be greater than zero",
    );
    check(
        options(15_000, 0, 2000),
        "renew_deadline must be greater than zero",
    );
    check(
        options(15_000, 10_000, 0),
        "retry_period must be greater than zero",
    );
    // The term is 9/11 of the Lease's duration, which leaves no time to renew the Lease.
    check(
        options(3000, 2900, 2400),
        "lease_duration leaves no time to renew the lease: 9/11 of it must be greater than 1.2 times retry_period (2.454545454s <= 2.88s)",
    );
    let mut unnamed = options(15_000, 10_000, 2000);
    unnamed.identity = Some(String::new());
    let error = unnamed.identity().unwrap_err().to_string();
    assert_eq!(error, "the leader election option identity is empty");
}

#[test]
fn errors_name_the_option_that_is_not_a_valid_name() {
    let check = |change: fn(&mut LeaderElectionOptions), expected: &str| {
        let mut options = options(15_000, 10_000, 2000);
        options.namespace = Some("shops".to_owned());
        assert!(options.check().is_ok());
        change(&mut options);
        let error = options.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{expected:?} is not in {error:?}");
    };
    check(|it| it.lease_name.clear(), "lease_name \"\"");
    check(|it| it.lease_name = "a/b".into(), "lease_name \"a/b\"");
    check(
        |it| it.namespace = Some("kube-system/secrets/x?".into()),
        "namespace \"kube-system/secrets/x?\"",
    );
    check(
        |it| it.labels = [("a b".to_owned(), "c".to_owned())].into(),
        "labels \"a b=c\"",
    );
}

/// Checks the rounding: other candidates read whole seconds, which must not be shorter than the
/// holder's own duration.
#[test]
fn a_lease_is_rounded_up_to_seconds() {
    let timing = options(1500, 1000, 200).timing().unwrap();
    assert_eq!(timing.lease_seconds, 2);
    assert_eq!(
        options(15_000, 10_000, 2000)
            .timing()
            .unwrap()
            .lease_seconds,
        15
    );
    let longest = options(u64::MAX, 10_000, 2000);
    assert!(longest.timing().is_err());
}

#[test]
fn the_namespace_is_the_option_or_that_of_the_pod() {
    let directory = std::env::temp_dir().join(format!("opkit-lease-{}", uuid()));
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("namespace");
    let mut options = LeaderElectionOptions::new("lease");
    let error = options.namespace_or(&file).unwrap_err().to_string();
    assert!(error.contains("--leader-election-namespace"), "{error}");
    std::fs::write(&file, "shops\n").unwrap();
    assert_eq!(options.namespace_or(&file).unwrap(), "shops");
    options.namespace = Some("others".to_owned());
    assert_eq!(options.namespace_or(&file).unwrap(), "others");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn an_identity_is_a_hostname_and_a_uuid() {
    let options = LeaderElectionOptions::new("lease");
    let (one, two) = (options.identity().unwrap(), options.identity().unwrap());
    assert_ne!(one, two);
    let (host, uuid) = one.rsplit_once('_').unwrap();
    assert!(!host.is_empty());
    let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
    let mut uuid = uuid.split('-').skip(2);
    assert!(uuid.next().unwrap().starts_with('4'));
    assert!(uuid.next().unwrap().starts_with(['8', '9', 'a', 'b']));
}
