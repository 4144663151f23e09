package diagnosis_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Their cures are commands: here is what those do.
func TestDiagnosisFindsCertificatesThatABindingMisses(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	owner, remote := b.Role("owner"), b.Role("far")
	b.Exec("select parley.alter_authorization('service', '//test/Asker', $1)", owner)
	b.Exec("select parley.create_remote_service_binding('b', '//far/Service', $1)", remote)
	const dialog = "parley.diagnose_configuration('//test/Asker', '//far/Service', '//test/Work')"
	if f := b.RequireFinding(dialog, "binding-certificate-missing"); f.ObjectName != "b" || !strings.Contains(f.Cure, "--role '"+remote+"'") {
		t.Errorf("found %+v", f)
	}
	if f := b.RequireFinding(dialog, "dialog-certificate-missing"); f.ObjectName != "//test/Asker" || !strings.Contains(f.Cure, "--role '"+owner+"'") {
		t.Errorf("found %+v", f)
	}
	// Of other dialogs this is not reported.
	b.RequireNoFinding("parley.diagnose_configuration('//test/Asker', '//test/Answerer', '//test/Work')", "dialog-certificate-missing")
	// An anonymous dialog is not signed.
	b.Exec("select parley.alter_remote_service_binding('b', anonymous => true)")
	b.RequireNoFinding(dialog, "dialog-certificate-missing")
	b.Exec("select parley.alter_remote_service_binding('b', anonymous => false)")
	b.Install("far side", remote, false)
	b.RequireNoFinding(dialog, "binding-certificate-missing")
	b.Install("own side", owner, true)
	b.RequireNoFinding(dialog, "dialog-certificate-missing")
	b.Exec("select parley.drop_remote_service_binding('b')")
	b.Exec("select parley.drop_certificate(name) from parley.certificates")
	b.Exec("select parley.alter_authorization('service', '//test/Asker', current_user)")
}

// One check that fails does not keep the others from being made.
func TestCheckThatFailsIsReportedAsAProblem(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Dialog()
	b.Exec("drop function parley._p_find_tombstones(parley._p_scope)")
	problems := 0
	for _, f := range b.Findings(sqltest.Runtime) {
		if f.Part == "PROBLEM" && f.Code == "tombstones" {
			problems++
		}
	}
	if problems != 1 {
		t.Errorf("%d problems are reported", problems)
	}
}
