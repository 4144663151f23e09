package server_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	netsmtp "net/smtp"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/telemetry"
)

// machine is one that has everything that is counted.
var machine = fstest.MapFS{
	"proc/stat":           {Data: []byte("cpu  100 0 100 700 100 0 0 0 0 0\n")},
	"proc/self/stat":      {Data: []byte("7 (parley) S 1 1 1 0 -1 4 1 0 0 0 150 50 0 0 20 0\n")},
	"proc/self/status":    {Data: []byte("RssAnon:\t300 kB\n")},
	"proc/meminfo":        {Data: []byte("MemTotal: 8000 kB\nMemAvailable: 2000 kB\n")},
	"proc/net/dev":        {Data: []byte("eth0: 5000 1 0 0 0 0 0 0 6000 1 0 0 0 0 0 0\n")},
	"proc/diskstats":      {Data: []byte("8 1 sda1 1000 5 8000 2000 500 5 4000 5000 3 9 9\n")},
	"proc/self/mountinfo": {Data: []byte("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n")},
}

// scrape gives the figures by name and instance, as a monitoring system reads them.
func (g *governed) scrape() map[string]float64 {
	g.Helper()
	registry := telemetry.NewRegistry()
	if err := registry.Register(telemetry.Source{Collector: telemetry.NewCollector("parley_mail", "name", "shop", g.server.Counters)}); err != nil {
		g.Fatal(err)
	}
	w := httptest.NewRecorder()
	registry.Handler().ServeHTTP(w, httptest.NewRequestWithContext(g.Context(), http.MethodGet, "/metrics", nil))
	figures := make(map[string]float64)
	for _, found := range regexp.MustCompile(`(?m)^(parley_mail_\w+)\{database="shop"(?:,name="([^"]*)")?\} (\S+)$`).FindAllStringSubmatch(w.Body.String(), -1) {
		value, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			g.Fatal(err)
		}
		figures[strings.TrimSpace(strings.TrimPrefix(found[1], "parley_mail_")+" "+found[2])] = value
	}
	return figures
}

