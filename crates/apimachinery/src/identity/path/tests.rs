use opkit_random::Random;

use super::*;

#[test]
fn names_of_kubernetes_are_written_as_they_are() {
    let check = |path: ResourcePath<'_>, expected: &str| {
        assert_eq!(path.build().as_deref(), Ok(expected));
        assert_eq!(ResourcePath::parse(expected), Some(path));
    };
    let roles = || ResourcePath::new("rbac.authorization.k8s.io", "v1", "clusterroles");
    let base = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    check(roles(), base);
    let name = "system:controller:x";
    check(roles().name(name), &format!("{base}/{name}"));
    // Kubernetes accepts such a name for a role.
    check(roles().name("a b?#é"), &format!("{base}/a%20b%3F%23%C3%A9"));
    let namespaces = || ResourcePath::new("", "v1", "namespaces");
    check(namespaces().name("a"), "/api/v1/namespaces/a");
    check(
        namespaces().name("a").subresource("finalize"),
        "/api/v1/namespaces/a/finalize",
    );
    let scale = ResourcePath::new("apps", "v1", "deployments");
    let scale = scale.namespace("n").name("d").subresource("scale");
    check(scale, "/apis/apps/v1/namespaces/n/deployments/d/scale");
}

#[test]
fn invalid_segments_are_rejected_with_their_field() {
    let check = |path: ResourcePath<'_>, expected: &str| {
        let error = path.build().unwrap_err().to_string();
        assert!(error.starts_with(&format!("the {expected}")), "{error}");
    };
    let pods = || ResourcePath::new("", "v1", "pods");
    for (text, reason) in [
        ("", "may not be empty"),
        (".", "may not be '.'"),
        ("..", "may not be '..'"),
        ("a/b", "may not contain '/'"),
        ("a%2Fb", "may not contain '%'"),
    ] {
        let about =
            |field| format!("{field} {text:?} cannot be in the path of a resource: it {reason}");
        check(pods().namespace(text).name("x"), &about("namespace"));
        check(pods().namespace("n").name(text), &about("name"));
        let part = pods().namespace("n").name("x").subresource(text);
        check(part, &about("subresource"));
        check(ResourcePath::new("", "v1", text), &about("resource"));
        check(ResourcePath::new("", text, "pods"), &about("version"));
        if !text.is_empty() {
            check(ResourcePath::new(text, "v1", "pods"), &about("group"));
        }
    }
    check(pods().subresource("status"), "name \"\"");
    // At these positions the words have another meaning.
    check(
        ResourcePath::new("", "v1", "watch").name("secrets"),
        "resource",
    );
    check(ResourcePath::new("", "v1", "proxy"), "resource");
    check(
        ResourcePath::new("", "v1", "status").namespace("n"),
        "resource",
    );
    let secrets = ResourcePath::new("", "v1", "namespaces").name("n");
    check(secrets.subresource("secrets"), "subresource");
}

