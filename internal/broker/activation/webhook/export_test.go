package webhook

import "time"

// SetLease sets how long claims of the readers last that are made from now on.
func (s *Starter) SetLease(lease time.Duration) { s.lease = lease }
