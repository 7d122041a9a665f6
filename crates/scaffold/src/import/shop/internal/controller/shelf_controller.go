package controller

import storev1 "example.com/shop-operator/api/v1"

type ShelfReconciler struct{}

func (r *ShelfReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

func (r *ShelfReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&storev1.Shelf{}).Owns(&storev1.Shop{}).Named("shelf").Complete(r)
}
