package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	storev1 "example.com/shop-operator/api/v1"
	"k8s.io/api/core/v1"
)

type ShopReconciler struct{}

// Reconcile opens the shop, or closes it.
func (r *ShopReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &storev1.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // "}"
	}

	return ctrl.Result{}, r.openAt(shop.Spec.Opens)
}

func (r *ShopReconciler) openAt(hour int32) error {
	return nil
}

func (r *ShopReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&storev1.Shop{}).
		Named("shop").
		// The price list.
		Owns(&v1.ConfigMap{}).
		Complete(r)
}
