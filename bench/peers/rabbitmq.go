package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// rabbitVariable names a RabbitMQ that is there already, amqp://user:password@host:port/. Its queue parley-bench is purged.
const rabbitVariable = "PARLEY_BENCH_RABBITMQ"

// rabbitQueue is a quorum queue: what is confirmed is on disk.
const rabbitQueue = "parley-bench"

// rabbitPeer is RabbitMQ. A message is published and confirmed in the middle of the sender's transaction, which it does not belong to.
func rabbitPeer(broker *rabbit) bench.Peer {
	return bench.Peer{
		Name:        "rabbitmq",
		Short:       "the same through RabbitMQ: publish to a quorum queue, wait for the confirm, to a consumer that acknowledges",
		Promise:     "not in the transaction of the sender's data: a rollback does not take the message back, and it may come twice",
		Version:     rabbitVersion,
		Connections: 1,
		Missing:     broker.missing,
		Prepare:     func(ctx context.Context, _ *pgx.Conn) error { return broker.start(ctx) },
		Count: func(context.Context, *pgx.Conn) (bench.PeerCount, error) {
			waiting, err := broker.waiting()
			return bench.PeerCount{In: -1, Left: waiting}, err
		},
		Inserter: func() (bench.InsertJob, error) {
			publish, err := broker.publisher()
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, _ pgx.Tx, number int64, padding string) error {
				return publish(ctx, fmt.Appendf(nil, "%d %s", number, padding))
			}, nil
		},
		Work: func(ctx context.Context, _ *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
			if err := broker.purge(); err != nil {
				return nil, err
			}
			return broker.consume(ctx, workers, work)
		},
	}
}

// rabbit is a RabbitMQ: one that is given, or a process of our own.
type rabbit struct {
	url    string
	folder string
	server *exec.Cmd
	epmd   []string // its environment, of a process of our own
	log    bytes.Buffer
	conn   *amqp.Connection
}

// rabbitServer is where Debian and the vendor's packages have the program itself, which a user may start, and not the service.
const rabbitServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

func (r *rabbit) missing(context.Context, *pgx.Conn) (string, error) {
	if _, err := os.Stat(rabbitServer); err != nil && os.Getenv(rabbitVariable) == "" {
		return "install Debian's package rabbitmq-server, or name a RabbitMQ in " + rabbitVariable, nil
	}
	return "", nil
}

// start connects, and starts a process before where none is given.
func (r *rabbit) start(ctx context.Context) error {
	if r.conn != nil {
		return nil
	}
	if r.url = os.Getenv(rabbitVariable); r.url == "" {
		if err := r.launch(ctx); err != nil {
			return err
		}
	}
	var err error
	for begun := time.Now(); time.Since(begun) < readyTimeout && ctx.Err() == nil; sleep(ctx, 200*time.Millisecond) {
		if r.conn, err = amqp.Dial(r.url); err == nil {
			return r.declare()
		}
	}
	return errors.Join(fmt.Errorf("connect to RabbitMQ: %w: %s", err, r.log.String()), r.close())
}

