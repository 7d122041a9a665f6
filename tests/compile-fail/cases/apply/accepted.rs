//! All methods are used without a warning, and in a module of their own.
mod web {
    opkit::apply_types!(Ingress, networking::v1::IngressClass);
}

pub fn class() -> impl opkit::client::ApplyConfiguration {
    web::IngressClassApply::new("nginx").label("a", "b")
}
