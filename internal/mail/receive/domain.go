package receive

import "strings"

// matchesDomain reports whether a domain is the one of a pattern, or with *. one of its subdomains.
func matchesDomain(pattern, domain string) bool {
	if parent, isWild := strings.CutPrefix(pattern, "*"); isWild && strings.HasPrefix(parent, ".") {
		return len(domain) > len(parent) && strings.EqualFold(domain[len(domain)-len(parent):], parent)
	}
	return strings.EqualFold(pattern, domain)
}
