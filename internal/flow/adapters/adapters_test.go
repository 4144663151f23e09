package adapters_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapters"
)

func TestDefinitionsAreCheckedByTheirAdapters(t *testing.T) {
	t.Parallel()
	found, err := adapters.All().Check([]byte(`{
		"receive location": {
			"Good": {"adapter": "FILE", "address": "/data/*.xml", "settings": {"poll_interval": "1 second"}},
			"Bad": {"adapter": "FILE", "address": "/data/*.xml", "settings": {"pol_interval": "1 second"}, "schedule": {"days": [32]}},
			"Unknown": {"adapter": "SMOKE", "address": "x"}},
		"send port": {"Carried over": {"adapter": "SMOKE", "address": "x", "state": "Bound"}, "Good": {"adapter": "FILE", "address": "/data/%MessageID%.xml"}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, p := range found {
		got = append(got, strings.Join(p.Path, "/")+": "+p.Message)
	}
	want := []string{
		`receive location/Bad/settings/pol_interval: the adapter has no setting "pol_interval"`,
		`receive location/Bad/schedule/days/0: no month has a day 32`,
		`receive location/Unknown/adapter: there is no adapter "SMOKE" to receive by`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found %q", got)
	}
	for _, kind := range adapters.All().Kinds() {
		if kind.NewReceiver == nil && kind.NewSender == nil || kind.Check == nil || len(kind.Guarantee) == 0 {
			t.Errorf("adapter %s promises nothing, or checks nothing", kind.Name)
		}
	}
}
