// Command crd-upgrades prints the changes of CRDs that OLM v1 refuses.
//
// It reads a JSON list of {"name", "old", "new"} from standard input, and prints a JSON object: for
// each name, the sorted refused changes as "VERSION FIELD RULE". The settings are those of OLM v1's
// preflight check (operator-controller, package crdupgradesafety): conversion webhooks are trusted,
// unhandled changes are errors, descriptions are not checked, and enum values may be added.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"
)

type upgrade struct {
	Name string         `json:"name"`
	Old  map[string]any `json:"old"`
	New  map[string]any `json:"new"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var upgrades []upgrade
	if err := json.NewDecoder(os.Stdin).Decode(&upgrades); err != nil {
		return fmt.Errorf("reading the upgrades: %w", err)
	}
	checker, err := runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{
				Name:          "enum",
				Enforcement:   config.EnforcementPolicyError,
				Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow},
			},
		},
	}, runner.DefaultRegistry())
	if err != nil {
		return fmt.Errorf("creating the checks: %w", err)
	}
	refused := map[string][]string{}
	for _, upgrade := range upgrades {
		before, err := decode(upgrade.Old)
		if err != nil {
			return fmt.Errorf("%s: old CRD: %w", upgrade.Name, err)
		}
		after, err := decode(upgrade.New)
		if err != nil {
			return fmt.Errorf("%s: new CRD: %w", upgrade.Name, err)
		}
		results := checker.Run(before, after)
		found := ofCRD(results.CRDValidation)
		found = append(found, ofVersions(results.SameVersionValidation)...)
		found = append(found, ofVersions(results.ServedVersionValidation)...)
		slices.Sort(found)
		refused[upgrade.Name] = slices.Compact(found)
	}
	return json.NewEncoder(os.Stdout).Encode(refused)
}

func decode(document map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(document, crd)
	return crd, err
}

// ofCRD returns the refused changes of the CRD as a whole. A removed field is part of the message.
func ofCRD(results []validations.ComparisonResult) []string {
	found := []string{}
	for _, result := range results {
		for _, message := range result.Errors {
			version, field := "-", "-"
			if result.Name == "existingFieldRemoval" {
				_, path, _ := strings.Cut(message, " : ")
				version, field, _ = strings.Cut(path, ".^")
			}
			found = append(found, fmt.Sprintf("%s %s %s", version, field, result.Name))
		}
	}
	return found
}

func ofVersions(results []version.VersionedPropertyComparisonResult) []string {
	found := []string{}
	for _, versioned := range results {
		name := strings.ReplaceAll(versioned.Version, " ", "_")
		for _, property := range versioned.PropertyComparisons {
			field := strings.TrimPrefix(property.Property, "^")
			if field == "" {
				field = "-"
			}
			for _, result := range property.ComparisonResults {
				if len(result.Errors) > 0 {
					found = append(found, fmt.Sprintf("%s %s %s", name, field, result.Name))
				}
			}
		}
	}
	return found
}
