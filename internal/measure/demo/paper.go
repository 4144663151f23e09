package demo

// The paper: M. Thomassy, "Service Broker: Performance and Scalability Techniques", 2009.
const (
	paperName    = "the 2009 paper “Service Broker: Performance and Scalability Techniques”"
	paperMachine = "SQL Server 2008 and 2005; each server with 8 cores of 2.8 GHz, 64 GB and a SAN of 240 disks with 16 GB of cache; " +
		"senders on up to three further servers; up to 50 client threads a server, one message a transaction"
	differentMachines = "The machines differ by more than fifteen years, the paper's initiators and target were servers of their " +
		"own that spoke over a network with encryption, and here senders, broker and readers share one machine and one database. " +
		"So the figures say what to expect of each, not which is better."
	differentServers = "The machines differ by more than fifteen years, and the paper's initiators and target were machines of their " +
		"own. Here all the servers, all the daemons and all the senders share one machine, so a further initiator brings no further " +
		"processor and no further disk. The figures say what to expect of each, not which is better."
)

// paperFigure is the paper's figure of one of its set-ups, with small bodies; it has no figure for each payload size.
type paperFigure struct {
	setup             string
	messagesPerSecond float64
	text              string
}

// paperFigures are the paper's figures 2, 3 and 4: with one, two and three initiators.
var paperFigures = []paperFigure{
	{"paper, 1 initiator server", 5000, "almost 5,000"},
	{"paper, 2 initiator servers", 12000, "almost 12,000"},
	{"paper, 3 initiator servers", 18000, "over 18,000"},
}

const (
	// paperSizes are the values for larger bodies in the paper's figure 4.
	paperSizes = "In the paper's figure 4 small bodies reach over 18,000 messages/s, and larger ones stop growing at 45 threads (3 × 15)."
	// paperSpread is the spread in the paper's figure 5.
	paperSpread = "In the paper's figure 5 the use of every 150th conversation only brings up to 315 percent more, from 30 threads " +
		"(3 × 10) on, and nothing up to 15 threads: it keeps the senders off each other's pages of one system table."
)