func (r *rabbit) launch(ctx context.Context) error {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	if r.folder, err = os.MkdirTemp("", "parley-bench-rabbitmq-"); err != nil {
		return fmt.Errorf("make a folder for RabbitMQ: %w", err)
	}
	r.url = "amqp://guest:guest@127.0.0.1:" + ports[0] + "/"
	// A name server of its own, so that it can be ended without asking whose nodes it knows.
	r.epmd = append(os.Environ(), "ERL_EPMD_PORT="+ports[2], "ERL_EPMD_ADDRESS=127.0.0.1", "HOME="+r.folder)
	r.server = exec.Command(rabbitServer)
	r.server.Env = append(slices.Clone(r.epmd), "RABBITMQ_NODENAME=parley-bench@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+ports[0], "RABBITMQ_DIST_PORT="+ports[1], "RABBITMQ_MNESIA_BASE="+filepath.Join(r.folder, "data"),
		"RABBITMQ_LOG_BASE="+filepath.Join(r.folder, "log"), "RABBITMQ_PID_FILE="+filepath.Join(r.folder, "pid"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(r.folder, "plugins"), "RABBITMQ_CONFIG_FILE="+filepath.Join(r.folder, "rabbitmq"))
	r.server.Stdout, r.server.Stderr = &r.log, &r.log
	r.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.server.Start(); err != nil {
		return fmt.Errorf("start RabbitMQ: %w", err)
	}
	return nil
}

func (r *rabbit) declare() error {
	channel, err := r.conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	defer func() { _ = channel.Close() }()
	if _, err := channel.QueueDeclare(rabbitQueue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		return fmt.Errorf("declare the queue: %w", err)
	}
	return nil
}

func (r *rabbit) purge() error {
	channel, err := r.conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	defer func() { _ = channel.Close() }()
	if _, err := channel.QueuePurge(rabbitQueue, false); err != nil {
		return fmt.Errorf("purge the queue: %w", err)
	}
	return nil
}

// waiting is how many messages the broker has that no consumer has got. It keeps no count of what came in.
func (r *rabbit) waiting() (int64, error) {
	channel, err := r.conn.Channel()
	if err != nil {
		return 0, fmt.Errorf("open a channel: %w", err)
	}
	defer func() { _ = channel.Close() }()
	queue, err := channel.QueueDeclarePassive(rabbitQueue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	if err != nil {
		return 0, fmt.Errorf("ask for the length of the queue: %w", err)
	}
	return int64(queue.Messages), nil
}

// publisher gives a function that publishes a message and waits until the broker has confirmed it. It may be called side by side.
func (r *rabbit) publisher() (func(ctx context.Context, body []byte) error, error) {
	channel, err := r.conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err != nil {
		return nil, fmt.Errorf("open a channel for publishing: %w", err)
	}
	return func(ctx context.Context, body []byte) error {
		confirm, err := channel.PublishWithDeferredConfirmWithContext(ctx, "", rabbitQueue, false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		isConfirmed, err := confirm.WaitContext(ctx)
		if err == nil && !isConfirmed {
			err = errors.New("the broker refused the message")
		}
		return err
	}, nil
}

// consume works on so many messages side by side, and acknowledges each when its work is done.
func (r *rabbit) consume(ctx context.Context, workers int, work bench.WorkJob) (func(context.Context) error, error) {
	channel, err := r.conn.Channel()
	if err == nil {
		err = channel.Qos(workers, 0, false)
	}
	if err != nil {
		return nil, fmt.Errorf("open a channel for consuming: %w", err)
	}
	deliveries, err := channel.ConsumeWithContext(ctx, rabbitQueue, "worker", false, false, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	done := make(chan error, workers)
	for range workers {
		go func() {
			for d := range deliveries {
				number, _, _ := strings.Cut(string(d.Body), " ")
				n, err := strconv.ParseInt(number, 10, 64)
				if err == nil {
					err = work(ctx, n)
				}
				if err == nil {
					err = d.Ack(false)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	return func(context.Context) (err error) {
		err = channel.Cancel("worker", false)
		for range workers {
			err = errors.Join(err, <-done)
		}
		return errors.Join(err, channel.Close())
	}, nil
}

// close ends the connection, and the process where it is our own.
func (r *rabbit) close() (err error) {
	if r.conn != nil {
		err = r.conn.Close()
		r.conn = nil
	}
	if r.server == nil {
		return err
	}
	// The program is a script that starts Erlang's machine: both are in its group.
	_ = syscall.Kill(-r.server.Process.Pid, syscall.SIGTERM)
	kill := time.AfterFunc(stopTimeout, func() { _ = syscall.Kill(-r.server.Process.Pid, syscall.SIGKILL) })
	_ = r.server.Wait() // it ends by the signal
	kill.Stop()
	r.server = nil
	names := exec.Command("epmd", "-kill")
	names.Env = r.epmd
	_ = names.Run() // where it has not ended by itself
	return errors.Join(err, os.RemoveAll(r.folder))
}

// freePorts gives ports of loopback that nobody has at the moment.
func freePorts(ctx context.Context, n int) (ports []string, err error) {
	listeners := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
	}()
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		listeners = append(listeners, l)
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}
