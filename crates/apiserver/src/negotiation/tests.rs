use super::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const BUILTIN: Offer = Offer {
    is_custom: false,
    is_watch: false,
};
const CUSTOM: Offer = Offer {
    is_custom: true,
    is_watch: false,
};
const WATCH: Offer = Offer {
    is_custom: false,
    is_watch: true,
};

fn check(offer: Offer, accept: &str, expected: Result<(Media, Representation), NotAcceptable>) {
    assert_eq!(negotiate(accept, offer), expected, "{accept}");
}

fn object(media: Media) -> Result<(Media, Representation), NotAcceptable> {
    Ok((media, Representation::Object))
}

#[test]
fn media_types_are_negotiated() {
    check(BUILTIN, "", object(Media::Json));
    check(BUILTIN, "*/*", object(Media::Json));
    check(BUILTIN, "application/json, */*", object(Media::Json));
    check(BUILTIN, PROTOBUF, object(Media::Protobuf));
    check(BUILTIN, "application/yaml", object(Media::Yaml));
    check(
        BUILTIN,
        &format!("text/html, {PROTOBUF}"),
        object(Media::Protobuf),
    );
    check(BUILTIN, "text/html", Err(NotAcceptable::Type));
    check(BUILTIN, "application/*", Err(NotAcceptable::Type));
    check(CUSTOM, "application/*", object(Media::Json));
    check(CUSTOM, "text/html", Err(NotAcceptable::Form));
}

#[test]
fn the_best_quality_wins() {
    let accept = format!("application/json;q=0.5,{PROTOBUF};q=0.9");
    check(BUILTIN, &accept, object(Media::Protobuf));
    check(BUILTIN, "*/*, application/yaml", object(Media::Yaml));
    check(BUILTIN, "application/yaml, */*;q=0.1", object(Media::Yaml));
    check(BUILTIN, "application/yaml;q=0.1, */*", object(Media::Json));
}

#[test]
fn custom_resources_have_no_protobuf_encoding() {
    check(CUSTOM, PROTOBUF, Err(NotAcceptable::Form));
    check(
        CUSTOM,
        &format!("{PROTOBUF},application/json"),
        object(Media::Json),
    );
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let list = Representation::PartialObjectMetadataList;
    check(CUSTOM, &metadata, Ok((Media::Protobuf, list)));
}

#[test]
fn representations_are_negotiated() {
    let table = Representation::Table {
        include: IncludeObject::Metadata,
    };
    let accept = |media: &str, form: &str| format!("{media};as={form};v=v1;g=meta.k8s.io");
    let json = accept("application/json", "Table");
    check(BUILTIN, &json, Ok((Media::Json, table)));
    check(
        BUILTIN,
        &format!("{json},application/json"),
        Ok((Media::Json, table)),
    );
    check(
        BUILTIN,
        &accept(PROTOBUF, "Table"),
        Err(NotAcceptable::Form),
    );
    check(
        BUILTIN,
        &format!("{},{json}", accept(PROTOBUF, "Table")),
        Ok((Media::Json, table)),
    );
    check(
        BUILTIN,
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
        object(Media::Json),
    );
    let metadata = Representation::PartialObjectMetadata;
    check(
        BUILTIN,
        &accept(PROTOBUF, "PartialObjectMetadata"),
        Ok((Media::Protobuf, metadata)),
    );
    check(
        BUILTIN,
        "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
        Ok((Media::Json, metadata)),
    );
    check(
        BUILTIN,
        &accept("application/json", "Other"),
        Err(NotAcceptable::Form),
    );
}

#[test]
fn streams_are_negotiated() {
    check(
        WATCH,
        &format!("{PROTOBUF};stream=watch"),
        object(Media::Protobuf),
    );
    check(WATCH, "application/json;stream=watch", object(Media::Json));
    check(WATCH, "application/yaml", Err(NotAcceptable::Stream));
    check(
        WATCH,
        "application/json;stream=other",
        Err(NotAcceptable::Form),
    );
}

#[test]
fn errors_have_the_media_type_of_the_client() {
    assert_eq!(Media::of_error(""), Media::Json);
    assert_eq!(Media::of_error("text/html"), Media::Json);
    assert_eq!(Media::of_error(PROTOBUF), Media::Protobuf);
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    assert_eq!(Media::of_error(&metadata), Media::Json);
    assert_eq!(
        Media::of_error(&format!("{metadata},{PROTOBUF}")),
        Media::Protobuf
    );
}
