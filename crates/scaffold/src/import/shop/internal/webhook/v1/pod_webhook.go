package v1

import corev1 "k8s.io/api/core/v1"

type PodCustomValidator struct{}

func (v *PodCustomValidator) ValidateCreate(ctx context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	return nil, errors.New("no pods, please")
}
