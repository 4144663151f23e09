package transport_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/operate"
)

// networked are two sides whose routes lead over the network, and whose daemons have reported themselves.
type networked struct {
	*testing.T
	asker, answerer *side
	daemons         [2]parley.UUID
}

const (
	askersKey    = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	answerersKey = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func newNetworked(t *testing.T) *networked {
	t.Helper()
	n := &networked{T: t}
	n.asker, n.answerer = newSides(t)
	n.asker.Exec("select parley.create_route('there', 'tcp://answerer:4022', '//test/Answerer')")
	n.answerer.Exec("select parley.create_route('back', 'tcp://asker:4022', '//test/Asker')")
	n.asker.Exec("select parley.trust_peer('" + answerersKey + "', 'answerer', address => 'tcp://answerer:4022')")
	n.answerer.Exec("select parley.trust_peer('" + askersKey + "', 'asker', address => 'tcp://asker:4022')")
	n.daemons = [2]parley.UUID{n.asker.guid, n.answerer.guid}
	n.listen(0, 4022, "0.0.0.0")
	n.listen(1, 4022, "0.0.0.0")
	n.certify(0, askersKey, "", time.Now().Add(-time.Hour))
	n.certify(1, answerersKey, "", time.Now().Add(-time.Hour))
	return n
}

func (n *networked) side(i int) *side {
	return []*side{n.asker, n.answerer}[i]
}

func (n *networked) listen(i, port int, ip string) {
	n.Helper()
	report := transportstore.DaemonReport{Endpoint: &transportstore.EndpointReport{IPAddress: ip, Port: port}}
	if err := transportstore.ReportDaemon(n.Context(), n.side(i).db, n.daemons[i], n.side(i).name, report); err != nil {
		n.Fatal(err)
	}
}

func (n *networked) certify(i int, key, address string, notBefore time.Time) {
	n.Helper()
	n.side(i).Exec("select parley._p_report_certificate(daemon => $1, fingerprint => $2, not_before => $3, not_after => $4, address => nullif($5::text, ''))",
		n.side(i).name, key, notBefore, time.Now().AddDate(1, 0, 0), address)
}

// require compares what is found: codes, the causes' beginning for those of the far database.
func (n *networked) require(want ...string) []operate.Finding {
	n.Helper()
	found, err := operate.DiagnoseDialog(n.Context(), n.asker.db, n.answerer.db, "//test/Asker", "//test/Answerer", "//test/Work", operate.DiagnosisFilter{})
	if err != nil {
		n.Fatal(err)
	}
	codes := []string{}
	for _, f := range found {
		code := f.Code
		if strings.HasPrefix(f.Cause, "In the far database: ") {
			code = "far " + code
		}
		if f.Part == operate.PartProblem {
			code = "problem " + code
		}
		codes = append(codes, code)
	}
	if strings.Join(codes, ", ") != strings.Join(want, ", ") {
		// The next statements check the findings.
		n.Fatalf("found %+v, want %v", found, want)
	}
	return found
}

// The daemons of each side listen where the routes of the other one lead (spec 9.4, endpoint).
func TestDiagnosisOfADialogComparesWhereDaemonsListen(t *testing.T) {
	t.Parallel()
	n := newNetworked(t)
	n.require()
	n.listen(1, 4023, "0.0.0.0")
	if found := n.require("endpoint-elsewhere"); !strings.Contains(found[0].Cause, "listen at tcp://*:4023") || found[0].ObjectName != "tcp://answerer:4022" {
		t.Errorf("found %+v", found)
	}
	// The address that its operator has stated counts more than the one on which it listens behind a gateway.
	n.certify(1, answerersKey, "tcp://answerer:4022", time.Now().Add(-time.Hour))
	n.require()
	n.certify(1, answerersKey, "tcp://moved:4022", time.Now().Add(-time.Hour))
	if found := n.require("endpoint-elsewhere"); !strings.Contains(*found[0].Cure, "'tcp://moved:4022'") {
		t.Errorf("found %+v", found)
	}
	// The second server of a mirrored database will do.
	n.asker.Exec("select parley.alter_route('there', broker_instance => $1, mirror_address => 'tcp://moved:4022')", n.answerer.guid.String())
	n.require()
	n.certify(0, askersKey, "tcp://elsewhere:4022", time.Now().Add(-time.Hour))
	n.require("far endpoint-elsewhere")
	n.certify(0, askersKey, "", time.Now().Add(-time.Hour))

	// Addresses of two numbers are compared, of a name and a number only the port.
	n.listen(0, 4022, "10.0.0.1")
	n.require()
	n.answerer.Exec("select parley.alter_route('back', 'tcp://10.0.0.2:4022')")
	n.require("far endpoint-elsewhere")
	n.answerer.Exec("select parley.alter_route('back', 'tcp://10.0.0.1:4022')")
	n.require()

	if err := transportstore.ForgetDaemon(n.Context(), n.answerer.db, n.daemons[1]); err != nil {
		t.Fatal(err)
	}
	n.require("far endpoint-missing")
}

// Each side trusts the keys of the other's daemons, and these are valid.
func TestDiagnosisOfADialogComparesWhomEachSideTrusts(t *testing.T) {
	t.Parallel()
	n := newNetworked(t)
	n.certify(0, strings.Repeat("c", 64), "", time.Now().Add(-time.Hour))
	if found := n.require("far peer-unknown"); !strings.Contains(found[0].Cause, strings.Repeat("c", 64)) || found[0].Level != operate.LevelWarning {
		t.Errorf("found %+v", found)
	}
	n.certify(0, askersKey, "", time.Now().Add(-time.Hour))
	n.require()
	n.answerer.Exec("select parley.revoke_peer('asker')")
	n.require("far peer-not-trusted")
	n.answerer.Exec("select parley.drop_peer('asker')")
	n.require("far peer-unknown")
	n.answerer.Exec("select parley.trust_peer('" + askersKey + "', 'asker')")
	n.certify(1, answerersKey, "", time.Now().Add(time.Hour))
	n.require("far certificate-not-valid-yet")
	n.certify(1, answerersKey, "", time.Now().Add(-time.Hour))

	// Of a peer whose address is not known only the other side's key shows that it is meant.
	n.answerer.Exec("select parley.trust_peer('" + strings.Repeat("e", 64) + "', 'another'); select parley.revoke_peer('asker')")
	if found := n.require("far peer-not-trusted"); !strings.Contains(found[0].Cause, "the peer that it belongs to is REVOKED") {
		t.Errorf("found %+v", found)
	}
	n.answerer.Exec("select parley.drop_peer('another'); select parley.drop_peer('asker')")
	n.answerer.Exec("select parley.trust_peer('" + askersKey + "', 'asker')")
	n.require()

	// The side itself knows the expiries.
	n.answerer.Exec("update parley._p_broker_certificate set not_after = now()")
	n.require("far certificate-expired")
	n.answerer.Exec("delete from parley._p_broker_certificate")
	if found := n.require("problem endpoint-not-checked"); !strings.Contains(found[0].Cause, "No daemon of the far database has reported its certificate") {
		t.Errorf("found %+v", found)
	}
}

// A broker behind a forwarder cannot be compared, and is not called wrong.
func TestDiagnosisOfADialogReportsThatItCannotCheckBehindAForwarder(t *testing.T) {
	t.Parallel()
	n := newNetworked(t)
	n.asker.Exec("select parley.trust_peer('" + strings.Repeat("d", 64) + "', 'hub', address => 'tcp://hub:4022', is_forwarder => true)")
	n.asker.Exec("select parley.alter_route('there', 'tcp://hub:4022')")
	n.answerer.Exec("select parley.drop_route('back'); select parley.create_route('back', 'tcp://hub:4022', '//test/Asker')")
	n.answerer.Exec("select parley.trust_peer('" + strings.Repeat("d", 64) + "', 'hub', address => 'tcp://hub:4022', is_forwarder => true)")
	n.answerer.Exec("select parley.revoke_peer('asker')")
	n.require("problem endpoint-not-checked", "problem endpoint-not-checked")
}
