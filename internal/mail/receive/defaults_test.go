package receive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// The limits that hold where an administrator sets none are those of the documentation (mail-receiving.md).
func TestLimitsThatHoldUnlessAnotherIsSet(t *testing.T) {
	t.Parallel()
	want := receive.Limits{
		Connections: 5000, ConnectionsPerSource: 20, PercentPerSource: 2, ConnectionsPerMinute: 1200, MessagesPerMinute: 600,
		ConnectionTimeout: 10 * time.Minute, InactivityTimeout: 5 * time.Minute, MessageBytes: 37748736, HeaderBytes: 262144, Recipients: 200,
		Hops: 60, LocalHops: 12, ProtocolErrors: 5, FailedAuth: 3, LockoutFailures: 10, LockoutTime: 15 * time.Minute, Tarpit: 5 * time.Second,
		PipelinedCommands: 1000, TextLine: 1000, CommandLine: 2048,
	}
	if got := receive.DefaultLimits(); got != want {
		t.Errorf("the limits are %+v, want %+v", got, want)
	}
	for usage, change := range map[receive.Usage]func(*receive.Limits){
		receive.Internet: nil, receive.Partner: nil, receive.Custom: nil,
		receive.Client: func(l *receive.Limits) { l.MessagesPerMinute = 60 },
		receive.Internal: func(l *receive.Limits) {
			l.PercentPerSource, l.ConnectionsPerSource, l.MessagesPerMinute, l.Recipients = 100, 0, 0, 5000
		},
	} {
		limits := want
		if change != nil {
			change(&limits)
		}
		if got := receive.NewConnector("c", usage).Limits; got != limits {
			t.Errorf("of usage %s they are %+v, want %+v", usage, got, limits)
		}
	}
}

// The rights that hold where an administrator grants none.
func TestRightsThatHoldUnlessOthersAreGiven(t *testing.T) {
	t.Parallel()
	all := map[string]receive.Rights{
		"submit": receive.Submit, "any recipient": receive.AnyRecipient, "any sender": receive.AnySender, "own sender": receive.AuthoritativeSender,
		"from inside": receive.AuthenticatedFlag, "filters": receive.BypassFilters, "size": receive.BypassSizeLimit,
		"routing": receive.AcceptRoutingHeaders, "organization": receive.AcceptOrganizationHeaders, "forest": receive.AcceptForestHeaders,
		"xclient": receive.XClient,
	}
	for group, want := range map[receive.Group][]string{
		receive.Anonymous:         {"own sender", "any sender", "routing", "submit"},
		receive.Users:             {"any recipient", "filters", "from inside", "own sender", "routing", "submit"},
		receive.PeerServers:       {"any recipient", "any sender", "filters", "forest", "from inside", "organization", "own sender", "routing", "size", "submit", "xclient"},
		receive.ExternallySecured: {"any recipient", "any sender", "filters", "from inside", "own sender", "routing", "size", "submit"},
		receive.Partners:          {"any sender", "routing", "submit"},
	} {
		connector := receive.NewConnector("c", receive.Custom)
		connector.Groups = []receive.Group{group}
		rights := receive.RightsOf(connector, []receive.Group{group}, "")
		var got []string
		for name, right := range all {
			if rights.Has(right) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s may %q, want %q", group, got, want)
		}
		if receive.RightsOf(connector, []receive.Group{"others"}, "") != 0 {
			t.Errorf("a group that the connector does not admit has rights")
		}
	}
}
