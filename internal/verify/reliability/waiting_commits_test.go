//go:build unix

package reliability_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// A commit that waits for a standby which is not there waits without a word; diagnosis names the setting, and the cure ends it.
func TestDiagnosisFindsCommitsThatWaitForAStandby(t *testing.T) {
	t.Parallel()
	server := newOwnServer(t)
	b := server.fixture(t)
	reload := func(statement string) {
		b.admin.exec(statement)
		b.admin.exec("select pg_reload_conf()")
	}
	const found = "select count(*) from parley.diagnose_runtime(level => 'INFO', patience => $1::text::interval) where code = 'commit-waits-for-standby'"
	sender := b.session(t)
	reload("alter system set synchronous_standby_names = 'missing'")
	b.await(t, func() bool {
		return ask[string](sender, "select current_setting('synchronous_standby_names')") == "missing"
	})
	committed := make(chan error, 1)
	go func() {
		committed <- sender.try("select parley.send(parley.begin_dialog('initiator', 'target'), 'DEFAULT', 'x')")
	}()
	b.await(t, func() bool { return ask[int](b.admin, found, "0") == 1 })
	if n := ask[int](b.admin, found, "1 hour"); n != 0 {
		t.Errorf("%d findings within an hour's patience", n)
	}
	var cause, cure string
	err := b.admin.conn.QueryRow(t.Context(), "select cause, cure from parley.diagnose_runtime(level => 'INFO', patience => '0') where code = 'commit-waits-for-standby'",
		pgx.QueryExecModeExec).Scan(&cause, &cure)
	if err != nil || !strings.Contains(cause, `synchronous_standby_names is "missing"`) || !strings.Contains(cause, "0 standbys") {
		t.Errorf("cause %q, error %v", cause, err)
	}
	reload(cure)
	if err := parleytest.Receive(t, committed, "the end of the commit"); err != nil {
		t.Error(err)
	}
	b.await(t, func() bool { return ask[int](b.admin, found, "0") == 0 })
}
