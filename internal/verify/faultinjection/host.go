package faultinjection

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// Host accepts connections, greets, and sends the answers that it is given. It keeps no rule of the protocol by itself.
type Host struct {
	pb.UnimplementedBrokerServer

	// Answer returns what to send for a frame that is not a Hello: nothing, or any frames.
	answer  func(question *pb.Frame) []*pb.Frame
	address string
	grpc    *grpc.Server
	served  chan error
}

// Listen opens a host on a free port of this machine; Close it. Without TLS settings it speaks in plaintext.
func Listen(ctx context.Context, settings *tls.Config, answer func(question *pb.Frame) []*pb.Frame) (*Host, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a host: %w", err)
	}
	secured := insecure.NewCredentials()
	if settings != nil {
		settings = settings.Clone()
		settings.ClientAuth = tls.RequireAnyClientCert
		secured = credentials.NewTLS(settings)
	}
	h := &Host{
		answer: answer, address: listener.Addr().String(), grpc: grpc.NewServer(grpc.Creds(secured), grpc.MaxRecvMsgSize(1<<30)),
		served: make(chan error, 1),
	}
	pb.RegisterBrokerServer(h.grpc, h)
	go func() { h.served <- h.grpc.Serve(listener) }()
	return h, nil
}

// Address is where it listens, host:port.
func (h *Host) Address() string { return h.address }

// Close cuts all connections.
func (h *Host) Close() error {
	h.grpc.Stop()
	return <-h.served
}

// Exchange serves one connection. gRPC calls it.
func (h *Host) Exchange(stream grpc.BidiStreamingServer[pb.Frame, pb.Frame]) error {
	for {
		question, err := stream.Recv()
		if err != nil {
			return err
		}
		answers := []*pb.Frame{}
		if question.GetKind() == pb.Kind_KIND_HELLO {
			payload, err := wire.EncodeHello(wire.Hello{
				Lowest: wire.LowestVersion, Highest: wire.HighestVersion, Software: "intruder", Window: 8 << 20,
				LargestPayload: wire.LargestPayload, Brokers: []wire.Broker{{Instance: parley.UUID{0xe1}}},
			})
			if err != nil {
				return err
			}
			answers = append(answers, wire.Pack(pb.Kind_KIND_HELLO, 0, payload, false))
		} else {
			answers = append(answers, h.answer(question)...)
		}
		for _, frame := range answers {
			if err := stream.Send(frame); err != nil {
				return err
			}
		}
	}
}
