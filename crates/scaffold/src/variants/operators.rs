//! Forms of `operator()` that commands edit.

use super::check;

#[test]
fn the_scaffold_itself() {
    check(
        &[],
        &[
            "pub mod arm;\npub mod robot;\n",
            "use arm::Arm;\nuse robot::Robot;\n",
            "        .crd::<Robot>()\n        .crd::<Arm>()\n        .controller(robot::controller())\n        .controller(arm::controller())\n}",
        ],
    );
}

/// Checks a crate root with this text.
fn root(text: &str, expected: &[&str]) {
    check(&[("src/lib.rs", text)], expected);
}

#[test]
fn comments_stay_where_they_are() {
    root(
        "//! Docs.\n\n// Kinds.\npub mod robot; // the robot\n// End of kinds.\n\nuse opkit::prelude::*;\n\n// Own.\nuse robot::Robot; // kind\n\n/// Op.\npub fn operator() -> Operator {\n    // Start.\n    Operator::new(\"robot-operator\")\n        // The kinds.\n        .crd::<Robot>() // one kind\n        // The controllers.\n        .controller(robot::controller()) /* last */\n}\n",
        &[
            "pub mod arm;\n// Kinds.\npub mod robot; // the robot\n",
            "        .crd::<Robot>() // one kind\n        .crd::<Arm>()\n        // The controllers.\n",
            "        .controller(robot::controller()) /* last */\n        .controller(arm::controller())\n}",
        ],
    );
}

#[test]
fn a_chain_on_one_line_is_broken() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\npub fn operator() -> Operator {\n    Operator::new(\"r\").crd::<Robot>().controller(robot::controller())\n}\n",
        &[
            "    Operator::new(\"r\")\n        .crd::<Robot>()\n        .crd::<Arm>()\n        .controller(robot::controller())\n        .controller(arm::controller())\n}",
        ],
    );
}

#[test]
fn a_chain_in_a_let() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\npub fn operator() -> Operator {\n    let operator = Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller());\n    operator\n}\n",
        &[
            "        .controller(robot::controller())\n        .controller(arm::controller());\n    operator\n",
        ],
    );
}

#[test]
fn a_let_and_more_calls_below() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\npub fn operator() -> Operator {\n    let operator = Operator::new(\"r\");\n    operator\n        .crd::<Robot>()\n        .controller(robot::controller())\n}\n",
        &["        .crd::<Robot>()\n        .crd::<Arm>()\n"],
    );
}

#[test]
fn assignments_one_after_another() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\npub fn operator() -> Operator {\n    let mut operator = Operator::new(\"r\");\n    operator = operator\n        .crd::<Robot>();\n    operator = operator\n        .controller(robot::controller());\n    operator\n}\n",
        &[
            "        .crd::<Robot>()\n        .crd::<Arm>();\n",
            "        .controller(robot::controller())\n        .controller(arm::controller());\n",
        ],
    );
}

#[test]
fn a_return_at_the_end() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\npub fn operator() -> Operator {\n    return Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller());\n}\n",
        &["        .controller(arm::controller());\n}"],
    );
}

#[test]
fn a_result_with_ok() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\npub fn operator() -> Result<Operator> {\n    Ok(Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller()))\n}\n",
        &["        .controller(robot::controller())\n        .controller(arm::controller()))\n"],
    );
}

#[test]
fn windows_line_endings_stay() {
    let text = "//! Docs.\r\n\r\npub mod robot;\r\n\r\nuse opkit::prelude::*;\r\n\r\nuse robot::Robot;\r\n\r\npub fn operator() -> Operator {\r\n    Operator::new(\"r\")\r\n        .crd::<Robot>() // one\r\n        .controller(robot::controller())\r\n}\r\n";
    root(
        text,
        &[
            "pub mod arm;\r\npub mod robot;\r\n",
            "        .crd::<Robot>() // one\r\n        .crd::<Arm>()\r\n",
        ],
    );
}

