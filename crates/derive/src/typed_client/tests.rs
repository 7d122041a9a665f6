use super::*;

fn expanded(attributes: TokenStream) -> Result<String, String> {
    let input = quote! { #attributes pub struct RobotSpec { size: i32 } };
    let input: DeriveInput = syn::parse2(input).unwrap();
    expand(&input)
        .map(|tokens| tokens.to_string())
        .map_err(|error| error.to_string())
}

/// Returns the names of the implemented traits.
fn verbs(attributes: TokenStream) -> Vec<String> {
    let tokens = expanded(attributes).unwrap();
    let parts = tokens.split("verbs :: ").skip(1);
    parts
        .map(|part| part.split_whitespace().next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_verbs_are_those_that_are_listed() {
    let kube = quote! { #[kube(group = "a.dev", version = "v1", kind = "Robot")] };
    assert_eq!(
        verbs(quote! { #kube #[client(verbs(get, deletecollection))] }),
        ["Get", "DeleteCollection"]
    );
    assert_eq!(verbs(kube).len(), VERBS.len());
}

#[test]
fn status_and_scale_are_those_of_kube() {
    let kube = quote! {
        #[kube(group = "status", kind = "Robot", status = "RobotStatus")]
        #[kube(scale(spec_replicas_path = ".spec.scale"))]
        #[kube(printcolumn(name = "kind", type_ = "string", json_path = ".kind"))]
    };
    assert_eq!(
        verbs(quote! { #kube #[client(verbs(get))] }),
        ["Get", "Status", "Scale"]
    );
    assert_eq!(
        verbs(quote! { #kube #[client(verbs(get), no_status)] #[client(no_scale)] }),
        ["Get"]
    );
    assert_eq!(
        verbs(quote! { #[kube(kind = "Status")] #[client(verbs())] }),
        [""; 0]
    );
}

#[test]
fn the_client_has_the_name_of_the_kind_or_its_own() {
    let tokens = expanded(quote! { #[kube(kind = "Robot")] }).unwrap();
    assert!(tokens.contains("pub type RobotClient = :: opkit :: __private :: TypedClient < Robot , RobotClientVerbs >"), "{tokens}");
    let tokens = expanded(quote! { #[kube(kind = "Robot")] #[client(name = "Robots")] }).unwrap();
    assert!(tokens.contains("pub type Robots ="), "{tokens}");
}

#[test]
fn mistakes_are_reported() {
    let check = |attributes, expected: &str| {
        let message = expanded(attributes).unwrap_err();
        assert!(message.contains(expected), "{message}");
    };
    let kube = || quote! { #[kube(kind = "Robot")] };
    let kube_and = |client: TokenStream| {
        let kube = kube();
        quote! { #kube #client }
    };
    check(quote! {}, "#[kube(kind = \"...\")]");
    check(
        kube_and(quote! { #[client(verbs(get, steal))] }),
        "`steal` is not a Kubernetes verb: expected one of get, list",
    );
    check(
        kube_and(quote! { #[client(nonsense)] }),
        "takes `verbs(...)`",
    );
    check(
        kube_and(quote! { #[client(name = "not a name")] }),
        "is not a valid type name",
    );
}
