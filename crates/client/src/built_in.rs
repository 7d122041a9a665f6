//! Registration of kinds in a scheme: Kubernetes' own kinds, and the kinds of a module.

use opkit_apimachinery::scheme::{Scheme, SchemeError};

use crate::{Kind, Object};

/// Registers kinds, given by the module of k8s-openapi that declares them.
macro_rules! add {
    ($scheme:ident: $($($module:ident)::+ { $($kind:ident),+ })+) => {
        $({
            use k8s_openapi::$($module::)+{$($kind),+};
            $(add::<$kind>($scheme)?;)+
        })+
    };
}

/// Registers every built-in kind that k8s-openapi has for the chosen version of Kubernetes, as
/// client-go's `scheme.AddToScheme` does.
///
/// A crate that calls this function compiles the decoders of all built-in kinds, which takes some
/// seconds. The function is meant for tests; operators rarely need it.
///
/// # Errors
/// If the scheme has another type for one of the kinds.
///
/// # Examples
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use opkit_apimachinery::scheme::Scheme;
///
/// let mut scheme = Scheme::new();
/// opkit_client::add_built_in_kinds(&mut scheme)?;
/// let yaml = b"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}";
/// let web: Deployment = scheme.decode_as(yaml)?;
/// assert_eq!(web.metadata.name.as_deref(), Some("web"));
/// # Ok::<(), opkit_apimachinery::scheme::SchemeError>(())
/// ```
// Inlined, so that it is compiled where it is called and not in this crate.
#[inline]
pub fn add_built_in_kinds(scheme: &mut Scheme) -> Result<(), SchemeError> {
    add! { scheme:
        api::admissionregistration::v1 {
            MutatingWebhookConfiguration, ValidatingAdmissionPolicy,
            ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration
        }
        api::admissionregistration::v1alpha1 {
            MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding
        }
        api::apiserverinternal::v1alpha1 { StorageVersion }
        api::apps::v1 { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet }
        api::authentication::v1 { SelfSubjectReview, TokenRequest, TokenReview }
        api::authorization::v1 {
            LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview,
            SubjectAccessReview
        }
        api::autoscaling::v1 { HorizontalPodAutoscaler, Scale }
        api::autoscaling::v2 { HorizontalPodAutoscaler }
        api::batch::v1 { CronJob, Job }
        api::certificates::v1 { CertificateSigningRequest }
        api::certificates::v1beta1 { ClusterTrustBundle }
        api::coordination::v1 { Lease }
        api::coordination::v1alpha2 { LeaseCandidate }
        api::coordination::v1beta1 { LeaseCandidate }
        api::core::v1 {
            Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node,
            PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController,
            ResourceQuota, Secret, Service, ServiceAccount
        }
        api::discovery::v1 { EndpointSlice }
        api::events::v1 { Event }
        api::flowcontrol::v1 { FlowSchema, PriorityLevelConfiguration }
        api::networking::v1 { IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR }
        api::node::v1 { RuntimeClass }
        api::policy::v1 { Eviction, PodDisruptionBudget }
        api::rbac::v1 { ClusterRole, ClusterRoleBinding, Role, RoleBinding }
        api::resource::v1alpha3 { DeviceTaintRule }
        api::resource::v1beta1 { DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice }
        api::resource::v1beta2 { DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice }
        api::scheduling::v1 { PriorityClass }
        api::storage::v1 { CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment }
        apiextensions_apiserver::pkg::apis::apiextensions::v1 { CustomResourceDefinition }
        kube_aggregator::pkg::apis::apiregistration::v1 { APIService }
    }
    k8s_openapi::k8s_if_le_1_36! {
        add! { scheme:
            api::certificates::v1alpha1 { ClusterTrustBundle }
            api::networking::v1beta1 { IPAddress, ServiceCIDR }
            api::storage::v1beta1 { VolumeAttributesClass }
        }
    }
    k8s_openapi::k8s_if_le_1_34! {
        add! { scheme:
            api::storage::v1alpha1 { VolumeAttributesClass }
            api::storagemigration::v1alpha1 { StorageVersionMigration }
        }
    }
    k8s_openapi::k8s_if_1_33! {
        add! { scheme:
            api::admissionregistration::v1beta1 {
                ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
            }
            api::resource::v1alpha3 {
                DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
            }
        }
    }
    k8s_openapi::k8s_if_1_34! {
        add! { scheme:
            api::certificates::v1alpha1 { PodCertificateRequest }
        }
    }
    k8s_openapi::k8s_if_1_35! {
        add! { scheme:
            api::scheduling::v1alpha1 { Workload }
        }
    }
    k8s_openapi::k8s_if_1_36! {
        add! { scheme:
            api::scheduling::v1alpha2 { PodGroup, Workload }
        }
    }
    k8s_openapi::k8s_if_ge_1_34! {
        add! { scheme:
            api::admissionregistration::v1beta1 {
                MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding
            }
            api::resource::v1 { DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice }
            api::storage::v1 { VolumeAttributesClass }
        }
    }
    k8s_openapi::k8s_if_ge_1_35! {
        add! { scheme:
            api::certificates::v1beta1 { PodCertificateRequest }
            api::storagemigration::v1beta1 { StorageVersionMigration }
        }
    }
    k8s_openapi::k8s_if_ge_1_36! {
        add! { scheme:
            api::admissionregistration::v1 {
                MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding
            }
            api::resource::v1alpha3 { ResourcePoolStatusRequest }
            api::resource::v1beta2 { DeviceTaintRule }
        }
    }
    k8s_openapi::k8s_if_ge_1_37! {
        add! { scheme:
            api::certificates::v1 { ClusterTrustBundle, PodCertificateRequest }
            api::lifecycle::v1alpha1 { Eviction, EvictionRequest }
            api::resource::v1 { DeviceTaintRule }
            api::scheduling::v1alpha3 { CompositePodGroup, PodGroup, Workload }
            api::scheduling::v1beta1 { PodGroup, Workload }
            api::storagemigration::v1 { StorageVersionMigration }
        }
    }
    Ok(())
}

