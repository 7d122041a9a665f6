package v1

import storev1 "example.com/shop-operator/api/v1"

// +kubebuilder:webhook:path=/mutate-store-example-com-v1-shop,mutating=true,failurePolicy=ignore,sideEffects=None,groups=store.example.com,resources=shops,verbs=create;update,versions=v1,name=mshop-v1.kb.io,admissionReviewVersions=v1

type ShopCustomDefaulter struct{}

func (d *ShopCustomDefaulter) Default(ctx context.Context, shop *storev1.Shop) error {
	if shop.Spec.Size == "" {
		shop.Spec.Size = "Small"
	}
	return nil
}

// +kubebuilder:webhook:path=/check-shops,mutating=false,failurePolicy=fail,timeoutSeconds=5,sideEffects=None,groups=store.example.com,resources=shops,verbs=create;update;delete,versions=v1,name=vshop-v1.kb.io,admissionReviewVersions=v1

type ShopCustomValidator struct{}

func (v *ShopCustomValidator) ValidateCreate(ctx context.Context, shop *storev1.Shop) (admission.Warnings, error) {
	return nil, v.validate(shop)
}

func (v *ShopCustomValidator) ValidateUpdate(ctx context.Context, old, shop *storev1.Shop) (admission.Warnings, error) {
	return nil, v.validate(shop)
}

func (v *ShopCustomValidator) ValidateDelete(ctx context.Context, shop *storev1.Shop) (admission.Warnings, error) {
	return nil, nil
}

func (v *ShopCustomValidator) validate(shop *storev1.Shop) error {
	return nil
}

func SetupShopWebhookWithManager(mgr ctrl.Manager) error {
	return nil
}
