package adapters_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-broker/parley/flow/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter"
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

func TestLocationsOfAHostListenApart(t *testing.T) {
	t.Parallel()
	location := func(host, adapter, address string) string {
		return `{"host": "` + host + `", "adapter": "` + adapter + `", "address": "` + address + `", "settings": {"authentication": "none"}}`
	}
	for _, c := range []struct{ first, second, want string }{
		{location("H", "HTTP", "http://127.0.0.1:80/a"), location("H", "HTTP", "http://127.0.0.1/a"), "the path /a of 127.0.0.1:80"},
		{location("H", "HTTP", "http://127.0.0.1:80/a"), location("H", "HTTP", "http://127.0.0.1:80/b"), ""},
		{location("H", "HTTP", "http://127.0.0.1:80/a"), location("G", "HTTP", "http://127.0.0.1:80/a"), ""},
		{location("H", "HTTP", "http://127.0.0.1:80/a"), location("H", "HTTP", "http://127.0.0.1:81/a"), ""},
		{location("H", "HTTP", "http://127.0.0.1:80/a"), location("H", "TCP", ":80"), "the address :80"},
		{location("H", "HTTP", "http://127.0.0.1:80/a"), location("H", "HTTP", "http://0.0.0.0:80/b"), "the address 0.0.0.0:80"},
		{location("H", "HTTP", "http://localhost:443/a"), location("H", "HTTP", "https://LOCALHOST:443/b"), "the address LOCALHOST:443"},
		{location("H", "TCP", "127.0.0.1:80"), location("H", "TCP", "127.0.0.1:80"), "the address 127.0.0.1:80"},
		{location("H", "TCP", "127.0.0.1:80"), strings.Replace(location("H", "TCP", "127.0.0.1:80"), "{", `{"enabled": false, `, 1), ""},
		{location("H", "TCP", "127.0.0.1:0"), location("H", "TCP", "127.0.0.1:0"), ""},
		{location("H", "TCP", "10.0.0.1:80"), location("H", "TCP", "10.0.0.2:80"), ""},
	} {
		found, err := adapters.All().Check([]byte(`{"receive location": {"First": ` + c.first + `, "Second": ` + c.second + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range found {
			if len(p.Other) > 0 {
				got = strings.TrimPrefix(p.Message, "it listens at ")
			}
		}
		if got != c.want {
			t.Errorf("%s and %s: %q, want %q", c.first, c.second, got, c.want)
		}
	}
}

func TestEachAdapterKeepsTheRulesOfDefinitions(t *testing.T) {
	t.Parallel()
	for _, kind := range adapters.All().Kinds() {
		adaptertest.CheckKind(t, kind)
	}
}

func TestAProgramAddsAdaptersOfItsOwn(t *testing.T) {
	t.Parallel()
	nothing := func(adapter.Endpoint) (adapter.Sender, error) { return nil, errors.New("it sends nothing") }
	known, err := adapters.With(adapter.Kind{Name: "PIGEON", NewSender: nothing})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"PIGEON", "FILE", "Dynamic"} {
		if _, isKnown := known.Find(name); !isKnown {
			t.Errorf("there is no adapter %s", name)
		}
	}
	for _, kind := range []adapter.Kind{{Name: "FILE", NewSender: nothing}, {Name: "Dynamic", NewSender: nothing}, {Name: "IDLE"}, {NewSender: nothing}} {
		if _, err := adapters.With(kind); err == nil {
			t.Errorf("an adapter %q is taken", kind.Name)
		}
	}
}
