use super::*;
use crate::golden::check_format;
use crate::{Tree, render};

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|it| (*it).to_owned()).collect()
}

#[test]
fn rules_are_formatted_whatever_their_length() {
    let all = [
        "create", "delete", "get", "list", "patch", "update", "watch",
    ];
    let long = [
        "pods",
        "persistentvolumeclaims",
        "configmaps",
        "secrets",
        "serviceaccounts",
    ];
    let mut links = Vec::new();
    for resources in [&["pods"][..], &["nodes", "namespaces"], &long] {
        for verbs in [
            &["get"][..],
            &["get", "list", "watch"],
            &["get", "list", "patch", "watch"],
            &all,
        ] {
            for names in [&[][..], &["one"]] {
                for group in ["", "rbac.authorization.k8s.io"] {
                    for is_cluster in [false, true] {
                        let grant = Grant {
                            group: group.to_owned(),
                            verbs: texts(verbs),
                            names: texts(names),
                            is_cluster,
                        };
                        links.push(link(&grant, &texts(resources)));
                    }
                }
            }
        }
    }
    let chain = render::chain("Operator::new(\"a\")", &links, 4);
    let mut tree = Tree::default();
    tree.insert(
        "src/lib.rs",
        format!("fn operator() -> Operator {{\n    {chain}\n}}\n"),
    );
    check_format(&tree);
}
