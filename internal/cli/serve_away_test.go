//go:build unix

package cli

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/parleytest"
)

// cable leads to a server, and can be cut: then it counts who tries to get through.
type cable struct {
	listener net.Listener
	network  string
	address  string
	attempts atomic.Int32

	mu      sync.Mutex
	isCut   bool
	through map[net.Conn]bool
}

// newCable leads to the server of a DSN, and gives a DSN that leads over it.
func newCable(t *testing.T, dsn string) (_ *cable, over string) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: listener, through: map[net.Conn]bool{}}
	c.network, c.address = pgconn.NetworkAddress(config.Host, config.Port)
	var running sync.WaitGroup
	running.Go(func() { c.carry(t.Context()) })
	t.Cleanup(func() {
		_ = listener.Close()
		c.cut()
		running.Wait()
	})
	return c, "postgres://" + config.User + ":" + config.Password + "@" + listener.Addr().String() + "/" + config.Database
}

func (c *cable) carry(ctx context.Context) {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far := c.reach(ctx, near)
		if far == nil {
			_ = near.Close()
			continue
		}
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close()
			}()
		}
	}
}

// reach connects to the server, unless the cable is cut: then it counts.
func (c *cable) reach(ctx context.Context, near net.Conn) (far net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		c.attempts.Add(1)
		return nil
	}
	far, err := new(net.Dialer).DialContext(ctx, c.network, c.address)
	if err != nil {
		return nil
	}
	c.through[near], c.through[far] = true, true
	return far
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for conn := range c.through {
		_ = conn.Close()
	}
	clear(c.through)
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = false
}

func TestServeTriesToConnectAtMostTenTimesASecondWhileItsServerIsAway(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args []string
		logs string
	}{
		{"broker", []string{"serve"}, leads},
		{"broker and mail", []string{"serve", "--mail"}, leads},
		{"mail", []string{"mail", "serve"}, "mail transport runs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			direct := parleytest.DSN(t, parleytest.Database(t))
			s := newServed(t, direct)
			if err := s.try(func(conn *pgx.Conn) error {
				_, err := conn.Exec(t.Context(), `select parley_mail.apply('{"accepted domain": {"example.org": {}}}')`)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			c, over := newCable(t, direct)
			d := startProcess(t, test.logs, append(test.args, "--dsn", over)...)
			if test.logs == leads {
				s.send(1, 20)
				s.awaitDone(20)
			}

			c.cut()
			const away = 6 * time.Second
			<-time.After(away)
			c.mend()
			if n := c.attempts.Load(); n < 5 || n > int32(10*(away/time.Second+1)) {
				t.Errorf("%d attempts to connect in %v", n, away)
			}
			if test.logs == leads {
				s.send(21, 40)
				s.awaitDone(40)
			}
			if d.cmd.ProcessState != nil {
				t.Error("the daemon has ended")
			}
		})
	}
}

// A daemon that is begun while its database is away waits for it.
func TestMailWaitsForADatabaseThatIsAwayAtItsStart(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"mail": {"mail", "serve"}, "broker and mail": {"serve", "--mail"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := parleytest.Database(t)
			if _, err := pool.Exec(t.Context(), `select parley_mail.apply('{"accepted domain": {"example.org": {}}}')`); err != nil {
				t.Fatal(err)
			}
			c, over := newCable(t, parleytest.DSN(t, pool))
			c.cut()
			d := startProcess(t, "the database of mail cannot be reached yet", append(args, "--dsn", over)...)
			parleytest.Until(t, "it tries again", func() bool { return c.attempts.Load() > 3 })
			c.mend()
			d.log.Await(t, "the configuration of mail is in use")
			d.signal(os.Interrupt)
			d.log.Await(t, "has stopped")
		})
	}
}

// A role without the right to serve is no outage: the daemon says so and ends, also when it had to wait for the database.
func TestMailThatMayNotServeEndsOnceItsDatabaseIsThere(t *testing.T) {
	t.Parallel()
	c, over := newCable(t, parleytest.DSN(t, parleytest.EmptyDatabase(t)))
	c.cut()
	d := startProcess(t, "cannot be reached yet", "mail", "serve", "--dsn", over)
	c.mend()
	// The log of the outage has the same words as that of the end, so the end is awaited itself.
	ended := make(chan error, 1)
	go func() { ended <- d.cmd.Wait() }()
	if err := parleytest.Receive(t, ended, "the end of the daemon"); err == nil {
		t.Error("it ended as if all was well")
	}
	d.log.Await(t, "\nparley: ")
}

// A message that is put while the server is away from the follower comes once he reaches it again.
func TestTakeThatFollowsConnectsAnew(t *testing.T) {
	t.Parallel()
	direct := parleytest.DSN(t, parleytest.Database(t))
	c, over := newCable(t, direct)
	conn, err := pgx.Connect(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	put := func(statement string) {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	put("select parley.create_queue('jobs', kind => 'SIMPLE'), parley.put('jobs', 'first')")
	printed := &logtest.Log{}
	d := &daemonProcess{t: t, log: &logtest.Log{}, cmd: exec.Command("parley", "take", "jobs", "--follow", "--dsn", over)}
	d.cmd.Stdout, d.cmd.Stderr = printed, d.log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	})
	parleytest.Until(t, "the first message is printed", func() bool { return strings.Contains(printed.String(), "first") })
	c.cut()
	parleytest.Until(t, "it tries again", func() bool { return c.attempts.Load() > 2 })
	put("select parley.put('jobs', 'second')")
	c.mend()
	parleytest.Until(t, "the second message is printed", func() bool { return strings.Contains(printed.String(), "second") })
	d.log.Await(t, "connecting anew")
}
