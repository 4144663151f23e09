package adapter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

func TestDefinitionsReachOnlyThePermitted(t *testing.T) {
	p := adapter.Permission{
		Folders: []string{"/data/orders"}, Listen: []string{"127.0.0.1:*", "*:8080"}, Connect: []string{"*:443", "erp.example:9000"},
		Secrets: []string{"env:ORDERS_*", "file:/etc/orders/*", "command:/usr/bin/secret"},
	}
	connect := func(address string) func() error {
		return func() error {
			_, err := p.CheckConnect(address)
			return err
		}
	}
	for name, c := range map[string]struct {
		check     func() error
		permitted bool
	}{
		"a folder below":            {func() error { return p.CheckFolder("/data/orders/in") }, true},
		"a folder beside":           {func() error { return p.CheckFolder("/data/orders2") }, false},
		"a folder above by dots":    {func() error { return p.CheckFolder("/data/orders/../..") }, false},
		"a port of the machine":     {func() error { return p.CheckListen("127.0.0.1:9000") }, true},
		"a port that is named":      {func() error { return p.CheckListen("0.0.0.0:8080") }, true},
		"another port":              {func() error { return p.CheckListen("0.0.0.0:8081") }, false},
		"a public address":          {connect("1.1.1.1:443"), true},
		"a private address":         {connect("10.0.0.1:443"), false},
		"an address of the machine": {connect("127.0.0.1:443"), false},
		"a mapped address":          {connect("[::ffff:127.0.0.1]:443"), false},
		"a host that is named":      {connect("ERP.example:9000"), true},
		"another port of it":        {connect("erp.example:9001"), false},
		"a variable":                {func() error { return p.CheckSecret("env:ORDERS_KEY") }, true},
		"another variable":          {func() error { return p.CheckSecret("env:PGPASSWORD") }, false},
		"a file":                    {func() error { return p.CheckSecret("file:/etc/orders/key") }, true},
		"a file above by dots":      {func() error { return p.CheckSecret("file:/etc/orders/../shadow") }, false},
		"a program":                 {func() error { return p.CheckSecret("command:/usr/bin/secret") }, true},
		"a program with arguments":  {func() error { return p.CheckSecret("command:/usr/bin/secret x") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.check()
			if c.permitted && err != nil || !c.permitted && !errors.Is(err, adapter.ErrNotPermitted) {
				t.Errorf("the check gave %v, permitted should be %v", err, c.permitted)
			}
		})
	}
}

// An entry that could never permit anything is refused when the node starts, and not passed over.
func TestPermissionsThatPermitNothingAreRefused(t *testing.T) {
	t.Parallel()
	good := adapter.Permission{
		Folders: []string{"/data"}, Listen: []string{"*:8080"}, Connect: []string{"*:443", "[::1]:*"},
		Secrets: []string{"env:A_*", "file:/etc/a", "command:/bin/a"},
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, p := range map[string]adapter.Permission{
		"--allow-folder \"data\" is no full path":         {Folders: []string{"/a", "data"}},
		"--allow-listen \"8080\" is no host:port":         {Listen: []string{"8080"}},
		"--allow-connect \"erp.example\" is no host:port": {Connect: []string{"erp.example"}},
		"such as env:KEY": {Secrets: []string{"KEY"}},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %v", p, err)
		}
	}
}
