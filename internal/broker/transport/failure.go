package transport

import "fmt"

// Numbers of Service Broker for why something could not be transmitted (spec 6.12).
const (
	FailureToTransmit     = 9736 // anything else
	FailureToConnect      = 9754
	FailureToReceive      = 9755
	FailureOfProtocol     = 9757 // one end does not speak as the other understands
	FailureToAuthenticate = 9758
	FailureToSend         = 9759
	ClosedForIdleness     = 9760 // is no failure
	FailureToDispatch     = 9782 // the outcome at the far side is unknown
	FailureToResolve      = 9783 // the name of the host
	FailureOfAddress      = 9785
	ClosedByFarEnd        = 9799
)

// TransmissionError is an error with the number that Service Broker has for it.
type TransmissionError struct {
	Number int
	Err    error
}

// Fail makes a TransmissionError.
func Fail(number int, format string, args ...any) *TransmissionError {
	return &TransmissionError{Number: number, Err: fmt.Errorf(format, args...)}
}

// Error begins with the number.
func (f *TransmissionError) Error() string { return fmt.Sprintf("%d: %s", f.Number, f.Err) }

// Unwrap gives the error behind the number.
func (f *TransmissionError) Unwrap() error { return f.Err }
