package v1alpha1

import (
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	storev1 "example.com/shop-operator/api/v1"
)

// ConvertTo converts to the hub.
func (src *Shop) ConvertTo(dstRaw conversion.Hub) error {
	dst := dstRaw.(*storev1.Shop)
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec.Size = "Small"
	return nil
}

// ConvertFrom converts from the hub.
func (dst *Shop) ConvertFrom(srcRaw conversion.Hub) error {
	return nil
}
