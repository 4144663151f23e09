package trust

import (
	"context"
	"time"

	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

const (
	// WarnBefore is how long before its end a certificate is warned of.
	WarnBefore = 30 * 24 * time.Hour
	// reportInterval is how often the certificate is reported to the databases; they forget it after a day.
	reportInterval = time.Hour
)

// own is the last report about the certificate of this broker; only Run uses it.
type own struct {
	warnedAt, reportedAt time.Time
	warnedOf, reportedOf identity.Fingerprint
}

// watch reports the certificate of this broker to the databases, and logs when it ends soon: once a day, and when the daemon
// begins.
func (t *Trust) watch(ctx context.Context) {
	c, err := t.source.Certificate()
	if err != nil {
		return // the next link reports it
	}
	now := time.Now()
	t.report(ctx, c, now)
	if c.Leaf.NotAfter.Sub(now) > WarnBefore || now.Sub(t.reported.warnedAt) < 24*time.Hour && t.reported.warnedOf == c.Fingerprint {
		return
	}
	t.reported.warnedAt, t.reported.warnedOf = now, c.Fingerprint
	if err := identity.Check(c.Leaf, now); err != nil {
		t.logger.Error("no link can be opened: parley certificate rotate", "reason", ofDates(err, "the certificate of this broker"))
		return
	}
	t.logger.Warn("the certificate of this broker expires soon: parley certificate rotate",
		"not_after", c.Leaf.NotAfter, "key", c.Fingerprint.String())
}

func (t *Trust) report(ctx context.Context, c *identity.Certificate, now time.Time) {
	if t.name == "" || now.Sub(t.reported.reportedAt) < reportInterval && t.reported.reportedOf == c.Fingerprint {
		return
	}
	t.reported.reportedAt, t.reported.reportedOf = now, c.Fingerprint
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	for _, d := range t.databases {
		err := truststore.ReportCertificate(ctx, d.DB, truststore.ReportedCertificate{
			Daemon: t.name, Fingerprint: c.Fingerprint.String(), NotBefore: c.Leaf.NotBefore, NotAfter: c.Leaf.NotAfter, Address: t.address,
		})
		if err != nil && ctx.Err() == nil {
			t.logger.Debug("the certificate could not be reported to the database", "database", d.Name, "error", err)
			t.reported.reportedAt = now.Add(time.Minute - reportInterval) // it may be back then
		}
	}
}
