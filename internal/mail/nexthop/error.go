package nexthop

// Error says why a next hop is not known.
type Error struct {
	// Permanent is whether trying again is of no use.
	Permanent bool
	// Enhanced is the status code of RFC 3463.
	Enhanced string
	// Text describes the fault, for people.
	Text  string
	cause error
}

// Error is the text with its cause.
func (e *Error) Error() string {
	if e.cause == nil {
		return e.Text
	}
	return e.Text + ": " + e.cause.Error()
}

// Unwrap is the cause, or nil.
func (e *Error) Unwrap() error { return e.cause }
