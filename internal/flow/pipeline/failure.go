package pipeline

import (
	"errors"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
	"github.com/parley-broker/parley/internal/flow/text"
)

// Codes of parley_flow.failure_codes that pipelines give.
const (
	codePipeline    = "receive.pipeline"
	codeDisassemble = "receive.disassemble"
	codeRecord      = "receive.record"
	codeValidate    = "receive.validate"
	codeCharset     = "receive.charset"
	codeEmpty       = "receive.empty"
	codeTooLarge    = "receive.too-large"
	codeIncomplete  = "receive.incomplete"
	codeSend        = "send.pipeline"
)

// codeOf is the code of an error that a component for receiving gave.
func codeOf(err error, otherwise string) string {
	switch {
	case errors.Is(err, text.ErrCharset):
		return codeCharset
	case errors.Is(err, jsonbody.ErrTooLong):
		return codeTooLarge
	}
	return otherwise
}

// failed makes a failure that no other try helps, of what a component refused.
func failed(code, component string, err error) error {
	if f, is := errors.AsType[*adapter.Failure](err); is {
		return f
	}
	if component != "" {
		err = &refused{component, err}
	}
	return &adapter.Failure{Code: code, Err: err, Permanent: true}
}

// refused is an error of a component. Its text is made when it is asked for: the fault in it gets its file and number later.
type refused struct {
	component string
	err       error
}

func (r *refused) Error() string { return r.component + ": " + r.err.Error() }

func (r *refused) Unwrap() error { return r.err }

// refusal is a failure without a place.
func refusal(code, component, message, remedy string) error {
	return failed(code, component, &fault.Fault{Message: message, Remedy: remedy})
}