#[test]
fn no_newline_at_the_end() {
    root(
        "pub mod robot;\n\nuse opkit::prelude::*;\n\nuse robot::Robot;\n\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller())\n}",
        &["        .controller(arm::controller())\n}"],
    );
}

#[test]
fn cfg_attributes_around() {
    root(
        "#![deny(unsafe_code)]\n//! Docs.\n#[cfg(feature = \"debug\")]\nmod debug;\npub mod robot;\n#[cfg(test)]\nmod tests;\n\nuse opkit::prelude::*;\n#[cfg(feature = \"debug\")]\nuse debug::dump;\nuse robot::Robot;\n\n#[must_use]\n#[allow(\n    clippy::let_and_return,\n    reason = \"several lines\"\n)]\npub fn operator() -> Operator {\n    let operator = Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller());\n    #[cfg(feature = \"debug\")]\n    let operator = operator.crd::<debug::Dump>();\n    operator\n}\n",
        &[
            "pub mod arm;\n#[cfg(feature = \"debug\")]\nmod debug;\n",
            "        .crd::<Robot>()\n        .crd::<Arm>()\n        .controller(robot::controller())\n        .controller(arm::controller());\n    #[cfg",
        ],
    );
}

#[test]
fn other_calls_between() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .state_with(|cx: StateContext| async move {\n            if false {\n                return Ok::<_, Error>(1);\n            }\n            Ok::<_, Error>(2)\n        })\n        .crd::<Robot>()\n        .rule(PolicyRule::new(\"\", [\"pods\"], [\"get\"]))\n        .controller(\n            robot::controller(),\n        )\n        .leader_election(\"r\")\n}\n",
        &[
            "        .crd::<Robot>()\n        .crd::<Arm>()\n        .rule(",
            "            robot::controller(),\n        )\n        .controller(arm::controller())\n        .leader_election(\"r\")\n",
        ],
    );
}

#[test]
fn use_groups_and_paths_from_the_crate() {
    root(
        "pub mod robot;\n\nuse {\n    crate::robot::Robot,\n    opkit::prelude::*,\n};\n\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(crate::robot::controller())\n}\n",
        &["\n\nuse crate::arm::Arm;\n"],
    );
    root(
        "pub mod robot;\n\nuse opkit::prelude::*;\n\nuse crate::robot::{Robot, RobotSpec as Spec};\n\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller())\n}\npub type Desired = Spec;\n",
        &["use crate::arm::Arm;\nuse crate::robot::{Robot, RobotSpec as Spec};\n"],
    );
    root(
        "pub mod robot;\n\nuse opkit::prelude::*;\n\nuse self::robot::Robot;\n\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller())\n}\n",
        &["use self::arm::Arm;\nuse self::robot::Robot;\n"],
    );
}

#[test]
fn no_imports_at_all() {
    root(
        "pub mod robot;\n\npub fn operator() -> opkit::Operator {\n    opkit::Operator::new(\"r\")\n        .crd::<robot::Robot>()\n        .controller(robot::controller())\n}\n",
        &[
            "pub mod robot;\n\nuse crate::arm::Arm;\n\npub fn",
            "        .crd::<robot::Robot>()\n        .crd::<Arm>()\n",
        ],
    );
}

#[test]
fn operator_in_another_file() {
    check(
        &[
            (
                "src/operator.rs",
                "//! The operator.\n\nuse opkit::prelude::*;\n\nuse crate::robot::{self, Robot};\n\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller())\n}\n",
            ),
            (
                "src/lib.rs",
                "//! Docs.\n\nmod operator;\npub mod robot;\n\npub use operator::operator;\n",
            ),
        ],
        &[
            "use crate::arm::Arm;\nuse crate::robot::{self, Robot};\n",
            "        .controller(crate::arm::controller())\n",
        ],
    );
}

