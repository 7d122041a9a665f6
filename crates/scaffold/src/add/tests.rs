use super::*;
use crate::{Dependency, NewProject, Outcome, golden};

pub(super) fn project() -> Tree {
    let opkit = Dependency::Version("0.1".into());
    NewProject::new("robot-operator", opkit, 2026)
        .tree()
        .unwrap()
}

/// Compares the changes of a command with a golden file; returns the project after it.
pub(super) fn check(name: &str, tree: &Tree, command: &dyn Fn(&Tree) -> Result<Outcome>) -> Tree {
    let outcome = command(tree).unwrap();
    golden::check(name, &outcome.changes.diff());
    let after = golden::after(tree, &outcome);
    golden::check_format(&after);
    let again = command(&after).unwrap();
    assert!(again.changes.is_empty(), "{}", again.changes.diff());
    assert_eq!(again.next, None);
    after
}

#[test]
fn an_api() {
    let mut api = AddApi::new("Demo");
    api.group = Some("fleet".into());
    api.version = Some("v1".into());
    check("add-api.diff", &project(), &|tree| api.apply(tree));
    api.plural = Some("demos".into());
    let outcome = api.apply(&project()).unwrap();
    assert!(!outcome.changes.diff().contains("plural"));
    api.kind = "Photo".into();
    api.cluster_scoped = true;
    api.controller = false;
    api.plural = None;
    check("add-api-cluster.diff", &project(), &|tree| api.apply(tree));
}

#[test]
fn an_api_of_an_image() {
    let mut api = AddApi::new("Memcached");
    api.image = Some("memcached:1.6".into());
    let command = ["memcached", "--memory-limit=64", "-o", "modern", "-v"];
    api.image_options.command = command.map(str::to_owned).to_vec();
    api.image_options.run_as_user = Some(1001);
    api.cluster_scoped = true;
    check("add-api-image.diff", &project(), &|tree| api.apply(tree));
    api.controller = false;
    assert!(api.apply(&project()).unwrap_err().is_usage());
}

#[test]
fn a_controller_of_a_kind_that_exists() {
    let mut api = AddApi::new("Leg");
    api.controller = false;
    let tree = golden::after(&project(), &api.apply(&project()).unwrap());
    api.controller = true;
    api.resource = false;
    check("add-controller-own.diff", &tree, &|tree| api.apply(tree));
    api.controller = false;
    assert!(api.apply(&tree).unwrap_err().is_usage());
}

#[test]
fn controllers_of_kinds_of_others() {
    let mut command = AddController::new("Deployment");
    let tree = check("add-controller-built-in.diff", &project(), &|tree| {
        command.apply(tree)
    });
    command.name = Some("auto-scaler".into());
    check("add-controller-named.diff", &tree, &|tree| {
        command.apply(tree)
    });
    let mut command = AddController::new("Certificate");
    assert!(
        command
            .apply(&tree)
            .unwrap_err()
            .to_string()
            .contains("add --path")
    );
    command.path = Some("cert_manager::Issuer".into());
    assert!(command.apply(&tree).unwrap_err().is_usage());
    command.path = Some("cert_manager::Certificate".into());
    check("add-controller-path.diff", &tree, &|tree| {
        command.apply(tree)
    });
    let mut command = AddController::new("Robot");
    for wrong in ["Scaler", "check", "fn", "a b", ""] {
        command.name = Some(wrong.into());
        assert!(command.apply(&tree).unwrap_err().is_usage(), "{wrong}");
    }
}

#[test]
fn webhooks() {
    let mut command = AddWebhook::new("Robot");
    assert!(command.apply(&project()).unwrap_err().is_usage());
    command.defaulting = true;
    let tree = check("add-webhook-defaulting.diff", &project(), &|tree| {
        command.apply(tree)
    });
    command.validation = true;
    check("add-webhook-validation.diff", &tree, &|tree| {
        command.apply(tree)
    });
    let mut command = AddWebhook::new("Pod");
    command.group = Some("core".into());
    command.validation = true;
    check("add-webhook-built-in.diff", &project(), &|tree| {
        command.apply(tree)
    });
}

#[test]
fn conversion_needs_two_versions() {
    let mut command = AddWebhook::new("Robot");
    command.conversion = true;
    let error = command.apply(&project()).unwrap_err().to_string();
    assert!(
        error.contains("`opkit add version VERSION --kind Robot`"),
        "{error}"
    );
    let version = AddVersion {
        kind: "Robot".into(),
        version: "v1".into(),
    };
    let tree = check("add-version.diff", &project(), &|tree| version.apply(tree));
    assert!(command.apply(&tree).unwrap().changes.is_empty());
}

#[test]
fn functions_that_exist_are_not_replaced() {
    let mut tree = project();
    let text = tree.get("src/robot.rs").unwrap().to_owned();
    let line = text.lines().count() + 1;
    tree.insert("src/robot.rs", format!("{text}fn check() {{}}\n"));
    let mut command = AddWebhook::new("Robot");
    command.validation = true;
    let error = command.apply(&tree).unwrap_err().to_string();
    let expected = format!(
        "src/robot.rs:{line}: there is a function `check` already: add `.validating(check)`"
    );
    assert!(error.starts_with(&expected), "{error}");
    let branches =
        "pub fn webhook() -> Webhook<Robot> {\n    let hook = Webhook::new();\n    hook\n}\n";
    tree.insert("src/robot.rs", format!("{text}{branches}"));
    let error = command.apply(&tree).unwrap_err().to_string();
    let expected = format!(
        "src/robot.rs:{line}: webhook() is not one chain of methods: add `.validating(check)` by hand"
    );
    assert!(error.starts_with(&expected), "{error}");
}
