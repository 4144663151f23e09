package receive

// Rights are the rights of a peer on a connector (specification, section 3.3).
type Rights uint32

// The rights, each with what is refused without it.
const (
	Submit                    Rights = 1 << iota // MAIL FROM
	AnyRecipient                                 // recipients outside of the accepted domains: relay
	AnySender                                    // senders outside of the accepted domains
	AuthoritativeSender                          // senders in the accepted domains
	AuthenticatedFlag                            // the message counts as one from inside
	BypassFilters                                // filters and checks of authenticity are skipped
	BypassSizeLimit                              // the size limit is skipped
	AcceptRoutingHeaders                         // Received and Resent-* are kept
	AcceptOrganizationHeaders                    // our header fields are kept
	AcceptForestHeaders
	XClient // XCLIENT: to speak for another host
)

// AllRights are those of a peer server of ours.
const AllRights = Submit | AnyRecipient | AnySender | AuthoritativeSender | AuthenticatedFlag | BypassFilters | BypassSizeLimit |
	AcceptRoutingHeaders | AcceptOrganizationHeaders | AcceptForestHeaders | XClient

// Group is a set of peers who have rights in common.
type Group string

// The groups of the specification.
const (
	Anonymous         Group = "anonymous"
	Users             Group = "users"
	PeerServers       Group = "peer servers"
	ExternallySecured Group = "externally secured"
	Partners          Group = "partners"
)

// groupRights are the rights of each group where a connector admits it. Users send under our own domains: they could send nothing
// otherwise.
var groupRights = map[Group]Rights{
	Anonymous:         Submit | AnySender | AuthoritativeSender | AcceptRoutingHeaders,
	Users:             Submit | AuthoritativeSender | AnyRecipient | BypassFilters | AcceptRoutingHeaders | AuthenticatedFlag,
	PeerServers:       AllRights,
	ExternallySecured: AllRights &^ (AcceptOrganizationHeaders | AcceptForestHeaders | XClient),
	Partners:          Submit | AnySender | AcceptRoutingHeaders,
}

// Has reports whether all of some rights are among them.
func (r Rights) Has(needed Rights) bool { return r&needed == needed }

// rightsOf gives the rights of a peer of these groups on a connector: nothing for a group that the connector does not admit.
func (c *Connector) rightsOf(groups []Group, user string) (rights Rights) {
	for _, group := range groups {
		for _, admitted := range c.Groups {
			if admitted != group {
				continue
			}
			if own, isSet := c.Rights[group]; isSet {
				rights |= own
			} else {
				rights |= groupRights[group]
			}
		}
	}
	if user != "" {
		rights |= c.Grants[user]
	}
	return rights
}
