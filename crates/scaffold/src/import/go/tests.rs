use super::*;

const SOURCE: &str = r#"package controller

import "fmt"
import (
	"context"
	// "not/imported"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// func Commented() {
var text = `
func InAString() {
`

func helper(x interface{}) interface{} { return "}" }

func (r *RobotReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	open := '{' // }
	/* } */
	if true {
		fmt.Println("}\"}", `}`)
	}
	return ctrl.Result{}, nil
}

func (Generic[T]) Name() string { return "n" }
"#;

#[test]
fn functions_have_their_receivers_bodies_and_lines() {
    let found = functions(SOURCE);
    let names: Vec<_> = found
        .iter()
        .map(|it| (it.receiver, it.name, it.line))
        .collect();
    assert_eq!(
        names,
        [
            (None, "helper", 17),
            (Some("RobotReconciler"), "Reconcile", 19),
            (Some("Generic"), "Name", 28),
        ]
    );
    assert_eq!(found[0].body, " return \"}\" ");
    assert!(
        found[1]
            .body
            .trim_end()
            .ends_with("return ctrl.Result{}, nil")
    );
}

#[test]
fn imports_have_the_names_of_their_packages() {
    let found = imports(SOURCE);
    let expected = [
        ("appsv1", "k8s.io/api/apps/v1"),
        ("context", "context"),
        ("ctrl", "sigs.k8s.io/controller-runtime"),
        ("fmt", "fmt"),
        ("v1", "k8s.io/api/core/v1"),
    ];
    assert_eq!(found, BTreeMap::from(expected));
}

#[test]
fn calls_in_arguments_are_not_calls_of_the_chain() {
    let body = r#"
	return ctrl.NewControllerManagedBy(mgr).
		For(&robotv1.Robot{}). // Owns(&x.Y{})
		Owns(&appsv1.Deployment{}, builder.WithPredicates(p)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.find)).
		Named("robot").
		Complete(r)
"#;
    let found = calls(body);
    let names: Vec<_> = found.iter().map(|it| it.name).collect();
    let expected = [
        "NewControllerManagedBy",
        "For",
        "Owns",
        "Watches",
        "Named",
        "Complete",
    ];
    assert_eq!(names, expected);
    assert_eq!(type_of(found[1].arguments), Some(("robotv1", "Robot")));
    assert_eq!(type_of(found[2].arguments), Some(("appsv1", "Deployment")));
    assert_eq!(string(found[4].arguments), Some("robot"));
    assert_eq!(type_of("&Robot{}"), Some(("", "Robot")));
    assert_eq!(type_of("r"), None);
    assert_eq!(type_of("&x.Y{Z: 1}"), None);
}

#[test]
fn a_body_of_kubebuilder_is_told_from_one_with_code() {
    let scaffold =
        "\n\t_ = logf.FromContext(ctx)\n\n\t// your logic here\n\n\treturn ctrl.Result{}, nil\n";
    assert!(is_scaffold(scaffold));
    assert!(is_scaffold(
        "\n\trobotlog.Info(\"Defaulting\", \"name\", obj.GetName())\n\treturn nil\n"
    ));
    assert!(!is_scaffold("\n\trobot.Spec.Size = 1\n\treturn nil\n"));
}

#[test]
fn a_comment_keeps_the_lines_of_go() {
    let text = "\n\tif a {\n\t\tb()\n\t}\n\n\treturn nil\n";
    let expected =
        "    //     if a {\n    //         b()\n    //     }\n    //\n    //     return nil\n";
    assert_eq!(comment(text, "    "), expected);
    assert_eq!(comment("\n\n", ""), "");
}
