package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// natsStream keeps what is published on its subject of the same name.
const natsStream = "jobs"

// natsPeer is JetStream of NATS in this process, with the sync of its files that is asked for: always, or as the server does by default,
// every two minutes.
func natsPeer(broker *jetStream) bench.Peer {
	name, promise := "nats", "a crash of the machine loses what was acknowledged in the last two minutes; "
	if broker.isSynchronized {
		name, promise = "nats-sync", ""
	}
	return bench.Peer{
		Name:        name,
		Short:       "the same through NATS JetStream in this process, sync " + broker.sync() + ": publish and wait for the answer",
		Promise:     promise + "not in the transaction of the sender's data: a rollback does not take the message back, and it may come twice",
		Version:     ofModule("github.com/nats-io/nats-server/v2"),
		Connections: 1,
		Prepare:     func(ctx context.Context, _ *pgx.Conn) error { return broker.start(ctx) },
		Count:       func(ctx context.Context, _ *pgx.Conn) (bench.PeerCount, error) { return broker.count(ctx) },
		Inserter: func() (bench.InsertJob, error) {
			return func(ctx context.Context, _ pgx.Tx, number int64, padding string) error {
				_, err := broker.stream.Publish(ctx, natsStream, fmt.Appendf(nil, "%d %s", number, padding))
				return err
			}, nil
		},
		Work: func(ctx context.Context, _ *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
			return broker.consume(ctx, workers, work)
		},
	}
}

// jetStream is a server of our own.
type jetStream struct {
	isSynchronized bool
	folder         string
	server         *server.Server
	conn           *nats.Conn
	stream         jetstream.JetStream
}

func (j *jetStream) sync() string {
	if j.isSynchronized {
		return "always"
	}
	return "by default"
}

func (j *jetStream) start(ctx context.Context) (err error) {
	if j.server != nil {
		return nil
	}
	if j.folder, err = os.MkdirTemp("", "parley-bench-nats-"); err != nil {
		return fmt.Errorf("make a folder for NATS: %w", err)
	}
	j.server, err = server.NewServer(&server.Options{
		JetStream: true, StoreDir: j.folder, DontListen: true, SyncAlways: j.isSynchronized, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return fmt.Errorf("make a server of NATS: %w", err)
	}
	j.server.Start()
	if !j.server.ReadyForConnections(readyTimeout) {
		return errors.New("the server of NATS is not ready")
	}
	if j.conn, err = nats.Connect("", nats.InProcessServer(j.server)); err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	if j.stream, err = jetstream.New(j.conn); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	_, err = j.stream.CreateStream(ctx, jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{natsStream}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return fmt.Errorf("make a stream: %w", err)
	}
	return nil
}

// count asks the stream: it numbers what comes, and has what is not acknowledged.
func (j *jetStream) count(ctx context.Context) (bench.PeerCount, error) {
	stream, err := j.stream.Stream(ctx, natsStream)
	if err != nil {
		return bench.PeerCount{}, fmt.Errorf("find the stream: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return bench.PeerCount{}, fmt.Errorf("ask the stream what it counts: %w", err)
	}
	return bench.PeerCount{In: int64(info.State.LastSeq), Left: int64(info.State.Msgs)}, nil
}

// consume works on so many messages side by side, and acknowledges each, which the server confirms.
func (j *jetStream) consume(ctx context.Context, workers int, work bench.WorkJob) (func(context.Context) error, error) {
	stream, err := j.stream.Stream(ctx, natsStream)
	if err == nil {
		err = stream.Purge(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("purge the stream: %w", err)
	}
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxAckPending: workers,
	})
	if err != nil {
		return nil, fmt.Errorf("make a consumer: %w", err)
	}
	failed := make(chan error, 1)
	slots := make(chan bool, workers)
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		slots <- true
		go func() {
			defer func() { <-slots }()
			number, _, _ := strings.Cut(string(m.Data()), " ")
			n, err := strconv.ParseInt(number, 10, 64)
			if err == nil {
				err = work(ctx, n)
			}
			if err == nil {
				err = m.DoubleAck(ctx)
			}
			if err != nil && ctx.Err() == nil {
				select {
				case failed <- err:
				default:
				}
			}
		}()
	}, jetstream.PullMaxMessages(workers))
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	return func(context.Context) error {
		consuming.Drain()
		<-consuming.Closed()
		for range workers {
			slots <- true
		}
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}, nil
}

func (j *jetStream) close() error {
	if j.server == nil {
		return nil
	}
	if j.conn != nil {
		j.conn.Close()
	}
	j.server.Shutdown()
	j.server.WaitForShutdown()
	j.server = nil
	return os.RemoveAll(j.folder)
}
