package verbs

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// Each field stands in its place among those of message tracking logs (spec mail 16), whatever is in it.
func TestEventsAreExportedInTheOrderOfTrackingLogs(t *testing.T) {
	t.Parallel()
	const fields = "date-time, client-ip, client-hostname, server-ip, server-hostname, source-context, connector-id, source, event-id, " +
		"internal-message-id, message-id, network-message-id, recipient-address, recipient-status, total-bytes, recipient-count, " +
		"related-recipient-address, reference, message-subject, sender-address, return-path, message-info, directionality, " +
		"original-client-ip, original-server-ip, custom-data, traffic-type, log-id, schema-version"
	names := strings.Split(fields, ", ")
	given, want := map[string]any{}, make([]string, len(names))
	for i, name := range names {
		want[i] = fmt.Sprintf("%d, \"%s\"\nand more", i, name)
		given[strings.ReplaceAll(name, "-", "_")] = want[i]
	}
	given["date_time"], want[0] = "2026-11-01T12:00:00+01:00", "2026-11-01T11:00:00.000Z"
	given["recipient_address"], want[12] = []string{"a@b.example", "c@d.example"}, "a@b.example;c@d.example"
	given["recipient_status"], want[13] = []string{"2.0.0", "5.1.1"}, "2.0.0;5.1.1"
	given["total_bytes"], want[14] = 123, "123"
	given["recipient_count"], want[15] = 2, "2"
	written, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	var event mailstore.Event
	if err := json.Unmarshal(written, &event); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeEventsAsCSV(&out, func(each func(mailstore.Event) error) error { return each(event) }); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows were read: %v", len(rows), err)
	}
	for i, name := range names {
		if rows[0][i] != name || rows[1][i] != want[i] {
			t.Errorf("column %d is %q with %q, want %q with %q", i, rows[0][i], rows[1][i], name, want[i])
		}
	}
}
