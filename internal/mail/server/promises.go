package server

import (
	"errors"
	"fmt"
	"slices"

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

// refuseUnkept refuses a configuration that asks for what the daemon does not do, where doing without would let through what was to be held
// back.
func (w *written) refuseUnkept() error {
	var wrong []error
	refuse := func(kind, name, setting string) {
		wrong = append(wrong, fmt.Errorf("%s %q: the daemon does not act on %s yet; remove the setting", kind, name, setting))
	}
	for name, r := range w.Objects.Receive {
		for setting, isSet := range map[string]bool{
			"milters": len(r.Milters) > 0, "spf REJECT": r.SPF == "REJECT", "dmarc ENFORCE": r.DMARC == "ENFORCE",
			"block_lists": len(r.BlockLists) > 0,
		} {
			if isSet && r.Enabled {
				refuse("receive connector", name, setting)
			}
		}
	}
	for name, c := range w.Objects.Credentials {
		if len(c.AllowedSenders) > 0 && c.Enabled {
			refuse("credential", name, "allowed_senders")
		}
	}
	slices.SortFunc(wrong, func(a, b error) int {
		if a.Error() < b.Error() {
			return -1
		}
		return 1
	})
	return errors.Join(wrong...)
}
