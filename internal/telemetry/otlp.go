package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Export sends metrics and traces to an OpenTelemetry collector. It is set up by OpenTelemetry's own variables:
// OTEL_EXPORTER_OTLP_ENDPOINT switches it on, and those for headers, time-outs, certificates, sampling, resource
// attributes and the interval of metrics mean what they mean everywhere.
type Export struct {
	resource *resource.Resource
	traces   *sdktrace.TracerProvider // nil when traces are not exported
	metrics  *sdkmetric.MeterProvider // nil before ExportMetrics, or when metrics are not exported
}

// NewExport makes what the environment asks for; without OTEL_EXPORTER_OTLP_ENDPOINT it is an Export that does nothing.
func NewExport(ctx context.Context, version string) (*Export, error) {
	e := &Export{}
	if !isExported("TRACES") && !isExported("METRICS") {
		return e, nil
	}
	if protocol := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && !strings.HasPrefix(protocol, "http") {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: set it to http/protobuf, the one that is spoken here", protocol)
	}
	// Attributes from the environment come last, so that OTEL_SERVICE_NAME wins.
	described, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "parley"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this process: %w", err)
	}
	e.resource = described
	if isExported("TRACES") {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("export traces: %w", err)
		}
		e.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	}
	return e, nil
}

// isExported reports whether the environment asks to export a signal.
func isExported(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(os.Getenv("OTEL_"+signal+"_EXPORTER"), "none") {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// Tracer draws spans that are exported; it draws none when traces are not.
func (e *Export) Tracer() trace.Tracer {
	if e.traces == nil {
		return noop.NewTracerProvider().Tracer("")
	}
	return e.traces.Tracer("github.com/parley-broker/parley")
}

// ExportMetrics exports what /metrics shows, at intervals, until Shutdown. Call it once.
func (e *Export) ExportMetrics(ctx context.Context, r *Registry) error {
	if !isExported("METRICS") {
		return nil
	}
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return fmt.Errorf("export metrics: %w", err)
	}
	refreshed := producer{r, bridge.NewMetricProducer(bridge.WithGatherer(r.registry))}
	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(refreshed))
	e.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(e.resource))
	return nil
}

// producer gives the data of /metrics to the reader that exports it.
type producer struct {
	registry *Registry
	bridge   sdkmetric.Producer
}

// Produce reads the figures anew, if they are old.
func (p producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	p.registry.refresh(ctx)
	scopes, err := p.bridge.Produce(ctx)
	if err != nil {
		return scopes, fmt.Errorf("gather metrics: %w", err)
	}
	return scopes, nil
}

// Shutdown sends what is left and ends.
func (e *Export) Shutdown(ctx context.Context) error {
	var failed []error
	if e.metrics != nil {
		failed = append(failed, e.metrics.Shutdown(ctx))
	}
	if e.traces != nil {
		failed = append(failed, e.traces.Shutdown(ctx))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("end the export of telemetry: %w", err)
	}
	return nil
}