#[test]
fn paths_are_parsed_as_kubernetes_parses_them() {
    // Group, namespace, resource, name, subresource.
    let check = |path: &str, expected: Option<[&str; 5]>| {
        let parsed = ResourcePath::parse(path);
        let found = parsed.as_ref().map(|it| {
            let or_dash = |part: &'_ Option<Cow<'static, str>>| part.clone().unwrap_or("-".into());
            let (namespace, name) = (or_dash(&it.namespace), or_dash(&it.name));
            let subresource = or_dash(&it.subresource);
            [
                it.group.clone(),
                namespace,
                it.plural.clone(),
                name,
                subresource,
            ]
        });
        assert_eq!(found, expected.map(|it| it.map(Cow::from)), "{path}");
    };
    check("/api/v1/pods", Some(["", "-", "pods", "-", "-"]));
    check("/api/v1/pods/", Some(["", "-", "pods", "-", "-"]));
    check(
        "/api/v1/namespaces",
        Some(["", "-", "namespaces", "-", "-"]),
    );
    check(
        "/api/v1/namespaces/a",
        Some(["", "-", "namespaces", "a", "-"]),
    );
    check(
        "/api/v1/namespaces/a/status",
        Some(["", "-", "namespaces", "a", "status"]),
    );
    check(
        "/api/v1/namespaces/a/pods",
        Some(["", "a", "pods", "-", "-"]),
    );
    check(
        "/api/v1/namespaces/a/pods/b/proxy/c//d",
        Some(["", "a", "pods", "b", "proxy/c//d"]),
    );
    check(
        "/apis/apps/v1/namespaces/a/d/b/scale",
        Some(["apps", "a", "d", "b", "scale"]),
    );
    check(
        "/apis/a.b/v1/roles/system%3Anode",
        Some(["a.b", "-", "roles", "system:node", "-"]),
    );
    // An empty namespace selects all namespaces; elsewhere an empty segment is kept.
    check(
        "/api/v1/namespaces//pods",
        Some(["", "-", "pods", "-", "-"]),
    );
    check("/api/v1//pods", Some(["", "-", "", "pods", "-"]));
    // An escaped slash is a slash.
    check(
        "/api/v1/namespaces/a%2Fsecrets/x",
        Some(["", "a", "secrets", "x", "-"]),
    );
    for none in [
        "",
        "/",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/version",
        "/k8s/api/v1/pods",
        "/apis//v1/pods",
    ] {
        check(none, None);
    }
}

#[test]
fn a_server_behind_a_proxy_is_found() {
    let check = |path: &str, expected: Option<&str>| {
        let found = ResourcePath::find(path);
        assert_eq!(
            found.map(|(prefix, _)| prefix).as_deref(),
            expected,
            "{path}"
        );
    };
    check("/api/v1/pods", Some(""));
    check("//api/v1/pods", Some(""));
    check("/k8s/a%20b/apis/apps/v1/deployments", Some("/k8s/a%20b"));
    check("/openapi/v3/apis/apps/v1", None);
    check("/metrics", None);
}

/// Returns a text that is often a segment, often a reserved one, and often not valid.
fn arbitrary(random: &mut Random) -> String {
    const WORDS: [&str; 20] = [
        "pods",
        "namespaces",
        "status",
        "finalize",
        "watch",
        "proxy",
        "api",
        "apis",
        "v1",
        "apps",
        "kube-system",
        "system:node",
        "secrets",
        "..",
        ".",
        "",
        "%2F",
        "a?b",
        "#",
        "é\u{0}\n",
    ];
    const CHARACTERS: [char; 16] = [
        'a', 'Z', '0', '-', '.', ':', '/', '%', '?', '#', ' ', '\\', '&', '\u{7f}', 'ü', '2',
    ];
    if random.percent(70) {
        return WORDS[random.below(WORDS.len() as u64) as usize].to_owned();
    }
    let length = random.below(6);
    (0..length)
        .map(|_| match random.percent(90) {
            true => CHARACTERS[random.below(CHARACTERS.len() as u64) as usize],
            false => char::from_u32(random.below(0x11_0000) as u32).unwrap_or('x'),
        })
        .collect()
}

#[test]
fn built_paths_parse_to_the_same_value() {
    let mut built = 0;
    for seed in 0..100_000 {
        let mut random = Random::new(seed);
        let [group, version, plural] = [(); 3].map(|()| arbitrary(&mut random));
        let mut path = ResourcePath::new(&group, &version, &plural);
        if random.percent(50) {
            path = path.namespace(arbitrary(&mut random));
        }
        if random.percent(70) {
            path = path.name(arbitrary(&mut random));
        }
        if random.percent(40) {
            path = path.subresource(arbitrary(&mut random));
        }
        let Ok(text) = path.build() else { continue };
        built += 1;
        assert_eq!(
            ResourcePath::parse(&text).as_ref(),
            Some(&path),
            "seed {seed}: {text}"
        );
        let found = ResourcePath::find(&text);
        assert_eq!(found, Some((String::new(), path)), "seed {seed}: {text}");
        let legal = |byte: u8| byte.is_ascii_graphic() && !b"?#\\\"<>".contains(&byte);
        assert!(text.bytes().all(legal), "seed {seed}: {text}");
    }
    assert!(built > 10_000, "only {built} paths were built");
}
