use super::{is_time_zone, schedule};

#[track_caller]
fn check(schedule: &str, expected: Result<(), &str>) {
    let result = schedule::check(schedule);
    assert_eq!(result.as_ref().map_err(String::as_str).copied(), expected);
}

#[test]
fn schedules_have_five_fields_or_a_descriptor() {
    for fine in [
        "* * * * *",
        "*/5 0-6,12 1,15 JAN-dec mon-FRI",
        "? ? ? ? ?",
        "0 0 31 2 0",
        "@hourly",
        "@midnight",
        "@every 1h30m",
        "TZ=Europe/Berlin 0 3 * * *",
        "CRON_TZ=UTC @daily",
    ] {
        check(fine, Ok(()));
    }
    check(
        "* * * *",
        Err("expected exactly 5 fields, found 4: [* * * *]"),
    );
    check("@never", Err("unrecognized descriptor: @never"));
}

#[test]
fn ranges_are_checked_in_order() {
    check(
        "60 * * * *",
        Err("end of range (60) above maximum (59): 60"),
    );
    check(
        "* * 0 * *",
        Err("beginning of range (0) below minimum (1): 0"),
    );
    check(
        "5-1 * * * *",
        Err("beginning of range (5) beyond end of range (1): 5-1"),
    );
    check("1-2-3 * * * *", Err("too many hyphens: 1-2-3"));
    check("*/1/2 * * * *", Err("too many slashes: */1/2"));
    check(
        "*/0 * * * *",
        Err("step of range should be a positive number: */0"),
    );
    check(
        "x * * * *",
        Err("failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
    );
}

#[test]
fn durations_are_those_of_go() {
    check("@every 90s", Ok(()));
    check(
        "@every 5",
        Err("failed to parse duration @every 5: time: missing unit in duration \"5\""),
    );
    check(
        "@every 5d",
        Err("failed to parse duration @every 5d: time: unknown unit \"d\" in duration \"5d\""),
    );
}

#[test]
fn time_zones_are_those_of_the_database() {
    for name in ["UTC", "Europe/Berlin", "America/New_York", "Etc/GMT+3"] {
        assert!(is_time_zone(name), "{name}");
    }
    for name in ["Europe/Ostfriesland", "europe/berlin", "CEST"] {
        assert!(!is_time_zone(name), "{name}");
    }
}
