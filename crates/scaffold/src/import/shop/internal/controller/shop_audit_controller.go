package controller

import (
	storev1alpha1 "example.com/shop-operator/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

type ShopAuditReconciler struct{}

func (r *ShopAuditReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	_ = logf.FromContext(ctx)

	return ctrl.Result{}, nil
}

func (r *ShopAuditReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&storev1alpha1.Shop{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.shops)).
		Named("shop-audit").
		Complete(r)
}
