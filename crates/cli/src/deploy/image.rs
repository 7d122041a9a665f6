//! The image of an operator.

/// Returns the image: the one that is asked for, or that of the package's metadata with the
/// package's version as tag, or that of the model.
pub(super) fn choose(
    asked: Option<&str>,
    metadata: Option<&str>,
    version: &str,
    model: Option<&str>,
) -> String {
    match (asked, metadata) {
        (Some(asked), _) => asked.to_owned(),
        (None, Some(image)) if has_tag(image) => image.to_owned(),
        (None, Some(image)) => format!("{image}:{version}"),
        (None, None) => model.unwrap_or_default().to_owned(),
    }
}

/// Reports whether a node can pull the image: whether it names a registry.
pub(super) fn has_registry(image: &str) -> bool {
    image.contains('/')
}

/// Reports whether the last part of the image has a tag or a digest. A colon before it is that of
/// the registry's port.
fn has_tag(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    name.contains(':') || name.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_the_version_of_the_package() {
        let image = |asked, metadata| choose(asked, metadata, "0.2.0", Some("op:latest"));
        assert_eq!(image(None, None), "op:latest");
        assert_eq!(image(None, Some("ghcr.io/a/op")), "ghcr.io/a/op:0.2.0");
        assert_eq!(
            image(None, Some("localhost:5000/op")),
            "localhost:5000/op:0.2.0"
        );
        assert_eq!(image(None, Some("ghcr.io/a/op:edge")), "ghcr.io/a/op:edge");
        assert_eq!(image(None, Some("a/op@sha256:aa")), "a/op@sha256:aa");
        assert_eq!(image(Some("b/op:1"), Some("ghcr.io/a/op")), "b/op:1");
    }

    #[test]
    fn an_image_with_a_path_has_a_registry() {
        assert!(has_registry("ghcr.io/a/op:1") && has_registry("a/op"));
        assert!(!has_registry("op:1"));
    }
}
