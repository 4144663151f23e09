package server

import (
	"fmt"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// rightNames are the rights that a permission group can give. PROXY_FROM and SHADOW stand for verbs that the daemon does not know.
var rightNames = map[string]receive.Rights{
	"SUBMIT": receive.Submit, "ANY_RECIPIENT": receive.AnyRecipient, "ANY_SENDER": receive.AnySender,
	"AUTHORITATIVE_DOMAIN_SENDER": receive.AuthoritativeSender, "AUTHENTICATED_FLAG": receive.AuthenticatedFlag,
	"BYPASS_ANTI_SPAM": receive.BypassFilters, "BYPASS_SIZE_LIMIT": receive.BypassSizeLimit,
	"ACCEPT_ROUTING_HEADERS": receive.AcceptRoutingHeaders, "ACCEPT_ORGANIZATION_HEADERS": receive.AcceptOrganizationHeaders,
	"ACCEPT_FOREST_HEADERS": receive.AcceptForestHeaders, "XCLIENT": receive.XClient, "PROXY_FROM": 0, "SHADOW": 0,
}

// admit gives the peers of permission groups their rights on a connector, and nobody else any. A group with credentials is for these users.
func admit(c *receive.Connector, names []string, groups map[string]permissionGroup) error {
	c.Groups, c.Rights, c.Grants = nil, make(map[receive.Group]receive.Rights), make(map[string]receive.Rights)
	for _, name := range names {
		var rights receive.Rights
		for _, written := range groups[name].Rights {
			right, known := rightNames[written]
			if !known {
				return fmt.Errorf("permission group %q: %q is no right", name, written)
			}
			rights |= right
		}
		if users := groups[name].Credentials; len(users) > 0 {
			for _, user := range users {
				c.Grants[user] |= rights
			}
			continue
		}
		for _, principal := range groups[name].Principals {
			group := principals[principal]
			c.Groups, c.Rights[group] = append(c.Groups, group), c.Rights[group]|rights
		}
	}
	return nil
}
