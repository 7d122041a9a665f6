//! The guides for those who come from other tools name everything that those tools have, and only
//! commands that exist.

use super::*;

/// Commands and flags of kubebuilder 4.15.
const COMMANDS: &str = "\
    init --repo --license --license-file --owner --multigroup --namespaced --fetch-deps \
    --skip-go-version-check --domain --project-name --project-version --plugins \
    create api --group --version --kind --plural --resource --ssa --controller \
    --controller-name --external-api-path --external-api-domain --external-api-module --make \
    --force --image --image-container-command --image-container-port --run-as-user --manifests \
    webhook --defaulting --programmatic-validation --conversion --spoke --defaulting-path \
    --validation-path \
    edit helm/v2-alpha helm/v1-alpha --output-dir grafana/v1-alpha autoupdate/v1-alpha \
    deploy-image/v1-alpha \
    alpha generate --input-dir update --from-version --to-version --from-branch --show-commits \
    --restore-path --output-branch --push --merge-message --conflict-message --open-gh-issue \
    --git-config completion version help";

/// Targets of the Makefile of a project of kubebuilder 4.15.
const TARGETS: &str = "\
    all help manifests generate fmt vet test setup-test-e2e test-e2e cleanup-test-e2e lint \
    lint-fix lint-config build run docker-build docker-push docker-buildx build-installer \
    install uninstall deploy undeploy kustomize controller-gen setup-envtest envtest \
    golangci-lint install-helm helm-deploy helm-uninstall helm-status helm-history helm-rollback";

/// Functions of kube-runtime's controller, watcher and streams.
const KUBE: &str = "\
    owns watches watches_stream owns_shared_stream for_stream for_shared_stream reconcile_on \
    reconcile_all_on shutdown_on_signal graceful_shutdown_on with_config concurrency debounce \
    metadata_watcher watcher reflector applied_objects touched_objects default_backoff \
    predicate_filter finalizer await_condition Recorder Discovery";

fn guide(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(path.join(name)).unwrap()
}

/// Returns the part of a guide below a heading.
fn section<'a>(guide: &'a str, heading: &str) -> &'a str {
    let start = guide.split(&format!("\n## {heading}\n")).nth(1);
    let part = start.unwrap_or_else(|| panic!("there is no section {heading}"));
    part.split("\n## ").next().unwrap_or_default()
}

/// Returns the names that are not in the code of a text as a whole word.
fn missing<'a>(names: &'a str, text: &str) -> Vec<&'a str> {
    let code: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let is_in_name = |char: char| char.is_alphanumeric() || "-_/".contains(char);
    let words = code.iter().flat_map(|code| {
        // A backslash escapes a bar in a table.
        code.split(|char: char| !is_in_name(char))
    });
    let words: Vec<&str> = words.collect();
    let names = names.split_whitespace();
    names.filter(|name| !words.contains(name)).collect()
}

#[test]
fn every_command_and_target_of_kubebuilder_has_a_counterpart() {
    let guide = guide("coming-from-kubebuilder.md");
    assert_eq!(missing(COMMANDS, section(&guide, "Commands")), [""; 0]);
    assert_eq!(missing(TARGETS, section(&guide, "Make targets")), [""; 0]);
}

#[test]
fn functions_of_kube_runtime_have_a_counterpart() {
    let guide = guide("coming-from-kube-rs.md");
    assert_eq!(
        missing(KUBE, section(&guide, "What replaces what")),
        [""; 0]
    );
}

#[test]
fn commands_in_guides_exist() {
    let help = opkit(Path::new(".")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let known = |name: &str| help.lines().any(|line| line.trim_start().starts_with(name));
    for name in ["coming-from-kubebuilder.md", "coming-from-kube-rs.md"] {
        let guide = guide(name);
        let named = guide.split("`opkit ").skip(1);
        for command in named.filter_map(|rest| rest.split([' ', '`', '\n']).next()) {
            let is_word = command.chars().all(|char| char.is_ascii_lowercase());
            assert!(
                !is_word || known(&format!("{command} ")),
                "{name}: {command}"
            );
        }
    }
}
