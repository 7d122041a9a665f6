use super::*;

fn parsed(arguments: &[&str]) -> Arguments {
    let all = std::iter::once("robot-operator").chain(arguments.iter().copied());
    parse("robot-operator", all.map(OsString::from)).unwrap()
}

#[test]
fn flags_stand_before_and_after_the_command() {
    for arguments in [["--kubeconfig=/a", "run"], ["run", "--kubeconfig=/a"]] {
        let parsed = parsed(&arguments);
        assert_eq!(parsed.command, Some(Command::Run));
        assert_eq!(parsed.flags.kubeconfig.unwrap().to_str(), Some("/a"));
    }
    assert_eq!(parsed(&[]).command, None);
}

#[test]
fn namespaces_are_separated_by_commas() {
    let flags = parsed(&["--namespace", "a, b,", "--namespace", "c"]).flags;
    assert_eq!(flags.namespace, ["a", " b", "", "c"]);
}

#[test]
fn a_file_for_an_address_needs_an_address() {
    let arguments = ["robot-operator", "--debug-address-file", "/a"].map(OsString::from);
    assert!(parse("robot-operator", arguments).is_err());
}
