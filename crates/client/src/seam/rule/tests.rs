use http::Method;

use super::*;

fn info(method: Method, path: &str) -> RequestInfo {
    RequestInfo::parse(&method, &path.parse().unwrap())
}

#[test]
fn a_rule_counts_matching_requests() {
    let mut rules = [Rule::new(Effect::Refuse)
        .verb("get")
        .resource("pods")
        .nth(2)];
    let get = info(Method::GET, "/api/v1/namespaces/a/pods/b");
    let list = info(Method::GET, "/api/v1/pods");
    let mut applied = |info| decide(&mut rules, info, b"").other.is_some();
    let found: Vec<bool> = [&get, &list, &get, &get].map(&mut applied).into();
    assert_eq!(found, [false, false, true, false]);
}

#[test]
fn every_method_adds_a_condition() {
    let status = info(
        Method::PATCH,
        "/apis/apps/v1/namespaces/a/deployments/b/status",
    );
    let check = |rule: Rule, expected: bool| {
        assert_eq!(
            decide(&mut [rule], &status, b"body").other.is_some(),
            expected
        );
    };
    let rule = || Rule::new(Effect::Refuse);
    check(
        rule().resource("deployments.apps").subresource("status"),
        true,
    );
    check(rule().resource("deployments"), false);
    check(rule().namespace("a").name("b"), true);
    check(rule().namespace("c"), false);
    check(
        rule().matching(|info, body| info.is_write() && body == b"body"),
        true,
    );
    check(rule().times(0), false);
}

#[test]
fn delays_add_up_and_the_first_other_effect_is_used() {
    let second = Duration::from_secs(1);
    let mut rules = [
        Rule::new(Effect::Delay(second)),
        Rule::new(Effect::Refuse),
        Rule::new(Effect::DropResponse),
        Rule::new(Effect::Delay(second)),
    ];
    let effects = decide(&mut rules, &info(Method::GET, "/version"), b"");
    assert_eq!(effects.delay, 2 * second);
    assert!(matches!(effects.other, Some(Effect::Refuse)));
}
