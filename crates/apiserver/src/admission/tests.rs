use super::*;

#[test]
fn plugins_have_the_names_of_kubernetes() {
    for plugin in AdmissionPlugin::ALL {
        assert_eq!(plugin.to_string().parse(), Ok(*plugin));
    }
    let error = "Sesame".parse::<AdmissionPlugin>().unwrap_err();
    assert!(error.to_string().contains("\"Sesame\""), "{error}");
}
