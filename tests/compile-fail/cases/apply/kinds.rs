//! Arguments of `apply_types!` that are not a built-in kind.
mod nothing {
    opkit::apply_types!();
}
mod unknown {
    opkit::apply_types!(Robot);
}
mod ambiguous {
    opkit::apply_types!(HorizontalPodAutoscaler);
}
mod other_version {
    opkit::apply_types!(apps::v1beta1::Deployment);
}
mod same_names {
    opkit::apply_types!(core::v1::Event, events::v1::Event);
}
