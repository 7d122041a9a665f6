use super::*;

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the price list is gone: {0}")]
    Quoted(#[source] kube::Error),
    #[error("the price list is gone")]
    Plain(#[source] kube::Error),
}

fn refusal() -> kube::Error {
    let mut status = kube::core::Status::failure("configmaps \"prices\" not found", "NotFound");
    status.code = 404;
    kube::Error::Api(Box::new(status))
}

#[test]
fn a_rejection_in_a_kube_error_is_printed_once() {
    let check = |error: &(dyn std::error::Error + 'static), expected: &str| {
        assert_eq!(one_line(error), expected);
    };
    let message = "configmaps \"prices\" not found: NotFound";
    check(&refusal(), message);
    let with_context = format!("the price list is gone: {message}");
    check(&Failure::Quoted(refusal()), &with_context);
    check(&Failure::Plain(refusal()), &with_context);
}
