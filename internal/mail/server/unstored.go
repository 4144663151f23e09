package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// unstoredPatience bounds how long the record of what is not stored may take: a client waits for it.
const unstoredPatience = 5 * time.Second

// discarded records a message that was taken and that a filter wanted dropped. No other part would know of it.
func (s *Server) discarded(ctx context.Context, envelope message.Envelope, size int64) {
	event := mailstore.Unstored{
		Event: "DROP", Source: "AGENT", Text: "discarded by a filter", Connector: envelope.Connector, Sender: envelope.Sender,
		HeaderMessageID: envelope.HeaderMessageID, NetworkMessageID: envelope.NetworkMessageID, Subject: envelope.Subject,
		Helo: envelope.Helo, Bytes: size, ReceivedAt: &envelope.ReceivedAt,
	}
	if envelope.Peer.IsValid() {
		event.ClientIP = envelope.Peer.Unmap().WithZone("").String()
	}
	if envelope.Local.IsValid() {
		event.ArrivedAt = envelope.Local.String()
	}
	for _, recipient := range envelope.Recipients {
		event.Recipients = append(event.Recipients, recipient.Address)
	}
	s.track(ctx, event)
}

// badFile gives the function that records the files of a folder that are no messages.
func (s *Server) badFile(ctx context.Context, name string, folder folderSettings) func(file string, reason error) {
	source := message.SourcePickup
	if folder.isReplay {
		source = message.SourceReplay
	}
	return func(file string, reason error) {
		s.track(ctx, mailstore.Unstored{
			Event: "BADMAIL", Source: source, Connector: name, Text: filepath.Join(folder.Path, file) + ": " + reason.Error(),
		})
	}
}

func (s *Server) track(ctx context.Context, event mailstore.Unstored) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unstoredPatience)
	defer cancel()
	if err := mailstore.TrackUnstored(ctx, s.config.Pool, event); err != nil {
		s.config.Logger.Error("what became of a message that was not stored could not be recorded",
			"event", event.Event, "source", event.Source, "text", event.Text, "error", err)
	}
}
