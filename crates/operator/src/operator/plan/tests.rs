use super::*;

struct App;

fn operator() -> Operator {
    Operator::new("map-operator")
}

#[test]
fn an_operator_with_a_state_is_refused_unless_it_has_another_one() {
    assert_eq!(operator().reason_not_to_plan(), None);
    let connect = || async { Ok::<_, opkit_controller::Error>(App) };
    let expected = "its state App could write outside of the cluster; give `plan` one that cannot: .state_for_plan(App::read_only)";
    for operator in [
        operator().state(connect),
        operator().state_value(App),
        operator()
            .state(connect)
            .state_for_plan(|| async { Ok::<_, opkit_controller::Error>(7) }),
    ] {
        assert_eq!(operator.reason_not_to_plan().as_deref(), Some(expected));
    }
    let replaced = operator().state(connect).state_for_plan(connect);
    assert_eq!(replaced.reason_not_to_plan(), None);
}

#[test]
fn types_have_short_names() {
    assert_eq!(short("bucket_operator::App"), "App");
    assert_eq!(short("App"), "App");
    assert_eq!(short("a::Pool<b::Connection>"), "Pool");
}
