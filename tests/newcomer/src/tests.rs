use std::fs;
use std::io::ErrorKind;

use crate::guide::{Guide, words};
use crate::project::{EmptyDirectory, Project, command_in, opkit, repository, text};
use crate::running::{Cluster, Dev, is_real};

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
    let names: Vec<_> = projects.iter().map(|it| it.file_name().unwrap()).collect();
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
    ] {
        assert!(
            out.contains(&format!("test {test} ... ok")),
            "{test}: {out}"
        );
    }

    // The steps of the tour beside `opkit dev`.
    let tour = &projects[0];
    let mut dev = Dev::start(command_in(tour, opkit()), "Robot robot-sample");
    for line in Guide::read("tour.md").lines("kubectl ") {
        let arguments = line.split(' ').map(|word| word.trim_matches('\''));
        let mut kubectl = command_in(tour, "kubectl");
        kubectl.args(arguments.skip(1));
        match kubectl.env("KUBECONFIG", ".opkit/kubeconfig").output() {
            Ok(output) => assert!(output.status.success(), "{line}: {}", text(&output.stderr)),
            // A machine without kubectl skips these steps.
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{line}"),
        }
    }
    dev.stop();

    // The steps in a cluster: the tour has its own project, the walkthroughs end with the last.
    let memcached = projects.last().unwrap();
    let opkit = opkit();
    for (guide, project) in [("tour.md", tour), ("walkthroughs.md", memcached)] {
        let cluster = Cluster::start(project);
        let lines = Guide::read(guide).cluster_lines();
        assert!(lines.len() > 3, "{guide}");
        for line in lines {
            let mut command = command_in(project, &opkit);
            command.args(words(&line).iter().skip(1));
            let output = command
                .env("KUBECONFIG", &cluster.kubeconfig)
                .output()
                .unwrap();
            let (out, errors) = (text(&output.stdout), text(&output.stderr));
            assert!(output.status.success(), "{line}: {out}{errors}");
        }
    }
}
