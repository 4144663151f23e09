package dialogsecurity

import "time"

// SealAt lets the guard seal as if its clock were another one.
func (d *Dialogs) SealAt(ahead time.Duration) {
	d.clock = func() time.Time { return time.Now().Add(ahead) }
}

// Forget lets the guard ask anew what it has read of certificates, as if a second had passed.
func (d *Dialogs) Forget() {
	d.certificates.clear()
	d.judgements.clear()
}
