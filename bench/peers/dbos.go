package main

import (
	"bufio"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/hop"
)

// dbosVariable makes this program a worker of DBOS instead of Parley.
const dbosVariable = "PARLEY_BENCH_DBOS"

// dbosPeer is DBOS Transact with a workflow for each body, in the same PostgreSQL.
func dbosPeer() bench.HopPeer {
	return bench.HopPeer{
		Name: "dbos",
		Short: "DBOS Transact for Go 1.8.0: a workflow for each body in the same PostgreSQL, of two steps: receive, send; " +
			"a body is acknowledged when its workflow is stored",
		Promise:      "no subscriptions by content, no tracking of messages; a crash between delivery and record delivers again",
		Orchestrates: true,
		Frames:       hop.Lengths{},
		Missing:      func() string { return "" },
		Start: func(ctx context.Context, place bench.HopPlace) (func(context.Context) error, error) {
			program, err := os.Executable()
			if err != nil {
				return nil, fmt.Errorf("find this program: %w", err)
			}
			e, err := startEngine(ctx, exec.Command(program), dbosVariable+"=1", "PEER_LISTEN="+place.Listen, "PEER_TARGET="+place.Target,
				"PEER_WORKERS="+strconv.Itoa(place.Workers), "PEER_DSN="+keywordDSN(place.Database))
			if err != nil {
				return nil, err
			}
			return e.stop, nil
		},
	}
}

// keywordDSN is the address of a database in keywords and values.
func keywordDSN(config *pgx.ConnConfig) string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	var words []string
	for _, word := range []struct{ name, value string }{
		{"host", config.Host},
		{"port", strconv.Itoa(int(config.Port))},
		{"dbname", config.Database},
		{"user", config.User},
		{"password", config.Password},
	} {
		if word.value != "" {
			words = append(words, word.name+"='"+quote.Replace(word.value)+"'")
		}
	}
	return strings.Join(words, " ")
}

// runDBOS runs workflows until the standard input of this process ends.
func runDBOS(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers, err := strconv.Atoi(os.Getenv("PEER_WORKERS"))
	if err != nil {
		return fmt.Errorf("read the number of workers: %w", err)
	}
	engine, err := dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
		AppName: "hop", DatabaseURL: os.Getenv("PEER_DSN"), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return fmt.Errorf("prepare DBOS: %w", err)
	}
	w := &workflow{engine: engine, target: os.Getenv("PEER_TARGET"), links: make(chan *targetLink, workers)}
	for range workers {
		w.links <- &targetLink{}
	}
	dbos.RegisterWorkflow(engine, w.run, dbos.WithWorkflowName("forward"))
	if err := dbos.Launch(engine); err != nil {
		return fmt.Errorf("launch DBOS: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", os.Getenv("PEER_LISTEN"))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
		_ = listener.Close()
	}()
	fmt.Fprintln(os.Stdout, readyLine)
	var serving sync.WaitGroup
	for {
		conn, err := listener.Accept()
		if err != nil {
			break
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		serving.Go(func() {
			defer stop()
			defer func() { _ = conn.Close() }()
			if err := w.serve(conn); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	serving.Wait()
	return dbos.Shutdown(engine, stopTimeout/2)
}

// workflow forwards bodies to a target, each in two steps that DBOS keeps.
type workflow struct {
	engine dbos.Context
	target string
	links  chan *targetLink // as many as there are deliveries at once
}

// serve starts a workflow for each body of a connection, and acknowledges the body when its workflow is stored. The next body of the
// connection begins when the workflow has ended, so that what is on its way is bounded.
func (w *workflow) serve(conn net.Conn) error {
	in := bufio.NewReader(conn)
	var buffer []byte
	for {
		body, answer, err := hop.Lengths{}.ReadBody(in, buffer)
		if err != nil {
			return nil //nolint:nilerr // the generator has closed
		}
		buffer = body[:cap(body)]
		handle, err := dbos.RunWorkflow(w.engine, w.run, string(body))
		if err != nil {
			return fmt.Errorf("start a workflow: %w", err)
		}
		if _, err := conn.Write(answer); err != nil {
			return fmt.Errorf("acknowledge: %w", err)
		}
		if _, err := handle.GetResult(); err != nil {
			return fmt.Errorf("run a workflow: %w", err)
		}
	}
}

// run is the workflow: it finds of which type the body is, as a location does, and sends it.
func (w *workflow) run(ctx dbos.Context, body string) (string, error) {
	typed, err := dbos.RunAsStep(ctx, func(context.Context) (string, error) { return typeOf(body) }, dbos.WithStepName("receive"))
	if err != nil {
		return "", err
	}
	return dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) { return typed, w.send(ctx, body) }, dbos.WithStepName("send"))
}

// typeOf is the name of the root of a document.
func typeOf(body string) (string, error) {
	decoder := xml.NewDecoder(strings.NewReader(body))
	for {
		token, err := decoder.Token()
		if err != nil {
			return "", fmt.Errorf("read the document: %w", err)
		}
		if root, ok := token.(xml.StartElement); ok {
			return root.Name.Space + "#" + root.Name.Local, nil
		}
	}
}

// targetLink is a place for a connection to the target.
type targetLink struct {
	conn net.Conn
	in   *bufio.Reader
}

// send sends a body over a connection that is free, and waits for its acknowledgement.
func (w *workflow) send(ctx context.Context, body string) error {
	link := <-w.links
	defer func() { w.links <- link }()
	if link.conn == nil {
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", w.target)
		if err != nil {
			return fmt.Errorf("connect to the target: %w", err)
		}
		link.conn, link.in = conn, bufio.NewReader(conn)
	}
	err := errors.Join(link.conn.SetDeadline(time.Now().Add(readyTimeout)), hop.Lengths{}.WriteBody(link.conn, []byte(body)))
	if err == nil {
		err = hop.Lengths{}.ReadAcknowledgement(link.in)
	}
	if err != nil {
		_ = link.conn.Close()
		link.conn = nil
		return fmt.Errorf("send to the target: %w", err)
	}
	return nil
}
