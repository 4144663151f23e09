package file

import (
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

func TestThePageOfAdaptersSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	adaptertest.CheckPage(t, Kind, adapter.Receive, folder.Defaults())
	adaptertest.CheckPage(t, Kind, adapter.Send, sendDefaults())
	adaptertest.CheckExamples(t, Kind)
}
