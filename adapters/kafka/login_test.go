package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/parley-broker/parley/adapters/endpoint/endpointtest"
)

func TestAServerIsTrustedAndLogsInByItsSecrets(t *testing.T) {
	t.Parallel()
	for login, method := range map[string]string{plainLogin: "PLAIN", scramSHA512: "SCRAM-SHA-512"} {
		t.Run(login, func(t *testing.T) {
			t.Parallel()
			config, authority := endpointtest.Server(t)
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.TLS(config), kfake.EnableSASL(),
				kfake.Superuser(method, "parley", "the-password"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Close)
			hosts := cluster.ListenAddrs()
			for i, host := range hosts {
				hosts[i] = endpointtest.Host + host[strings.LastIndexByte(host, ':'):]
			}
			settings := `{"login": "` + login + `", "user": "parley", "timeout": "3 seconds"`
			secured, located := endpointOf(hosts, settings+`}`), endpointOf(hosts, settings+`, "group": "parley"}`)
			plain := secured.Address
			secured.Address = strings.Replace(plain, "kafka://", "kafkas://", 1)
			located.Address = secured.Address
			// The brokers name themselves by their addresses.
			secured.Permission.Connect = append(secured.Permission.Connect, cluster.ListenAddrs()...)
			located.Permission.Connect = secured.Permission.Connect
			endpointtest.Check(t, endpointtest.Login{
				Kind: Kind, Send: secured, Receive: located, Wrong: passwordSecret, Plain: plain,
				Good: map[string]string{"password": "the-password", "authority": authority},
			})
		})
	}
}
