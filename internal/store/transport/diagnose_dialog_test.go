package transport_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/operate"
)

// A dialog between databases is checked from both sides: what one lacks and the other has is not missing (spec 9.4).
func TestDiagnosisOfADialogChecksBothDatabases(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	diagnose := func() map[string]string {
		t.Helper()
		found, err := operate.DiagnoseDialog(t.Context(), asker.db, answerer.db, "//test/Asker", "//test/Answerer", "//test/Work", operate.DiagnosisFilter{})
		if err != nil {
			t.Fatal(err)
		}
		causes := map[string]string{}
		for _, f := range found {
			causes[f.Code] = f.Cause
			isFar := strings.HasPrefix(f.Cause, "In the far database: ")
			if statesIt := f.Cure != nil && strings.Contains(*f.Cure, "  -- in the far database \""); statesIt != isFar {
				t.Errorf("%s: the cause is %q, the cure %q", f.Code, f.Cause, *f.Cure)
			}
		}
		return causes
	}
	if found := diagnose(); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	answerer.Exec(`
		select parley.alter_queue('Answering', status => false);
		select parley.drop_service('//test/Answerer'); select parley.create_service('//test/Answerer', 'Answering')`)
	found := diagnose()
	for _, code := range []string{"queue-off", "contract-not-accepted", "send-not-granted"} {
		if !strings.HasPrefix(found[code], "In the far database: ") {
			t.Errorf("%s is found as %q", code, found[code])
		}
	}
	if len(found) != 3 {
		t.Errorf("found %v", found)
	}
	answerer.Exec(`
		select parley.drop_contract('//test/Work'); select parley.create_contract('//test/Work', '{"//test/Request": "ANY"}')`)
	if cause := diagnose()["contract-differs"]; !strings.Contains(cause, "//test/Request SENT BY INITIATOR") || !strings.Contains(cause, "//test/Request SENT BY ANY") {
		t.Errorf("contracts differ: %q", cause)
	}
	answerer.Exec("select parley.drop_service('//test/Answerer')")
	if cause, isMissing := diagnose()["service-missing"]; !isMissing {
		t.Errorf("a service that neither has is not missing: %q", cause)
	}
}

// A service of another database that the same daemon serves works, and creating it here would divert what is sent to it.
func TestServiceNextDoorIsNotMissing(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	missing := func() bool {
		t.Helper()
		found, err := operate.DiagnoseConfiguration(t.Context(), asker.db, "//test/Asker", "//test/Answerer", "//test/Work", operate.DiagnosisFilter{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(found, func(f operate.Finding) bool { return f.Code == "service-missing" })
	}
	if !missing() {
		t.Error("a service that nobody is known to have is not found missing")
	}
	asker.Send(asker.dialog(), request, "1")
	asker.exchange(answerer)
	if missing() {
		t.Error("a service that has answered is found missing")
	}
	// A report of the daemon may be forgotten; the broker that has answered is known all the same.
	asker.Exec("delete from parley._p_neighbour_service")
	if missing() {
		t.Error("a service that has answered is found missing")
	}
}
