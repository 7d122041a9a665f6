use super::*;
use crate::{AddApi, AddController, AddWebhook, Dependency, NewProject, Outcome, Tree, golden};

fn project() -> Tree {
    let opkit = Dependency::Version("0.1".into());
    NewProject::new("robot-operator", opkit, 2026)
        .tree()
        .unwrap()
}

fn run(tree: &Tree, outcome: Result<Outcome>) -> Tree {
    let after = golden::after(tree, &outcome.unwrap());
    golden::check_format(&after);
    after
}

#[test]
fn controllers_are_removed_with_their_modules() {
    for (kind, name) in [
        ("Deployment", None),
        ("Robot", Some("scaler")),
        ("Node", None),
    ] {
        let mut add = AddController::new(kind);
        add.name = name.map(str::to_owned);
        let added = run(&project(), add.apply(&project()));
        let command = RemoveController {
            kind: kind.into(),
            group: None,
            name: name.map(str::to_owned),
        };
        let removed = run(&added, command.apply(&added));
        assert_eq!(removed, project(), "{kind}");
        assert!(command.apply(&removed).unwrap().changes.is_empty());
    }
}

#[test]
fn the_controller_of_a_kind_goes_with_its_functions_and_imports() {
    let command = RemoveController {
        kind: "Robot".into(),
        group: None,
        name: None,
    };
    let outcome = command.apply(&project()).unwrap();
    golden::check("remove-controller.diff", &outcome.changes.diff());
}

#[test]
fn one_function_of_a_webhook_is_removed() {
    let mut add = AddWebhook::new("Robot");
    add.defaulting = true;
    let defaulting = run(&project(), add.apply(&project()));
    add.validation = true;
    let both = run(&defaulting, add.apply(&defaulting));
    let mut command = RemoveWebhook {
        kind: "Robot".into(),
        group: None,
        defaulting: false,
        validation: true,
    };
    assert_eq!(run(&both, command.apply(&both)), defaulting);
    command.validation = false;
    command.defaulting = true;
    assert_eq!(run(&defaulting, command.apply(&defaulting)), project());
    assert!(command.apply(&project()).unwrap().changes.is_empty());
}

#[test]
fn the_webhook_of_a_pod_and_its_controller_share_a_module() {
    let mut webhook = AddWebhook::new("Pod");
    webhook.validation = true;
    let one = run(&project(), webhook.apply(&project()));
    let both = run(&one, AddController::new("Pod").apply(&one));
    let remove = RemoveController {
        kind: "Pod".into(),
        group: Some("core".into()),
        name: None,
    };
    assert_eq!(run(&both, remove.apply(&both)), one);
    let remove = RemoveWebhook {
        kind: "Pod".into(),
        group: None,
        defaulting: false,
        validation: false,
    };
    assert_eq!(run(&one, remove.apply(&one)), project());
}

#[test]
fn an_api_is_removed_with_its_webhook() {
    let mut api = AddApi::new("Arm");
    api.cluster_scoped = true;
    let one = run(&project(), api.apply(&project()));
    let mut webhook = AddWebhook::new("Arm");
    webhook.validation = true;
    let both = run(&one, webhook.apply(&one));
    let remove = RemoveApi { kind: "Arm".into() };
    assert_eq!(run(&both, remove.apply(&both)), project());
    assert!(remove.apply(&project()).unwrap().changes.is_empty());
}

#[test]
fn a_field_or_parameter_with_the_name_of_a_module_is_not_a_use_of_it() {
    let remove = RemoveApi { kind: "Arm".into() };
    let with = |text: &str| {
        let mut tree = project();
        let robot = tree.get("src/robot.rs").unwrap().to_owned();
        tree.insert("src/robot.rs", format!("{robot}\n{text}"));
        let added = run(&tree, AddApi::new("Arm").apply(&tree));
        (tree, added)
    };
    let fields = "/// A hand.\npub struct Hand {\n    /// Its arm.\n    pub arm: String,\n}\n\n/// Returns the length.\npub fn length(arm: &str, hand: &Hand) -> usize {\n    let Hand { arm: own } = hand;\n    arm.len() + own.len()\n}\n";
    let (before, added) = with(fields);
    assert_eq!(run(&added, remove.apply(&added)), before);

    let (_, added) = with(
        "/// Returns the other one.\npub fn other() -> AnyController {\n    crate::arm::controller()\n}\n",
    );
    let line = added.get("src/robot.rs").unwrap().lines().count() - 1;
    let error = remove.apply(&added).unwrap_err().to_string();
    let expected = format!("src/robot.rs:{line}: `arm` is used here: change this first");
    assert!(error.starts_with(&expected), "{error}");
}
