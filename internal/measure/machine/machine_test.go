package machine_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/parleytest"
)

func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), parleytest.DSN(t, parleytest.EmptyDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestMachineIsDescribed(t *testing.T) {
	t.Parallel()
	m, err := machine.Read(t.Context(), connect(t))
	if err != nil {
		t.Fatal(err)
	}
	if m.CPU == "" || m.Cores < 1 || m.OS == "" || m.PostgresVersion == "" {
		t.Errorf("%+v", m)
	}
}

func TestSettingsThatTheServerDoesNotKnowAreLeftOut(t *testing.T) {
	t.Parallel()
	settings, err := machine.Settings(t.Context(), connect(t), "synchronous_commit", "no_such_setting")
	if err != nil {
		t.Fatal(err)
	}
	if len(settings) != 1 || settings["synchronous_commit"] != "on" {
		t.Errorf("%v", settings)
	}
}
