package router

import (
	"testing"

	"github.com/parley-broker/parley/internal/broker/transport/inbox"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Roles of one server and of another may have one number: who decides ownership in one database says nothing in the other.
func TestKeepersOfAServerCountOnThatServerAlone(t *testing.T) {
	t.Parallel()
	at := func(server, keepers string, isKnown bool) *served {
		return &served{inbox: &inbox.Inbox{}, ServedDatabase: transportstore.ServedDatabase{Server: server, Keepers: keepers}, isKnown: isKnown}
	}
	one, beside, elsewhere, unknown := at("s", "10,11", true), at("s", "12", true), at("other", "10,11", true), at("s", "10,11", false)
	d := NewDirectory()
	d.databases = []*served{one, beside, elsewhere, unknown}
	for _, test := range []struct {
		from, to *served
		want     string
	}{
		{one, beside, "10,11"}, {beside, one, "12"}, {one, elsewhere, ""}, {elsewhere, one, ""}, {unknown, one, ""},
	} {
		if got := d.keepers(test.from.inbox, test.to); got != test.want {
			t.Errorf("from %+v to %+v: %q, want %q", test.from.ServedDatabase, test.to.ServedDatabase, got, test.want)
		}
	}
}
