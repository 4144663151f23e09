package parley_test

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

func TestUUIDReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	const text = "0123abcd-4567-89ef-0123-456789abcdef"
	u, err := parley.ParseUUID(text)
	if err != nil {
		t.Fatal(err)
	}
	if u.String() != text {
		t.Errorf("%s became %s", text, u)
	}
	encoded, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	var decoded parley.UUID
	if err := json.Unmarshal(encoded, &decoded); err != nil || decoded != u {
		t.Errorf("%s became %s, %v", encoded, decoded, err)
	}
}

func TestParseUUIDRefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "0123abcd456789ef0123456789abcdef", "0123abcd-4567-89ef-0123-456789abcdeg", "0123abcd-4567-89ef-0123-456789abcdef0",
		"0123abcd+4567-89ef-0123-456789abcdef", "0123ab-d-4567-89ef-0123-456789abcdef",
	} {
		if u, err := parley.ParseUUID(text); err == nil {
			t.Errorf("%q became %s", text, u)
		}
	}
}

func TestUUIDTravelsInEveryQueryMode(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.EmptyDatabase(t))
	want, err := parley.ParseUUID("0123abcd-4567-89ef-0123-456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			for _, u := range []parley.UUID{want, {}} {
				var got parley.UUID
				var isNull bool
				err := conn.QueryRow(t.Context(), "select $1::uuid, $1::uuid is null", mode, u).Scan(&got, &isNull)
				if err != nil {
					t.Fatal(err)
				}
				if got != u || isNull != u.IsZero() {
					t.Errorf("%s became %s, null: %v", u, got, isNull)
				}
			}
		})
	}
}

// queryModes are the ways in which pgx may be configured to send parameters; poolers need the later ones.
var queryModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}
