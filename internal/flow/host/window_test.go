package host_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// A schedule opens and closes a location and a port, and operators see until when. Messages wait for a closed port until it
// opens, in their order, and other ports go on.
func TestASchedulePutsOffWhatIsOutsideItsWindows(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	var now atomic.Pointer[time.Time]
	set := func(clock string) {
		at, err := time.Parse(time.RFC3339, "2026-03-29T"+clock+"Z")
		if err != nil {
			t.Error(err)
		}
		now.Store(&at)
	}
	set("00:30:00")
	e.port("Night", `{"ordered": true, "schedule": {"time_zone": "Europe/Berlin", "windows": ["02:00-02:30"]}}`)
	e.serve(func(c *host.Config) { c.Now = func() time.Time { return *now.Load() } })
	e.take("1", "2", "3")
	e.untilSent(3)
	parleytest.Until(t, "the port is shown as closed", func() bool {
		return sqltest.Value[bool](e.Session, `select exists (select from parley_flow.send_ports
			where name = 'Night' and is_closed and opens_at = '2026-03-29T01:00:00Z' and waiting = 3)`)
	})
	if sent := e.sentBy("Night"); len(sent) > 0 {
		t.Fatalf("a closed port has sent %v", sent)
	}
	set("01:00:00") // the clock jumps over the window, which is open at once
	parleytest.Until(t, "the port sends", func() bool { return len(e.sentBy("Night")) == 3 })

	e.apply(`{"receive location": {"Source": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "source",
		"schedule": {"from": "2026-04-01", "to": "2026-04-02"}}}}`)
	parleytest.Until(t, "the location is closed", func() bool {
		return sqltest.Value[bool](e.Session, `select exists (select from parley_flow.receive_locations
			where name = 'Source' and is_enabled and is_closed and opens_at = '2026-04-01')`)
	})
	e.mu.Lock()
	isThere := e.intakes["Source"] != nil
	e.mu.Unlock()
	if isThere {
		t.Error("a closed location takes in")
	}
	opened, _ := time.Parse(time.RFC3339, "2026-04-01T00:00:00Z")
	now.Store(&opened)
	e.take("4")
	over := opened.Add(48 * time.Hour)
	now.Store(&over)
	parleytest.Until(t, "the location is closed for good", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.intakes["Source"] == nil && sqltest.Value[bool](e.Session, `select exists (select from parley_flow.receive_locations
			where name = 'Source' and is_closed and opens_at is null)`)
	})
	e.port("Wrong", `{"schedule": {"windows": ["8"]}}`)
	parleytest.Until(t, "a schedule that cannot be used closes its port", func() bool {
		return sqltest.Value[bool](e.Session, "select coalesce(last_error ~ 'no window', false) from parley_flow.send_ports where name = 'Wrong'")
	})
}
