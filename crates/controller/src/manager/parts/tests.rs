use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};

use super::*;
use crate::reads::Watched;

fn source(watched: Watched, role: Role) -> SourceSpec {
    SourceSpec {
        watched,
        role,
        maps: Vec::new(),
        predicate: None,
    }
}

fn maps() -> Watched {
    Watched::typed::<ConfigMap>(false)
}

fn secrets() -> Watched {
    Watched::typed::<Secret>(false)
}

#[test]
fn by_uid_an_informer_reads_what_all_roles_of_its_kind_need() {
    let check = |sources: &[(Watched, Role)], expected: &[Option<Selected>]| {
        let sources = sources.iter().cloned();
        let sources: Vec<_> = sources
            .map(|(watched, role)| source(watched, role))
            .collect();
        assert_eq!(selected(ShardKey::Uid, &sources), expected);
    };
    let (primary, owner) = (Some(Selected::Object(ShardKey::Uid)), Some(Selected::Owner));
    check(
        &[
            (maps(), Role::Primary),
            (secrets(), Role::Owned),
            (Watched::typed::<Node>(false), Role::Referenced),
        ],
        &[primary, owner, None],
    );
    check(
        &[
            (maps(), Role::Primary),
            (secrets(), Role::CreatedOnce),
            (secrets(), Role::Owned),
        ],
        &[primary, owner, owner],
    );
    // One informer reads whole objects, another one reads metadata.
    let metadata = Watched::typed::<kube::core::PartialObjectMeta<Secret>>(true);
    check(
        &[
            (maps(), Role::Primary),
            (metadata, Role::Owned),
            (secrets(), Role::Watched),
        ],
        &[primary, owner, None],
    );
    // Kinds in several roles.
    for role in [Role::Watched, Role::Referenced, Role::Unowned] {
        check(
            &[
                (maps(), Role::Primary),
                (secrets(), Role::Owned),
                (secrets(), role),
            ],
            &[primary, None, None],
        );
    }
    check(
        &[(maps(), Role::Primary), (maps(), Role::Owned)],
        &[None, None],
    );
}

#[test]
fn by_namespace_all_namespaced_kinds_are_selected() {
    let sources = [
        source(maps(), Role::Primary),
        source(secrets(), Role::Unowned),
        source(Watched::typed::<Node>(false), Role::Watched),
    ];
    let by = Some(Selected::Object(ShardKey::Namespace));
    assert_eq!(selected(ShardKey::Namespace, &sources), [by, by, None]);
}
