package compose

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/metrics"
	"github.com/parley-broker/parley/internal/telemetry"
)

// exportTimeout is how long the last metrics and spans may take when the daemon stops.
const exportTimeout = 5 * time.Second

// observing is the configuration of the daemon's reports to monitoring systems, and where: --http.
type observing struct {
	address string
	logger  *slog.Logger

	metrics  *metrics.Metrics
	registry *telemetry.Registry
	export   *telemetry.Export
	listener net.Listener
	names    []string // of the databases
}

// Prepare makes the metrics, and listens where --http says. OTEL_EXPORTER_OTLP_ENDPOINT asks to export them too.
func (o *observing) Prepare(ctx context.Context) (err error) {
	o.export, err = telemetry.NewExport(ctx, parley.Release)
	if err != nil {
		return err
	}
	o.metrics = metrics.New(metrics.Config{Tracer: o.export.Tracer(), Logger: o.logger})
	o.registry = telemetry.NewRegistry()
	if err := o.registry.Register(o.metrics.Source()); err != nil {
		return err
	}
	if err := o.export.ExportMetrics(ctx, o.registry); err != nil {
		return err
	}
	if o.address == "" {
		return nil
	}
	var listening net.ListenConfig
	if o.listener, err = listening.Listen(ctx, "tcp", o.address); err != nil {
		return fmt.Errorf("listen on --http %s: %w", o.address, err)
	}
	o.logger.Info("metrics are served", "address", o.listener.Addr().String())
	return nil
}

// Run serves the metrics until ctx ends.
func (o *observing) Run(ctx context.Context) error {
	if o.listener == nil {
		return nil
	}
	return o.registry.Serve(ctx, o.listener)
}

// database makes the metrics of a database, and lets the connections to it count their statements.
func (o *observing) database(config *pgx.ConnConfig) *metrics.Database {
	name := config.Database
	if slices.Contains(o.names, name) {
		name = fmt.Sprintf("%s@%s:%d", config.Database, config.Host, config.Port)
	}
	o.names = append(o.names, name)
	database := o.metrics.Database(name)
	config.Tracer = database
	return database
}

// Close sends the last metrics and spans.
func (o *observing) Close() {
	if o.listener != nil {
		_ = o.listener.Close()
	}
	if o.export == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	if err := o.export.Shutdown(ctx); err != nil {
		o.logger.Warn("the last metrics and spans were not exported", "error", err)
	}
}