#[test]
fn operator_in_a_module_within_the_file() {
    root(
        "pub mod robot;\n\npub use parts::operator;\n\nmod parts {\n    use opkit::prelude::*;\n\n    use crate::robot::Robot;\n\n    pub fn operator() -> Operator {\n        Operator::new(\"r\")\n            .crd::<Robot>()\n            .controller(crate::robot::controller())\n    }\n}\n",
        &[
            "    use crate::arm::Arm;\n    use crate::robot::Robot;\n",
            "            .crd::<Robot>()\n            .crd::<Arm>()\n",
        ],
    );
}

#[test]
fn modules_in_several_groups_and_nested() {
    root(
        "mod zebra;\n\npub mod robot;\npub mod fleet {\n    pub mod ship;\n}\n\nuse opkit::prelude::*;\n\nuse robot::Robot;\n\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller())\n}\n\nmod late {}\n",
        &["pub mod arm;\nmod zebra;\n\npub mod robot;\n"],
    );
}

#[test]
fn a_helper_starts_the_chain() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\nfn base() -> Operator {\n    Operator::new(\"r\")\n}\npub fn operator() -> Operator {\n    base()\n        .crd::<Robot>()\n        .controller(robot::controller())\n}\n",
        &["        .crd::<Robot>()\n        .crd::<Arm>()\n"],
    );
}

#[test]
fn tabs_and_unusual_spaces() {
    root(
        "pub  mod  robot ;\n\nuse opkit :: prelude :: * ;\n\nuse robot::Robot ;\n\npub fn operator ( ) -> Operator\n{\n\tOperator::new( \"r\" )\n\t\t.crd :: < Robot > ( )\n\t\t.controller( robot :: controller ( ) )\n}\n",
        &[
            "\t\t.crd :: < Robot > ( )\n\t\t.crd::<Arm>()\n\t\t.controller( robot :: controller ( ) )\n\t\t.controller(arm::controller())\n}",
        ],
    );
}

#[test]
fn strings_and_comments_that_look_like_code() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\n// pub fn operator() -> Operator { Operator::new(\"x\") }\n/* .crd::<Arm>() */\npub const TEXT: &str = \".crd::<Arm>() pub fn operator() -> Operator {\";\npub const RAW: &str = r#\"\n    Operator::new(\"\n\"#;\npub fn operator() -> Operator {\n    Operator::new(\"Operator::new(\\\"é\\\") // no\")\n        .crd::<Robot>() // \"é\" ünï\n        .controller(robot::controller())\n}\n",
        &["        .crd::<Robot>() // \"é\" ünï\n        .crd::<Arm>()\n"],
    );
}

#[test]
fn a_macro_in_arguments_and_beside() {
    root(
        "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\nmacro_rules! name {\n    () => {\n        \"r\"\n    };\n}\npub fn operator() -> Operator {\n    assert!(!name!().is_empty());\n    Operator::new(name!())\n        .crd::<Robot>()\n        .controller(robot::controller())\n}\n",
        &["        .crd::<Robot>()\n        .crd::<Arm>()\n"],
    );
}

#[test]
fn several_functions_of_which_one_is_in_the_root() {
    check(
        &[
            (
                "src/lib.rs",
                "pub mod other;\npub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .crd::<Robot>()\n        .controller(robot::controller())\n}\n",
            ),
            (
                "src/other.rs",
                "use opkit::prelude::*;\npub fn operator() -> Operator {\n    Operator::new(\"other\")\n}\n",
            ),
        ],
        &["pub mod arm;\npub mod other;\npub mod robot;\n"],
    );
}

#[test]
fn a_kind_that_is_registered_by_its_path() {
    root(
        "pub mod robot;\n\nuse opkit::prelude::*;\n\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n        .crd::<crate::robot::Robot>()\n        .controller(self::robot::controller())\n}\n",
        &["        .crd::<crate::robot::Robot>()\n        .crd::<Arm>()\n"],
    );
}
