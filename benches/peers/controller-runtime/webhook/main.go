// A manager of controller-runtime with three webhooks: one sets a default in Pods, one validates
// Pods, and one converts Robots between two versions.
//
//	webhook PORT CERTIFICATES
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

const group = "robot.opkit.dev"

// Robot is the hub: version v1.
type Robot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              RobotSpec `json:"spec"`
}

// RobotSpec is the spec of a robot.
type RobotSpec struct {
	Image    string            `json:"image"`
	Replicas int32             `json:"replicas"`
	Host     string            `json:"host"`
	Port     int32             `json:"port"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// OldRobot is the spoke: version v1alpha1.
type OldRobot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldRobotSpec `json:"spec"`
}

// OldRobotSpec is the spec of a robot in v1alpha1.
type OldRobotSpec struct {
	Image    string            `json:"image"`
	Size     int32             `json:"size"`
	Endpoint string            `json:"endpoint"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// DeepCopyObject returns a copy.
func (r *Robot) DeepCopyObject() runtime.Object {
	copied := *r
	r.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Labels = copyLabels(r.Spec.Labels)
	return &copied
}

// DeepCopyObject returns a copy.
func (r *OldRobot) DeepCopyObject() runtime.Object {
	copied := *r
	r.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Labels = copyLabels(r.Spec.Labels)
	return &copied
}

func copyLabels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	copied := make(map[string]string, len(labels))
	for name, value := range labels {
		copied[name] = value
	}
	return copied
}

func toHub(_ context.Context, old *OldRobot, robot *Robot) error {
	robot.ObjectMeta = old.ObjectMeta
	host, port, err := net.SplitHostPort(old.Spec.Endpoint)
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return err
	}
	robot.Spec = RobotSpec{
		Image: old.Spec.Image, Replicas: old.Spec.Size, Host: host, Port: int32(number), Labels: old.Spec.Labels,
	}
	return nil
}

func fromHub(_ context.Context, robot *Robot, old *OldRobot) error {
	old.ObjectMeta = robot.ObjectMeta
	old.Spec = OldRobotSpec{
		Image: robot.Spec.Image, Size: robot.Spec.Replicas,
		Endpoint: fmt.Sprintf("%s:%d", robot.Spec.Host, robot.Spec.Port), Labels: robot.Spec.Labels,
	}
	return nil
}

type pods struct{}

// Default sets the name of the service account.
func (pods) Default(_ context.Context, pod *corev1.Pod) error {
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "robots"
	}
	return nil
}

// ValidateCreate refuses images without a tag.
func (pods) ValidateCreate(_ context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	for _, container := range pod.Spec.Containers {
		if !strings.Contains(container.Image, ":") {
			return nil, fmt.Errorf("the image of %s has no tag", container.Name)
		}
	}
	return nil, nil
}

// ValidateUpdate validates the new object.
func (p pods) ValidateUpdate(ctx context.Context, _, pod *corev1.Pod) (admission.Warnings, error) {
	return p.ValidateCreate(ctx, pod)
}

// ValidateDelete allows every deletion.
func (pods) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func run() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: webhook PORT CERTIFICATES")
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	scheme := scheme.Scheme
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Robot"}, &Robot{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: "Robot"}, &OldRobot{})
	manager, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Args[2]}),
	})
	if err != nil {
		return err
	}
	// The manager runs the server only if it is asked for it.
	hooks := manager.GetWebhookServer()
	hooks.Register("/mutate--v1-pod", admission.WithDefaulter[*corev1.Pod](scheme, pods{}))
	hooks.Register("/validate--v1-pod", admission.WithValidator[*corev1.Pod](scheme, pods{}))
	registry := conversion.NewRegistry()
	build := conversion.NewHubSpokeConverter(&Robot{}, conversion.NewSpokeConverter(&OldRobot{}, fromHub, toHub))
	converter, err := build(scheme)
	if err != nil {
		return err
	}
	if err := registry.RegisterConverter(schema.GroupKind{Group: group, Kind: "Robot"}, converter); err != nil {
		return err
	}
	hooks.Register("/convert", conversion.NewWebhookHandler(scheme, registry))
	ready, _ := json.Marshal(map[string]any{"port": port})
	fmt.Println(string(ready))
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
