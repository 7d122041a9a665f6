use std::fs;
use std::path::Path;

use crate::guide::{Guide, words};
use crate::project::{EmptyDirectory, Project, command_in, opkit, repository, text};
use crate::running::{Cluster, Dev, Kubectl, is_real};
use crate::{imported, others};

/// One test, because the parts build the same project.
#[test]
fn the_operator_of_the_readme_compiles_passes_its_test_and_runs() {
    if is_real("the operator of the README") {
        return;
    }
    let project = Project::of_readme();
    let tested = project.cargo(&["test"]);
    let (out, errors) = (text(&tested.stdout), text(&tested.stderr));
    assert!(tested.status.success(), "{out}\n{errors}");
    assert!(!errors.contains("warning:"), "{errors}");
    assert!(
        out.contains("a_greeting_gets_its_config_map ... ok"),
        "{out}"
    );

    let opkit = opkit();
    let mut dev = Dev::start(project.command(&opkit), "Greeting hello");

    let explained = project
        .command(&opkit)
        .args(["explain", "greeting/hello"])
        .output()
        .unwrap();
    let explained = (text(&explained.stdout), text(&explained.stderr));
    assert!(explained.0.contains("ConfigMap"), "{explained:?}");

    dev.stop();
}

/// One test and one build: the projects of the guides become members of one workspace.
#[test]
fn the_projects_of_the_guides_compile_and_pass_their_tests() {
    if is_real("the projects of the guides") {
        return;
    }
    let parent = EmptyDirectory::new("guides");
    let mut projects = Vec::new();
    for guide in ["tour.md", "walkthroughs.md"] {
        projects.extend(Guide::read(guide).follow(parent.path()));
    }
    let others = others::create(parent.path());
    let imported = imported::create(parent.path());
    let members = projects.iter().chain(&others).chain([&imported]);
    let names: Vec<_> = members.map(|it| it.file_name().unwrap()).collect();
    let profile = "[profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\ndebug = false\n";
    let manifest = format!("[workspace]\nmembers = {names:?}\nresolver = \"3\"\n\n{profile}");
    fs::write(parent.path().join("Cargo.toml"), manifest).unwrap();
    let lock_file = parent.path().join("Cargo.lock");
    fs::copy(repository().join("Cargo.lock"), lock_file).unwrap();
    let tested = command_in(parent.path(), env!("CARGO"))
        .args(["test", "--workspace", "--tests"])
        .output()
        .unwrap();
    let (out, errors) = (text(&tested.stdout), text(&tested.stderr));
    assert!(tested.status.success(), "{out}\n{errors}");
    // The one warning is about profiles, which are those of the workspace.
    let warnings = errors.lines().filter(|line| line.starts_with("warning: "));
    let mut warnings = warnings.filter(|line| !line.contains("profiles for the non root package"));
    assert_eq!(warnings.next(), None, "{errors}");
    for test in [
        "a_robot_becomes_ready",
        "an_arm_becomes_ready",
        "check_allows_the_sample",
        "a_demo_keeps_its_config_map",
        "a_guestbook_becomes_ready",
        "a_nginx_becomes_ready",
        "a_cache_has_its_pods",
        "the_operator_is_sound",
    ] {
        assert!(
            out.contains(&format!("test {test} ... ok")),
            "{test}: {out}"
        );
    }

    imported::crds_are_the_originals(&imported);

    // The steps of the tour beside `opkit dev`.
    let tour = &projects[0];
    let mut dev = Dev::start(command_in(tour, opkit()), "Robot robot-sample");
    if let Some(kubectl) = Kubectl::find("the commands of the tour", tour, ".opkit/kubeconfig") {
        for line in Guide::read("tour.md").lines("kubectl ") {
            let arguments = line.split(' ').map(|word| word.trim_matches('\''));
            let out = kubectl.run(&arguments.skip(1).collect::<Vec<_>>());
            assert!(out.contains("robot-sample"), "{line}: {out}");
        }
        let deployment = ["deployment", "robot-sample"];
        kubectl.until(deployment, "{.spec.replicas}", "3");
        kubectl.until(deployment, "{.status.readyReplicas}", "3");
        kubectl.until(["robot", "robot-sample"], "{.status.readyReplicas}", "3");
    }
    dev.stop();
    a_field_is_added_beside_dev(&projects[1]);

    a_manifest_of_a_tutorial_is_applied(others.last().unwrap());

    // The steps in a cluster: those of the walkthroughs are the same for each project.
    let opkit = opkit();
    let mut places = vec![("tour.md", tour)];
    places.extend(projects[2..].iter().map(|it| ("walkthroughs.md", it)));
    for (guide, project) in places {
        let cluster = Cluster::start(project);
        let lines = Guide::read(guide).cluster_lines();
        assert!(lines.len() > 3, "{guide}");
        for line in lines {
            let mut command = command_in(project, &opkit);
            let name = project.file_name().unwrap().to_string_lossy();
            let line = line.replace("memcached-operator", &name);
            command.args(words(&line).iter().skip(1));
            let output = command
                .env("KUBECONFIG", &cluster.kubeconfig)
                .output()
                .unwrap();
            let (out, errors) = (text(&output.stdout), text(&output.stderr));
            assert!(output.status.success(), "{line}: {out}{errors}");
        }
    }
    for (project, crd, object) in [
        (
            &projects[2],
            "demo.example.com_demoes.yaml",
            "demo/demo-sample",
        ),
        (
            &projects[3],
            "webapp.my.domain_guestbooks.yaml",
            "guestbook/guestbook-sample",
        ),
        (
            &projects[4],
            "cache.example.com_memcacheds.yaml",
            "memcached/memcached-sample",
        ),
    ] {
        let path = project.join("config/crd/bases").join(crd);
        assert!(path.is_file(), "{}", path.display());
        the_layout_is_applied(project, object);
    }
}

