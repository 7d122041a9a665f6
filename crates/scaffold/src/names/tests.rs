use super::*;

#[test]
fn versions_are_ordered_as_kubernetes_orders_them() {
    let ordered = [
        "v1alpha1", "v1alpha2", "v2alpha1", "v1beta1", "v1beta2", "v1", "v2", "v10",
    ];
    for pair in ordered.windows(2) {
        assert!(priority(pair[0]) < priority(pair[1]), "{pair:?}");
    }
    for wrong in [
        "", "v", "1", "v0", "v01", "v1gamma1", "v1alpha", "v1beta0", "v1beta1x", "V1",
    ] {
        assert_eq!(priority(wrong), None, "{wrong}");
    }
}

#[test]
fn names_in_rust() {
    for (kind, module) in [
        ("Robot", "robot"),
        ("HTTPRoute", "http_route"),
        ("MySQLCluster", "my_sql_cluster"),
        ("Http2Route", "http2_route"),
        ("Type", "type_kind"),
        ("Main", "main_kind"),
        ("Core", "core_kind"),
    ] {
        assert_eq!(super::module(kind), module);
    }
    assert_eq!(variable("Robot"), "robot");
    assert_eq!(variable("Plane"), "object");
    assert_eq!(variable("VeryLongNameOfAKind"), "object");
}

#[test]
fn a_group_ends_with_the_domain() {
    assert_eq!(group("robot", "opkit.dev").unwrap(), "robot.opkit.dev");
    assert_eq!(
        group("robot.opkit.dev", "opkit.dev").unwrap(),
        "robot.opkit.dev"
    );
    assert_eq!(group("", "opkit.dev").unwrap(), "opkit.dev");
    group("Robot", "opkit.dev").unwrap_err();
}
