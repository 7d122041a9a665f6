use super::*;

#[test]
fn the_token_is_not_in_the_debug_text() {
    let selection = ClusterSelection {
        token: Some("secret".to_owned()),
        ..ClusterSelection::default()
    };
    let text = format!("{selection:?}");
    assert!(
        text.contains("has_token: true") && !text.contains("secret"),
        "{text}"
    );
}
