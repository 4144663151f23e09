package authenticity

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// lookupPolicy asks for the DMARC record of a name, and gives it as the library reads it. Other records of the name are passed over, and
// several that are DMARC's count as none (RFC 7489, section 6.6.3).
func (v *Verifier) lookupPolicy(ctx context.Context, name string) ([]string, error) {
	all, err := v.Resolver.LookupTXT(ctx, name)
	if err != nil {
		return nil, err
	}
	var records []string
	for _, text := range all {
		if version, _, _ := strings.Cut(text, ";"); strings.Join(strings.Fields(version), "") == "v=DMARC1" {
			records = append(records, tolerant(text))
		}
	}
	if len(records) != 1 {
		return nil, nil
	}
	return records, nil
}

// policyValues are the tags that count here, with their values. Of pct it is a number.
var policyValues = map[string][]string{
	"p": {"none", "quarantine", "reject"}, "sp": {"none", "quarantine", "reject"}, "adkim": {"r", "s"}, "aspf": {"r", "s"}, "pct": nil,
}

// tolerant leaves out of a record what is wrong in it, so that its defaults count, and what does not matter here: a slip in a tag about
// reports must not switch the policy off (RFC 7489, section 6.3). A policy that is wrong stays.
func tolerant(record string) string {
	kept := []string{"v=DMARC1"}
	for i, tag := range strings.Split(record, ";") {
		name, value, _ := strings.Cut(tag, "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(value))
		values, isKnown := policyValues[name]
		isRight := slices.Contains(values, value)
		if name == "pct" {
			percent, err := strconv.Atoi(value)
			isRight = err == nil && percent >= 0 && percent <= 100
		}
		if i > 0 && isKnown && (isRight || name == "p") {
			kept = append(kept, name+"="+value)
		}
	}
	return strings.Join(kept, "; ")
}