// The page of counters has what is exported and nothing else, and what happens moves them.
func TestEachCounterOfThePageIsExportedAndMoves(t *testing.T) {
	t.Parallel()
	submission := mailtest.FreeAddress(t)
	certificateFile, keyFile := mailtest.CertificateFiles(t, "hub.example.org")
	g := newGoverned(t, fmt.Sprintf(`{
		"organization": {"organization": {"expansion_size_limit": 2}},
		"mailbox": {"bob@example.org": {"store": "local"}, "eve@example.org": {"store": "local"},
			"one@example.org": {"store": "local", "forwarding": "ONLY", "forward_to": ["two@example.org"]},
			"two@example.org": {"store": "local", "forwarding": "ONLY", "forward_to": ["one@example.org"]}},
		"distribution group": {"all@example.org": {"members": ["ann@example.org", "bob@example.org", "eve@example.org"]}},
		"credential": {"ann": {"password": "secret"}},
		"receive connector": {"submission": {"usage": "CLIENT", "bindings": [%q], "certificate_file": %q, "certificate_key_file": %q, "tarpit": 1}}
	}`, submission, certificateFile, keyFile))
	before := g.scrape()

	letter := []byte("From: bob@b.example\r\nTo: ann@example.org\r\nSubject: x\r\n\r\nx\r\n")
	if err := netsmtp.SendMail(g.address, nil, "bob@b.example", []string{"ann@example.org"}, letter); err != nil {
		t.Fatal(err)
	}
	slow := g.dial(submission)
	slow.send("XYZZY")
	p := g.dial(submission)
	p.secure(&tls.Config{})
	p.login("ann", "secret", "235")
	g.exec(`select parley_mail.send('shop@example.org', array['absent@example.org', 'one@example.org', 'all@example.org', 'x@c.example', 'no@c.example', 'orders@example.org'],
		'Order', repeat('Thank you. ', 2000))`)
	g.await("the mail", func() bool { return len(g.relayed()) == 1 && g.empty() })

	slow.expect("XYZZY", "5")
	g.level("vacuum debt", 6, "MEDIUM")
	var after map[string]float64
	g.await("a time under pressure", func() bool {
		after = g.scrape()
		return after["back_pressure_seconds_in_medium vacuum debt"] > 0
	})
	for name, least := range map[string]float64{
		"smtp_receive_connections_total": 2, "smtp_receive_tls_connections_total": 1, "smtp_receive_authenticated_connections_total": 1,
		"smtp_receive_tls_connections_share": 0.01, "smtp_receive_authenticated_connections_share": 0.01, "smtp_receive_messages_received_total": 1,
		"smtp_receive_refusals_tarpitted_total": 1, "smtp_send_delivery_attempts_total": 1, "smtp_send_recipients_total delivered": 1,
		"smtp_send_recipients_total failed": 1, "store_driver_delivery_attempts_total": 3, "store_driver_recipients_total delivered": 4,
		"resolver_messages_categorized_total": 2, "resolver_messages_chipped_total": 1, "resolver_messages_created_total": 1,
		"resolver_failed_recipients_total": 2, "resolver_loop_recipients_total": 1, "resolver_unresolved_org_recipients_total": 1,
		"resolver_unresolved_org_senders_total": 1, "dsn_failure_dsns_total": 1, "database_body_reads_total": 1,
		"database_body_bytes_read_total": 20000, "database_body_writes_total": 1, "database_body_bytes_written_total": 100,
		"database_body_cache_hits_total": 0, "database_log_bytes_total": 1, "database_log_bytes_message": 1,
		"latency_end_to_end_seconds_count mailbox": 4, "latency_end_to_end_seconds_count remote": 1, "latency_end_to_end_seconds_count service": 1, "latency_end_to_end_seconds_sum mailbox": 0.001,
		"latency_end_to_end_seconds_p99 mailbox": 0.01, "back_pressure_transitions_total vacuum debt": 1, "host_disk_reads_total temporary volume": 0, "host_network_bytes_sent_total eth0": 0,
	} {
		if value, is := after[name]; !is || value-before[name] < least {
			t.Errorf("%s was %v and is %v (exported: %v), want %v more at least", name, before[name], value, is, least)
		}
	}

	// A mail that was sent once counts once, and each reason to refuse has its figure before anything was refused for it.
	for name, want := range map[string]float64{
		"smtp_send_messages_sent_total": 1, "dsn_delay_dsns_total": 0, "smtp_receive_messages_received_total": 1,
		"smtp_receive_refused_total message": 0, "smtp_receive_refused_total authentication": 0, "smtp_receive_refused_total pressure, anonymous": 0,
		"smtp_receive_refused_total pressure, users": 0, "smtp_receive_refused_total pressure, own nodes": 0,
	} {
		if value, is := after[name]; !is || value-before[name] != want {
			t.Errorf("%s was %v and is %v (exported: %v), want %v more", name, before[name], value, is, want)
		}
	}

	page, err := os.ReadFile("../../../docs/mail/counters.md")
	if err != nil {
		t.Fatal(err)
	}
	listed, exported := make(map[string]bool), map[string]bool{"up": true}
	for _, row := range regexp.MustCompile("(?m)^\\| [^|]+ \\| `parley_mail_(\\w+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = true
	}
	for name := range after {
		family, _, _ := strings.Cut(name, " ")
		family = regexp.MustCompile("^(latency_end_to_end_seconds)_(count|sum|bucket)$").ReplaceAllString(family, "$1")
		if exported[family] = true; !listed[family] && family != "up" {
			t.Errorf("parley_mail_%s is exported, and docs/mail/counters.md has no row of it", family)
		}
	}
	for family := range listed {
		if !exported[family] {
			t.Errorf("docs/mail/counters.md has parley_mail_%s, which is not exported", family)
		}
	}
}
