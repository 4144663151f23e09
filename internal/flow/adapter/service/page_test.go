package service

import (
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func TestThePageOfAdaptersSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	adaptertest.CheckPage(t, Kind, adapter.Receive, defaultReceive())
	adaptertest.CheckPage(t, Kind, adapter.Send, defaultSend())
	adaptertest.CheckExamples(t, Kind)
}
