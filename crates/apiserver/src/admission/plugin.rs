//! The names of the admission plugins, and the order in which they run.

use std::fmt;
use std::str::FromStr;

/// An admission plugin, with its name in kube-apiserver's flag `--enable-admission-plugins`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum AdmissionPlugin {
    /// Refuses objects in a namespace that does not exist or is being deleted, and the deletion of
    /// the namespaces `default`, `kube-system` and `kube-public`.
    NamespaceLifecycle,
    /// Sets the default resources of containers, and checks the resources of Pods and claims, by
    /// the LimitRanges of the namespace.
    LimitRanger,
    /// Adds the ServiceAccount of a Pod and the volume with its token, and refuses a Pod whose
    /// ServiceAccount does not exist.
    ServiceAccount,
    /// Gives a new Node the taint `not-ready`.
    TaintNodesByCondition,
    /// Lets each container of a Pod pull its image when it starts. Off by default.
    AlwaysPullImages,
    /// Checks Pods by the Pod Security Standards that the labels of their namespace select.
    PodSecurity,
    /// Sets the priority of a Pod from its PriorityClass, and refuses a second default class.
    Priority,
    /// Lets Pods tolerate for 5 minutes that their node is not ready or cannot be reached.
    DefaultTolerationSeconds,
    /// Sets the storage class of claims that name none.
    DefaultStorageClass,
    /// Adds the finalizers that keep volumes and claims while they are in use.
    StorageObjectInUseProtection,
    /// Refuses a change of owner references by a user who may not delete the object, or who may not
    /// change the finalizers of an owner whose deletion the object blocks. Off by default.
    OwnerReferencesPermissionEnforcement,
    /// Lets a claim grow only if its StorageClass allows it.
    PersistentVolumeClaimResize,
    /// Sets the overhead and the nodes of a Pod from its RuntimeClass.
    RuntimeClass,
    /// Lets a user approve a CertificateSigningRequest only with the permission for its signer.
    CertificateApproval,
    /// Lets a user sign a CertificateSigningRequest only with the permission for its signer.
    CertificateSigning,
    /// Refuses requests for client certificates of the group `system:masters`.
    CertificateSubjectRestriction,
    /// Sets the class of Ingresses that name none.
    DefaultIngressClass,
    /// Charges the resources that an object uses to the quotas of its namespace.
    ResourceQuota,
}

impl AdmissionPlugin {
    /// All plugins, in the order in which they run.
    pub const ALL: &[Self] = &[
        Self::NamespaceLifecycle,
        Self::LimitRanger,
        Self::ServiceAccount,
        Self::TaintNodesByCondition,
        Self::AlwaysPullImages,
        Self::PodSecurity,
        Self::Priority,
        Self::DefaultTolerationSeconds,
        Self::DefaultStorageClass,
        Self::StorageObjectInUseProtection,
        Self::OwnerReferencesPermissionEnforcement,
        Self::PersistentVolumeClaimResize,
        Self::RuntimeClass,
        Self::CertificateApproval,
        Self::CertificateSigning,
        Self::CertificateSubjectRestriction,
        Self::DefaultIngressClass,
        Self::ResourceQuota,
    ];

    /// Returns the name of the plugin.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NamespaceLifecycle => "NamespaceLifecycle",
            Self::LimitRanger => "LimitRanger",
            Self::ServiceAccount => "ServiceAccount",
            Self::TaintNodesByCondition => "TaintNodesByCondition",
            Self::AlwaysPullImages => "AlwaysPullImages",
            Self::PodSecurity => "PodSecurity",
            Self::Priority => "Priority",
            Self::DefaultTolerationSeconds => "DefaultTolerationSeconds",
            Self::DefaultStorageClass => "DefaultStorageClass",
            Self::StorageObjectInUseProtection => "StorageObjectInUseProtection",
            Self::OwnerReferencesPermissionEnforcement => "OwnerReferencesPermissionEnforcement",
            Self::PersistentVolumeClaimResize => "PersistentVolumeClaimResize",
            Self::RuntimeClass => "RuntimeClass",
            Self::CertificateApproval => "CertificateApproval",
            Self::CertificateSigning => "CertificateSigning",
            Self::CertificateSubjectRestriction => "CertificateSubjectRestriction",
            Self::DefaultIngressClass => "DefaultIngressClass",
            Self::ResourceQuota => "ResourceQuota",
        }
    }

    /// Reports whether the plugin is enabled by default, as in kube-apiserver.
    #[must_use]
    pub fn is_enabled_by_default(self) -> bool {
        !matches!(
            self,
            Self::AlwaysPullImages | Self::OwnerReferencesPermissionEnforcement
        )
    }

    /// Returns the plugins that are enabled by default.
    #[must_use]
    pub fn enabled_by_default() -> Vec<Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|plugin| plugin.is_enabled_by_default())
            .collect()
    }
}

impl fmt::Display for AdmissionPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a name that is not the name of a modelled admission plugin.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there is no admission plugin {0:?} in the embedded control plane")]
pub struct UnknownAdmissionPlugin(String);

impl FromStr for AdmissionPlugin {
    type Err = UnknownAdmissionPlugin;

    fn from_str(name: &str) -> Result<Self, UnknownAdmissionPlugin> {
        let mut all = Self::ALL.iter();
        let found = all.find(|plugin| plugin.as_str() == name).copied();
        found.ok_or_else(|| UnknownAdmissionPlugin(name.to_owned()))
    }
}
