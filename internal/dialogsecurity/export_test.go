package dialogsecurity

// Forget lets the guard ask anew what it has read of certificates and bindings, as if a second had passed.
func (d *Dialogs) Forget() {
	d.certificates.clear()
	d.judgements.clear()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.secured.at = d.secured.at.Add(-2 * belief)
}
