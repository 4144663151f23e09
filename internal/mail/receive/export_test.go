package receive

// RightsOf gives the rights of a peer of these groups on a connector.
func RightsOf(c *Connector, groups []Group, user string) Rights { return c.rightsOf(groups, user) }

// ReadProxyHeader reads the header of a proxy.
var ReadProxyHeader = readProxyHeader
