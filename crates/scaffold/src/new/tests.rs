use super::*;
use crate::{AddApi, golden};

fn project(name: &str) -> NewProject {
    NewProject::new(name, Dependency::Version("0.1".into()), 2026)
}

#[test]
fn a_project_has_eight_files_and_two_hundred_lines() {
    let tree = project("robot-operator").tree().unwrap();
    let lines: usize = tree.files().map(|(_, text)| text.lines().count()).sum();
    assert_eq!(tree.files().count(), 8);
    assert!(lines <= 200, "{lines}");
    golden::check("robot-operator.txt", &golden::listing(&tree));
}

#[test]
fn a_project_with_all_options() {
    let mut project = project("webapp");
    project.domain = Some("my.example.com".into());
    project.license = License::Mit;
    project.owner = Some("The Authors".into());
    project.kind = Some("Guestbook".into());
    project.group = Some("webapp".into());
    project.version = Some("v1".into());
    project.namespaced = true;
    project.opkit = Dependency::Path("C:\\opkit".into());
    project.is_workspace = true;
    project.lock_file = Some("# lock\n".into());
    let tree = project.tree().unwrap();
    golden::check("all-options.txt", &golden::listing(&tree));
    golden::check_format(&tree);
}

#[test]
fn a_project_of_an_image() {
    let mut project = project("nginx-operator");
    project.image = Some("nginx:1.27".into());
    project.image_options.port = Some(80);
    let tree = project.tree().unwrap();
    golden::check("image.txt", &golden::listing(&tree));
    golden::check_format(&tree);
    let lines: usize = tree.files().map(|(_, text)| text.lines().count()).sum();
    assert!(lines <= 280, "{lines}");
}

#[test]
fn the_command_of_an_image_is_formatted() {
    let mut project = project("op");
    project.image = Some("nginx".into());
    for (words, user) in [(1, 0), (3, 1), (9, 1)] {
        project.image_options.command = vec!["--a-flag=\"value\"".to_owned(); words];
        project.image_options.run_as_user = Some(user);
        golden::check_format(&project.tree().unwrap());
    }
}

#[test]
fn sources_are_formatted_whatever_the_kind() {
    let names = [
        ("a", "Ab"),
        ("op", "Arm"),
        ("robot-operator", "Robot"),
        ("zoo", "Zebra"),
        ("x-operator", "HTTPRoute"),
        ("my-operator", "Type"),
        ("longer-name-of-an-operator", "HorizontalScaler"),
        ("o", "Apiece"),
    ];
    for (name, kind) in names {
        let mut project = project(name);
        project.kind = Some(kind.to_owned());
        let tree = project.tree().unwrap();
        golden::check_format(&tree);
        project.image =
            Some("registry.example.com:5000/a-team/some-web-server@sha256:0123456789".into());
        golden::check_format(&project.tree().unwrap());
        for (cluster_scoped, controller) in [(true, true), (false, false), (true, false)] {
            let mut command = AddApi::new("Second");
            command.cluster_scoped = cluster_scoped;
            command.controller = controller;
            command.kind = format!("{kind}2");
            let outcome = command.apply(&tree).unwrap();
            golden::check_format(&golden::after(&tree, &outcome));
        }
    }
}

#[test]
fn the_kind_follows_from_the_name() {
    for (name, kind) in [
        ("robot-operator", "Robot"),
        ("cert-manager", "CertManager"),
        ("scale-controller", "Scale"),
        ("demo", "Demo"),
    ] {
        let tree = project(name).tree().unwrap();
        let spec = format!("pub struct {kind}Spec");
        assert!(tree.files().any(|(_, text)| text.contains(&spec)), "{name}");
    }
}

#[test]
fn options_that_are_not_valid() {
    let check = |change: &dyn Fn(&mut NewProject), expected: &str| {
        let mut project = project("robot-operator");
        change(&mut project);
        let error = project.tree().unwrap_err();
        assert!(error.is_usage());
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    check(
        &|it| it.name = "Robot".into(),
        "NAME \"Robot\": a project is named by",
    );
    check(&|it| it.name = "opkit".into(), "NAME \"opkit\"");
    check(&|it| it.name = "1st".into(), "NAME \"1st\"");
    check(
        &|it| it.name = "context".into(),
        "NAME \"context\": the kind Context",
    );
    check(
        &|it| it.kind = Some("robot".into()),
        "--kind \"robot\": a kind is letters",
    );
    check(
        &|it| it.kind = Some("Deployment".into()),
        "--kind \"Deployment\": this is a name",
    );
    check(&|it| it.group = Some("a_b".into()), "--group \"a_b\"");
    check(&|it| it.version = Some("1".into()), "--version \"1\"");
    check(&|it| it.domain = Some("-".into()), "--domain \"-\"");
    for wrong in ["", "a b", "nginx:\"", ":1", "nginx:"] {
        check(&|it| it.image = Some(wrong.into()), "--image ");
    }
    check(
        &|it| it.image_options.port = Some(80),
        "--port \"80\": this belongs to an image",
    );
    check(
        &|it| it.image_options.run_as_user = Some(80),
        "--run-as-user \"80\"",
    );
    check(
        &|it| it.image_options.command = vec!["a".into()],
        "--container-command \"a\"",
    );
    check(
        &|it| (it.image, it.image_options.port) = (Some("nginx".into()), Some(0)),
        "--port \"0\"",
    );
    let empty = vec!["a".to_owned(), String::new()];
    check(
        &|it| (it.image, it.image_options.command) = (Some("nginx".into()), empty.clone()),
        "--container-command \"a,\"",
    );
    check(
        &|it| it.license = License::Mit,
        "--license \"mit\": this license names",
    );
}

#[test]
fn files_that_exist_already_stay() {
    let outcome = project("robot-operator").apply(|path| path == "README.md");
    let outcome = outcome.unwrap();
    assert!(outcome.changes.iter().all(|it| it.path != "README.md"));
    assert_eq!(outcome.changes.iter().count(), 7);
}
