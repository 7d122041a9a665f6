use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Choice, String> {
    Choice::read(|name| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    })
    .map_err(|error| error.to_string())
}

#[test]
fn the_environment_chooses() {
    assert_eq!(read(&[]), Ok(Choice::Embedded));
    assert_eq!(read(&[(VARIABLE, "")]), Ok(Choice::Embedded));
    assert_eq!(read(&[(VARIABLE, "binaries")]), Ok(Choice::Binaries));
    assert_eq!(read(&[(VARIABLE, "cluster")]), Ok(Choice::Cluster));
    assert_eq!(read(&[(EXISTING, "true")]), Ok(Choice::Cluster));
    assert_eq!(read(&[(EXISTING, "false")]), Ok(Choice::Embedded));
    let both = [(VARIABLE, "embedded"), (EXISTING, "true")];
    assert_eq!(read(&both), Ok(Choice::Embedded));
}

#[test]
fn an_unknown_control_plane_is_refused() {
    let error = read(&[(VARIABLE, "kind")]).unwrap_err();
    let want = "OPKIT_CONTROL_PLANE is \"kind\", which is not one of embedded, binaries, cluster";
    assert_eq!(error, want);
}
