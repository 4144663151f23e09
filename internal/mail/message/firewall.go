package message

import "strings"

// The fields in which our own nodes write to each other. Other senders may not set them (header firewall, section 3.3).
const (
	OrganizationPrefix = "X-Parley-Organization-"
	ForestPrefix       = "X-Parley-Forest-"
)

// Trusted says which fields a sender may bring along.
type Trusted struct {
	Routing      bool // Received and Resent-*
	Organization bool
	Forest       bool
}

// Firewall takes out of a header what its sender may not set.
func (h Header) Firewall(trusted Trusted) Header {
	return h.Without(func(field Field) bool {
		switch {
		case hasPrefixFold(field.Name, OrganizationPrefix):
			return !trusted.Organization
		case hasPrefixFold(field.Name, ForestPrefix):
			return !trusted.Forest
		case field.Is("Received"), hasPrefixFold(field.Name, "Resent-"):
			return !trusted.Routing
		default:
			return false
		}
	})
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}