/// Kinds that [`add_kinds`] registers: a tuple of their types.
pub trait Kinds {
    /// Registers the kinds.
    ///
    /// # Errors
    /// If the scheme has another type for one of the kinds.
    fn add_to(scheme: &mut Scheme) -> Result<(), SchemeError>;
}

macro_rules! kinds {
    ($($kind:ident)+) => {
        impl<$($kind: Object),+> Kinds for ($($kind,)+) {
            fn add_to(scheme: &mut Scheme) -> Result<(), SchemeError> {
                $(add::<$kind>(scheme)?;)+
                Ok(())
            }
        }
    };
}

kinds!(A);
kinds!(A B);
kinds!(A B C);
kinds!(A B C D);
kinds!(A B C D E);
kinds!(A B C D E F);
kinds!(A B C D E F G);
kinds!(A B C D E F G H);
kinds!(A B C D E F G H I);
kinds!(A B C D E F G H I J);
kinds!(A B C D E F G H I J K);
kinds!(A B C D E F G H I J K L);

/// Registers the kinds of a module, given as a tuple of their types, as the `AddToScheme` of a Go
/// package does.
///
/// # Errors
/// If the scheme has another type for one of the kinds.
///
/// # Examples
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_apimachinery::scheme::Scheme;
///
/// let mut scheme = Scheme::new();
/// opkit_client::add_kinds::<(ConfigMap, Deployment)>(&mut scheme)?;
/// let yaml = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}";
/// let map: ConfigMap = scheme.decode_as(yaml)?;
/// assert_eq!(map.metadata.name.as_deref(), Some("web"));
/// # Ok::<(), opkit_apimachinery::scheme::SchemeError>(())
/// ```
pub fn add_kinds<K: Kinds>(scheme: &mut Scheme) -> Result<(), SchemeError> {
    K::add_to(scheme)
}

#[inline]
fn add<K: Object>(scheme: &mut Scheme) -> Result<(), SchemeError> {
    scheme.register::<K>(Kind::of::<K>().group_version_kind())
}
