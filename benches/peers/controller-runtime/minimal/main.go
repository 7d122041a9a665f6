// The smallest operator of controller-runtime, with its builder: metrics, probes and leader
// election are in the program, and the election is off as by default. It prints a line at its first reconcile.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		LeaderElection:         os.Getenv("LEADER_ELECT") != "",
		LeaderElectionID:       "minimal.opkit.dev",
		HealthProbeBindAddress: "127.0.0.1:0",
		Metrics:                server.Options{BindAddress: "127.0.0.1:0"},
	})
	check(err)
	check(ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(context.Context, ctrl.Request) (ctrl.Result, error) {
			fmt.Println("reconciled")
			return ctrl.Result{}, nil
		},
	)))
	check(manager.Start(ctrl.SetupSignalHandler()))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
