package web

import (
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func TestThePageOfAdaptersSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	adaptertest.CheckPage(t, New(), adapter.Receive, defaultReceive(), secretToken, secretKey, secretCertificate, secretKeyOfTLS)
	adaptertest.CheckPage(t, New(), adapter.Send, defaultSend(), secretToken, secretPassword, secretKey, secretCertificate, secretKeyOfTLS,
		secretAuthorities)
}

func TestTheExamplesOfThePageAreGood(t *testing.T) {
	t.Parallel()
	adaptertest.CheckExamples(t, New())
}
