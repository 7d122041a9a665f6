// +groupName=torture.opkit.dev
// +versionName=v1
package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Torture has every argument that reaches a CRD.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tortures,singular=torture,shortName=to;tt,categories=test;pain,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=".spec.replicas",description="Number of replicas.",format=int32,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:selectablefield:JSONPath=".spec.image"
// +kubebuilder:storageversion
// +kubebuilder:deprecatedversion:warning="torture.opkit.dev/v1 ends: use v2"
// +kubebuilder:metadata:annotations="example.com/note=a b",labels="example.com/team=pain"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() < 50",message="the name is too long"
type Torture struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TortureSpec   `json:"spec"`
	Status            TortureStatus `json:"status,omitempty"`
}

// TortureSpec is the desired state.
// +kubebuilder:validation:XValidation:rule="!has(self.first) || self.first != self.image",message="first is the image",reason=FieldValueInvalid,fieldPath=".first"
// +kubebuilder:validation:AtMostOneOf=first;second
// +kubebuilder:validation:ExactlyOneOf=left;right
// +kubebuilder:validation:AtLeastOneOf=second;third
type TortureSpec struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-z0-9./:@_-]+$`
	// +kubebuilder:title="The image"
	// +required
	Image string `json:"image"`
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Replicas int32 `json:"replicas"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:validation:ExclusiveMaximum=true
	// +k8s:optional
	Open *int32 `json:"open,omitempty"`
	// +kubebuilder:validation:MultipleOf=5
	// +kubebuilder:validation:Optional
	Step *int64 `json:"step,omitempty"`
	// +kubebuilder:validation:Minimum=0.5
	// +kubebuilder:validation:Maximum=1.5
	Ratio *float64 `json:"ratio,omitempty"`
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=4
	// +mapType=atomic
	Labels map[string]string `json:"labels,omitempty"`
	Notes  map[string]Note   `json:"notes,omitempty"`
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]+$`
	// +kubebuilder:validation:items:Format=hostname
	// +kubebuilder:validation:items:Enum=a;b
	// +kubebuilder:validation:items:XValidation:rule="self != 'c'",message="c is not a name"
	Names []string `json:"names,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:ExclusiveMinimum=true
	// +kubebuilder:validation:items:Maximum=9
	// +kubebuilder:validation:items:ExclusiveMaximum=true
	// +kubebuilder:validation:items:MultipleOf=2
	Numbers []int64 `json:"numbers,omitempty"`
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=9
	Digits []int32 `json:"digits,omitempty"`
	// +kubebuilder:validation:items:MinProperties=1
	// +kubebuilder:validation:items:MaxProperties=3
	Maps []map[string]string `json:"maps,omitempty"`
	// +kubebuilder:validation:items:MinItems=1
	// +kubebuilder:validation:items:MaxItems=3
	Matrix [][]string `json:"matrix,omitempty"`
	// +kubebuilder:validation:items:Type=object
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Anything []runtime.RawExtension `json:"anything,omitempty"`
	// +kubebuilder:validation:items:XEmbeddedResource
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Manifests []runtime.RawExtension `json:"manifests,omitempty"`
	Ports     []intstr.IntOrString   `json:"ports,omitempty"`
	Color     Color                  `json:"color"`
	// +default="Green"
	Shade Color `json:"shade,omitempty"`
	// +kubebuilder:validation:Enum=1;2;3
	Level *int32 `json:"level,omitempty"`
	// +kubebuilder:validation:Format=date-time
	Built *string `json:"built,omitempty"`
	// +kubebuilder:validation:Format=byte
	Custom *Custom `json:"custom,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Kept *Part `json:"kept,omitempty"`
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	Manifest *runtime.RawExtension `json:"manifest,omitempty"`
	Port     *intstr.IntOrString   `json:"port,omitempty"`
	Flexible *intstr.IntOrString   `json:"flexible,omitempty"`
	Size     *resource.Quantity    `json:"size,omitempty"`
	// +kubebuilder:validation:XValidation:rule="!oldSelf.hasValue() || self >= oldSelf.value()",messageExpression="self > 9 ? 'may not shrink' : 'must grow'",reason=FieldValueForbidden,optionalOldSelf=true
	Grows *int32 `json:"grows,omitempty"`
	// +nullable
	Absent *string `json:"absent,omitempty"`
	// +kubebuilder:default=x
	// +kubebuilder:example=y
	Letter string `json:"letter,omitempty"`
	// +kubebuilder:default={a,b}
	Letters []string `json:"letters,omitempty"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Schemaless *Free `json:"schemaless,omitempty"`
	// +k8s:immutable
	// +k8s:required
	Fixed  string  `json:"fixed"`
	First  *string `json:"first,omitempty"`
	Second *string `json:"second,omitempty"`
	Third  *string `json:"third,omitempty"`
	Left   *string `json:"left,omitempty"`
	Right  *string `json:"right,omitempty"`
	// +kubebuilder:title=Documented
	// +kubebuilder:externalDocs:url="https://example.com",description="More."
	Documented *string `json:"documented,omitempty"`
	// +listType=map
	// +listMapKey=name
	// +listMapKey=size
	// +kubebuilder:validation:MaxItems=16
	Parts []Part `json:"parts,omitempty"`
	// +structType=atomic
	Part *Part `json:"part,omitempty"`
	Name *Name `json:"name,omitempty"`
	// +kubebuilder:validation:Required
	Hosts  []Name  `json:"hosts"`
	Power  *Power  `json:"power,omitempty"`
	Source *Source `json:"source,omitempty"`
	Kind   *string `json:"kind,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	Small *int32 `json:"small,omitempty"`
	On    bool   `json:"on"`
}

// Note is the value of a map.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
type Note string

// Name has its limits on the type.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:Pattern=`^[a-z]+$`
// +kubebuilder:title="A name"
type Name string

// Color is an enum.
// +k8s:enum
type Color string

const (
	Red   Color = "Red"
	Green Color = "Green"
)

// Custom is a type with an encoding of its own.
// +kubebuilder:validation:Type=string
type Custom struct{}

// Free has no schema.
type Free struct{}

// Part of the torture.
// +structType=granular
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=5
// +kubebuilder:externalDocs:url="https://example.com/part"
type Part struct {
	Name string `json:"name"`
	// +kubebuilder:default=1
	Size int32 `json:"size,omitempty"`
}

// Loose keeps fields that it does not know.
// +kubebuilder:pruning:PreserveUnknownFields
type Loose struct {
	Name *string `json:"name,omitempty"`
}

// Power is a union with a discriminator.
// +kubebuilder:validation:XValidation:rule="(self.type == 'Battery') == has(self.battery)",message="battery must be set if type is Battery, and only then",fieldPath=".battery"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Solar') == has(self.solar)",message="solar must be set if type is Solar, and only then",fieldPath=".solar"
type Power struct {
	// +kubebuilder:validation:Enum=Mains;Battery;Solar
	Type    string `json:"type"`
	Battery *Part  `json:"battery,omitempty"`
	Solar   *Loose `json:"solar,omitempty"`
}

// Source is exactly one of its fields.
// +kubebuilder:validation:ExactlyOneOf=git;inline
type Source struct {
	Git    *Part `json:"git,omitempty"`
	Inline *Name `json:"inline,omitempty"`
}

// TortureStatus is the observed state.
type TortureStatus struct {
	Replicas           int32   `json:"replicas,omitempty"`
	Selector           *string `json:"selector,omitempty"`
	ObservedGeneration *int64  `json:"observedGeneration,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Retired is a cluster-scoped kind.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=retireds,scope=Cluster
// +kubebuilder:deprecatedversion
type Retired struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              RetiredSpec `json:"spec"`
}

// RetiredSpec is the desired state.
type RetiredSpec struct {
	Name string `json:"name"`
}
