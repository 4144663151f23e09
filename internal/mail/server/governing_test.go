package server_test

import (
	"fmt"
	"strings"
	"testing"
)

const refusal = "452 4.3.1"

func TestPressureActsStepByStepAndIsUndone(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	if g.taken("tarpit") || g.submit(false) != "" {
		t.Error("without pressure something is refused")
	}
	requireBeginning(t, "a sender without pressure", g.from("bob@b.example"), "250")
	g.file(g.pickup, "first-file")
	g.await("a file without pressure", g.arrived("first-file", 1))
	requireBeginning(t, "HTTP without pressure", g.post(), "202")

	g.level("uncommitted", 1200, "MEDIUM")
	g.await("the tarpit", func() bool { return g.taken("tarpit") })
	g.from("bob@example.org")
	if g.counter("SMTP Receive", "Tarpitted", "") == 0 {
		t.Error("no sender was delayed at Medium")
	}
	g.await("the end of the history", func() bool { return g.taken("refuse anonymous senders") })
	requireBeginning(t, "a sender of elsewhere at Medium", g.from("bob@b.example"), refusal)
	requireBeginning(t, "a sender of ours at Medium", g.from("bob@example.org"), "250")
	if !g.taken("refuse folders and HTTP") || g.taken("stop sending") || g.submit(false) != "" {
		t.Error("at Medium the wrong things are refused")
	}
	requireBeginning(t, "HTTP at Medium", g.post(), "503 30")
	g.file(g.pickup, "second-file")
	g.file(g.replay, "replayed")
	for _, folder := range []string{g.pickup, g.replay} {
		g.await("a folder that waits", func() bool {
			return strings.Contains(g.log.String(), `msg="files wait in a folder of messages: resources are short" folder=`+folder)
		})
	}
	g.exec("select parley_mail.send('shop@example.org', array['x@c.example'], 'at Medium', 'x')")
	g.await("what is sent at Medium", func() bool { return len(g.relayed()) == 1 })

	g.level("uncommitted", 1600, "HIGH")
	g.await("all actions", func() bool { return g.taken("stop sending") })
	requireBeginning(t, "a sender of ours at High", g.from("bob@example.org"), refusal)
	if got := g.submit(false); got != "PM014" {
		t.Errorf("submission by SQL at High gives %q", got)
	}
	if got := g.submit(true); got != "" {
		t.Errorf("submission by a role that is exempt gives %q", got)
	}
	// Nothing leaves: what comes from who is exempt is categorized, and waits for its next hop untried.
	g.exec("select parley_mail.send('shop@example.org', array['x@c.example', 'ann@example.org'], 'at High', 'x')")
	g.await("what waits at High", func() bool {
		return g.text(`select coalesce(string_agg(queue || ' ' || status || ' ' || coalesce(attempts, 0), ', ' order by queue), '')
			from parley_mail.messages where subject = 'at High'`) == "DNS/outbound/c.example READY 0, MAILBOX/local/- READY 0"
	})
	if g.counter("SMTP Receive", "Refused", "pressure, anonymous") < 2 {
		t.Error("senders that were refused are not counted")
	}
	requireBeginning(t, "HTTP at High", g.post(), "503 30")
	if got := g.files(); len(g.relayed()) != 1 || g.arrived("at High", 1)() || got != "second-file.eml replayed.eml " {
		t.Errorf("at High %d messages are relayed, and in the folders are %s", len(g.relayed()), got)
	}
	g.level("uncommitted", 900, "MEDIUM")
	g.await("sending at Medium again", func() bool { return len(g.relayed()) == 2 && g.arrived("at High", 1)() })
	requireBeginning(t, "a sender of ours at Medium again", g.from("bob@example.org"), "250")
	g.level("uncommitted", 10, "NORMAL")
	g.await("the end of pressure", func() bool { return !g.taken("tarpit") })
	requireBeginning(t, "a sender after pressure", g.from("bob@b.example"), "250")
	if got := g.submit(false); got != "" {
		t.Errorf("submission by SQL after pressure gives %q", got)
	}
	g.await("the end of the tarpit", func() bool { return g.counter("SMTP Receive", "Tarpit Delay Seconds", "") == 0 })
	requireBeginning(t, "HTTP after pressure", g.post(), "202")
	for subject, count := range map[string]int{"second-file": 1, "replayed": 1, "over HTTP": 2, "Order": 4} {
		g.await(subject+" after pressure", g.arrived(subject, count))
	}
	if got := g.files(); got != "" {
		t.Errorf("left in the folders are %s", got)
	}
	if got, want := g.text(`select string_agg(concat_ws(' ', event_id, from_level, to_level), ', ' order by change_id)
		from parley_mail.pressure_changes where resource = 'uncommitted'`),
		"15004 NORMAL MEDIUM, 15004 MEDIUM HIGH, 15005 HIGH MEDIUM, 15005 MEDIUM NORMAL"; got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
	if got := g.text(`select message from parley_mail.pressure_changes where to_level = 'HIGH'`); !strings.Contains(got,
		"uncommitted = 1600 units [High] [Normal=800 Medium=999 High=1500]") || !strings.Contains(got, "stop sending") || !strings.Contains(got, "data volume = 0") {
		t.Errorf("the event says %s", got)
	}
	if g.counter("Back Pressure", "Transitions", "uncommitted") != 4 || g.counter("Back Pressure", "Seconds In High", "uncommitted") <= 0 {
		t.Error("levels are not counted")
	}
	if got := g.text(`select concat_ws(' ', name, status, version, configuration_version = (select version from parley_mail._p_configuration_version))
		from parley_mail.daemons`); got != "node1 SERVING test t" {
		t.Errorf("the daemon is %s", got)
	}
	g.stop()
	if got := g.text(`select concat_ws(' ', name, status, cardinality(actions)) from parley_mail.daemons`); got != "node1 STOPPED 0" {
		t.Errorf("the daemon that has stopped is %s", got)
	}
}