/// The layout of kubebuilder's projects, by kubectl alone.
fn the_layout_is_applied(project: &Path, object: &str) {
    let cluster = Cluster::start(project);
    let kubeconfig = cluster.kubeconfig.to_str().unwrap();
    let Some(kubectl) = Kubectl::find("kubectl apply -k", project, kubeconfig) else {
        return;
    };
    kubectl.run(&["apply", "-k", "config/default"]);
    let deployments = kubectl.run(&["get", "deployments", "-A", "-o", "name"]);
    assert!(deployments.contains("-controller-manager"), "{deployments}");
    kubectl.run(&["apply", "-k", "config/samples"]);
    let found = kubectl.run(&["get", object, "-o", "name"]);
    let name = object.split('/').nth(1).unwrap();
    assert!(found.trim().ends_with(&format!("/{name}")), "{found}");
}

/// The manifest of another tutorial, which `opkit dev` applies unchanged: two pods run.
fn a_manifest_of_a_tutorial_is_applied(project: &Path) {
    let mut dev = Dev::start(command_in(project, opkit()), "Robot robot-one  2/2");
    if let Some(kubectl) = Kubectl::find("the robot", project, ".opkit/kubeconfig") {
        let path = "{.spec.command[1]}";
        kubectl.until(["robots.robot.llleon.io", "robot-one"], path, "3600");
    }
    dev.stop();
}

/// The sources are edited while the operator runs, and the new field is used.
fn a_field_is_added_beside_dev(nginx: &Path) {
    let mut dev = Dev::start(command_in(nginx, opkit()), "Nginx nginx-sample");
    let path = nginx.join("src/nginx.rs");
    let source = fs::read_to_string(&path).unwrap();
    let start = "pub struct NginxSpec {\n";
    let field = "    /// Color of the pages.\n    pub color: Option<String>,\n";
    assert!(source.contains(start), "{source}");
    let edited = source.replace(start, &format!("{start}{field}"));
    fs::write(&path, edited).unwrap();
    dev.until(|line| line.contains("nginx-operator restarted"));
    let kubectl = Kubectl::find("a new field, by kubectl", nginx, ".opkit/kubeconfig");
    if let Some(kubectl) = kubectl {
        let object = ["nginx", "nginx-sample"];
        let patch = r#"{"spec":{"color":"red"}}"#;
        kubectl.run(&[
            "patch", object[0], object[1], "--type", "merge", "-p", patch,
        ]);
        // A field that the CRD does not have is pruned.
        kubectl.until(object, "{.spec.color}", "red");
    }
    dev.stop();
    fs::write(&path, source).unwrap();
}
