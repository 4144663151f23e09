package bench_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/parleytest"
)

// farAway gives an address behind which a server is so far away as the delay of each answer says.
func farAway(t *testing.T, dsn string, delay time.Duration) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(context.Background(), network, address)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(far, near)
				_ = far.Close()
			}()
			go func() {
				late(near, far, delay)
				_ = near.Close()
			}()
		}
	}()
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, _ := strconv.Atoi(port)
	return "host=" + host + " port=" + strconv.Itoa(number) + " user=" + config.User + " dbname=" + config.Database + " sslmode=disable"
}

// late passes on what comes, each piece after a delay.
func late(to io.Writer, from io.Reader, delay time.Duration) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		<-time.After(delay)
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// A client that has each answer 10 ms late leaves its sessions idle: more of them help, and no setting of the server.
func TestStarvedClientIsNamed(t *testing.T) {
	t.Parallel()
	dsn := farAway(t, parleytest.DSN(t, parleytest.EmptyDatabase(t)), 10*time.Millisecond)
	a := limited(t, dsn, func(c *bench.Config) { c.Sessions, c.Conversations = 3, 3 })
	if a.Limit.Kind != bottleneck.Client || a.Limit.Change.Setting != bottleneck.SettingSessions {
		t.Errorf("found %+v of %+v", a.Limit, a.Waits)
	}
}
