package link

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// answer delivers a question and sends the answer. The error ends the connection.
func (r *reception) answer(ctx context.Context, c class, frame *pb.Frame) error {
	payload, err := wire.Unpack(frame, r.server.config.LargestPayload)
	if err != nil {
		return malformed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.server.config.DeliverTimeout)
	defer cancel()
	if c == forFragments {
		return r.answerFragment(ctx, frame.GetId(), payload)
	}
	return r.answerBatch(ctx, frame.GetId(), payload)
}

func (r *reception) answerBatch(ctx context.Context, id uint64, payload []byte) error {
	batch, err := wire.DecodeBatch(payload)
	if err != nil {
		return malformed(err)
	}
	r.traffic.fragmentsReceived.Add(int64(messages(batch.Runs)))
	batch.Identity, batch.Name = r.identity, r.name
	results, err := r.server.deliverer.Deliver(ctx, batch)
	if err == nil && len(results) != len(batch.Runs) {
		err = errors.New("not one result for each run")
	}
	var answer []byte
	if err == nil {
		answer, err = wire.EncodeResults(results)
	}
	if err != nil {
		return r.sendFailure(id, err)
	}
	if err := r.send(pb.Kind_KIND_RESULTS, id, answer); err != nil {
		return err
	}
	reportAcks(ctx, r.server.config.Log, transport.AckSent, r.socket.RemoteAddr().String(), batch.Runs, results)
	return nil
}

// reportAcks logs what was acknowledged, at level debug.
func reportAcks(
	ctx context.Context, log *slog.Logger, event transport.TraceEvent, address string,
	runs []transportstore.Run, results []transportstore.Result,
) {
	if !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for i, run := range runs {
		if results[i].Outcome != transportstore.Accepted {
			continue
		}
		event.In(log).Debug("acknowledged", "address", address, "conversation_id", run.ConversationID, "from_initiator", run.FromInitiator,
			"first_sequence", run.FirstSequence, "next_sequence", results[i].Next, "priority", run.Priority)
	}
}

func (r *reception) answerFragment(ctx context.Context, id uint64, payload []byte) error {
	fragment, passage, err := wire.DecodeFragment(payload)
	if err != nil {
		return malformed(err)
	}
	r.traffic.fragmentsReceived.Add(1)
	passage.Identity, passage.Name = r.identity, r.name
	stored, err := r.server.deliverer.DeliverFragment(ctx, fragment, passage)
	var answer []byte
	if err == nil {
		answer, err = wire.EncodeStored(stored)
	}
	if err != nil {
		return r.sendFailure(id, err)
	}
	return r.send(pb.Kind_KIND_STORED, id, answer)
}

// sendFailure answers that the outcome is unknown.
func (r *reception) sendFailure(id uint64, cause error) error {
	r.server.config.Log.Warn("cannot deliver what came", "address", r.socket.RemoteAddr().String(), "error", cause)
	notice := wire.Notice{Number: transport.FailureToDispatch, Text: cause.Error()}
	if failure := (*transport.TransmissionError)(nil); errors.As(cause, &failure) {
		notice = wire.Notice{Number: failure.Number, Text: failure.Err.Error()}
	}
	payload, err := wire.EncodeFailure(notice)
	if err != nil {
		return err
	}
	return r.send(pb.Kind_KIND_FAILURE, id, payload)
}

// send puts one frame on the stream.
func (r *reception) send(kind pb.Kind, id uint64, payload []byte) error {
	frame := wire.Pack(kind, id, payload, r.compress)
	r.sending.Lock()
	defer r.sending.Unlock()
	r.traffic.sends.Add(1)
	return r.stream.Send(frame)
}

// grant changes what the peer may have open, and reports it unless the peer learns it otherwise.
func (r *reception) grant(window int64, isReported bool) {
	r.mu.Lock()
	isNew := r.window != window
	r.window = window
	r.windowMost = max(r.windowMost, window)
	r.mu.Unlock()
	if isNew && isReported {
		select {
		case r.regrant <- struct{}{}:
		default:
		}
	}
}

func (r *reception) sendGrant() error {
	r.mu.Lock()
	window := r.window
	r.mu.Unlock()
	payload, err := wire.EncodeGrant(window)
	if err != nil {
		return err
	}
	return r.send(pb.Kind_KIND_GRANT, 0, payload)
}

func (r *reception) sendGoodbye() error {
	payload, err := wire.EncodeGoodbye(wire.Notice{Number: transport.ClosedByFarEnd, Text: "the server stops"})
	if err != nil {
		return err
	}
	return r.send(pb.Kind_KIND_GOODBYE, 0, payload)
}

func (r *reception) state() ConnectionState {
	state := ConnectionState{
		ConnectionID:         r.id,
		State:                LoggedIn,
		LoginTime:            r.loggedIn,
		IsAccept:             true,
		AuthenticationMethod: r.authentication,
		EncryptionAlgorithm:  r.algorithm,
		Identity:             r.identity,
		Brokers:              r.hello.Brokers,
		Software:             r.hello.Software,
		Version:              r.agreed.Version,
	}
	if r.isOver.Load() {
		state.State = Closed
	}
	r.traffic.fill(&state, r.socket)
	r.mu.Lock()
	defer r.mu.Unlock()
	state.ReceivesPosted, state.OpenBytes, state.Window = r.open, r.openBytes, r.window
	state.IsReceiveFlowControlled = r.openBytes+smallestWindow > r.window && r.open > 0
	return state
}

// count records how a connection has ended.
func (s *Server) count(err error) {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.ResourceExhausted, codes.Internal:
		s.corrupted.Add(1)
	case codes.FailedPrecondition:
		s.refusedVersions.Add(1)
	default:
		if errors.Is(err, errEnoughPeers) {
			s.refusedPeers.Add(1)
		}
	}
}

// reasonOf states for people why a connection has ended.
func reasonOf(err error) string {
	if err == nil {
		return "the peer has finished"
	}
	return status.Convert(err).Message()
}
