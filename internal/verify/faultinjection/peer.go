package faultinjection

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is bent here
	"google.golang.org/grpc/mem"

	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// Peer dials a server and sends what it is given. It keeps no rule of the protocol by itself.
type Peer struct {
	client *grpc.ClientConn
	stream grpc.BidiStreamingClient[pb.Frame, pb.Frame]
	cancel context.CancelFunc
}

// Dial opens the stream; no Hello is sent yet. Without TLS settings it speaks in plaintext.
func Dial(ctx context.Context, address string, settings *tls.Config) (*Peer, error) {
	dialer := func(ctx context.Context, address string) (net.Conn, error) {
		if settings == nil {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
		settings := settings.Clone()
		settings.NextProtos = []string{"h2"}
		return (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", address)
	}
	client, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialer),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bent{encoding.GetCodecV2("proto")}), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := pb.NewBrokerClient(client).Exchange(ctx)
	if err != nil {
		cancel()
		client.Close()
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return &Peer{client: client, stream: stream, cancel: cancel}, nil
}

// Close cuts the connection.
func (p *Peer) Close() {
	p.cancel()
	p.client.Close()
}

// Hello sends one, and returns the one of the server.
func (p *Peer) Hello(ours wire.Hello) (theirs wire.Hello, err error) {
	payload, err := wire.EncodeHello(ours)
	if err != nil {
		return theirs, err
	}
	if err := p.Send(wire.Pack(pb.Kind_KIND_HELLO, 0, payload, false)); err != nil {
		return theirs, err
	}
	frame, err := p.Receive()
	if err != nil {
		return theirs, err
	}
	return wire.DecodeHello(frame.GetPayload())
}

// Send sends any frame.
func (p *Peer) Send(frame *pb.Frame) error { return p.stream.Send(frame) }

// SendBytes sends any bytes in the place of a frame.
func (p *Peer) SendBytes(text []byte) error { return p.stream.SendMsg(text) }

// Receive returns the next frame of the server. The error is the server's, as a status of gRPC, when it has closed the stream.
func (p *Peer) Receive() (*pb.Frame, error) { return p.stream.Recv() }

// bent is a codec that lets bytes through as they are.
type bent struct{ encoding.CodecV2 }

func (b bent) Marshal(v any) (mem.BufferSlice, error) {
	if text, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(text)}, nil
	}
	return b.CodecV2.Marshal(v)
}
