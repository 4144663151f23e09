package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var retryNames = []string{"first", "factor", "longest", "jitter", "attempts", "losses"}

const retrySettings = "first=1s,factor=2,longest=10m,jitter=0.1,attempts=20,losses=60"

// retryPolicy makes the policy that the statements take, an object of JSON, of what the flag says: "none", or settings and values. Which
// values are allowed the database says.
func retryPolicy(said string) (string, error) {
	if said == "none" {
		return "false", nil
	}
	policy := map[string]any{}
	for part := range strings.SplitSeq(said, ",") {
		name, value, hasValue := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case name == "" && !hasValue:
		case !hasValue || !slices.Contains(retryNames, name):
			return "", fmt.Errorf("--retry %q: give none, or settings such as %s", said, retrySettings)
		default:
			policy[name] = value
			if number, err := strconv.ParseFloat(value, 64); err == nil {
				policy[name] = number
			}
		}
	}
	written, err := json.Marshal(policy)
	if err != nil {
		return "", fmt.Errorf("--retry %q: %w", said, err)
	}
	return string(written), nil
}