// Volumes and memory are refused for with events of their own; at the floor of a volume nobody is exempt.
func TestVolumesAndMemoryRefuseWithTheirOwnEvents(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	g.level("data volume", 98, "MEDIUM")
	requireBeginning(t, "a sender of elsewhere on a full volume", g.from("bob@b.example"), refusal)
	requireBeginning(t, "a sender of ours on a full volume", g.from("bob@example.org"), "250")
	g.level("data volume", 99.5, "HIGH")
	if got := g.submit(false) + g.submit(true); got != "PM014" {
		t.Errorf("submission at High gives %q", got)
	}
	g.level("data volume", 99.95, "FLOOR")
	if got := g.submit(true); got != "PM014" {
		t.Errorf("submission by a role that is exempt gives %q at the floor", got)
	}
	g.level("data volume", 50, "NORMAL")
	if got := g.submit(false); got != "" {
		t.Errorf("submission after it gives %q", got)
	}

	limit := g.counter("Database", "Body Cache Limit Bytes", "")
	g.level("process memory", 80, "HIGH")
	requireBeginning(t, "a sender without memory", g.from("bob@example.org"), refusal)
	if got := g.counter("Database", "Body Cache Limit Bytes", ""); got >= limit {
		t.Errorf("without memory the body cache may hold %g bytes, and %g with it", got, limit)
	}
	g.level("process memory", 10, "NORMAL")
	// Questions that name servers have answered are asked again once caches are flushed, with the servers of the daemon and those of a
	// connector.
	for i, asked := range []int{2, 2, 4} {
		if i == 2 {
			g.level("system memory", 90, "MEDIUM")
			g.await("the flush", func() bool { return g.taken("flush caches") })
		}
		requireBeginning(t, "HTTP", g.post(fmt.Sprintf("x@d%d.example", i), fmt.Sprintf("x@d%d.own.example", i)), "202")
		g.await("the mail by DNS", func() bool { return len(g.relayed()) == 2*i+2 })
		if got := g.zone.times("A mx.relay.example."); got != asked {
			t.Errorf("message %d: the address of a host was asked for %d times, want %d", i, got, asked)
		}
	}
	g.level("system memory", 10, "NORMAL")
	g.await("the body cache", func() bool { return g.counter("Database", "Body Cache Limit Bytes", "") == limit })
	if got := g.text(`select string_agg(concat_ws(' ', event_id, resource), ', ' order by change_id)
		from parley_mail.pressure_changes where event_id in (15006, 15007)`); got != "15006 data volume, 15006 data volume, 15007 process memory" {
		t.Errorf("the events are %s", got)
	}
}
