package message

import (
	"errors"
	"fmt"
	"time"
)

// Addressees reads from whom and to whom a message is, where it comes without an envelope: from Sender or From, to all of To, Cc and Bcc,
// each once.
func (h Header) Addressees(most int) (sender Address, recipients []Address, err error) {
	authors, err := h.addresses("From", false)
	if err != nil {
		return Address{}, nil, err
	}
	senders, err := h.addresses("Sender", false)
	switch {
	case err != nil:
		return Address{}, nil, err
	case len(senders) == 1:
		sender = senders[0]
	case len(senders) == 0 && len(authors) == 1:
		sender = authors[0]
	default:
		return Address{}, nil, errors.New("the message needs one address in From, or one in Sender where From has several")
	}
	seen := map[Address]bool{}
	for _, name := range []string{"To", "Cc", "Bcc"} {
		addresses, err := h.addresses(name, false)
		if err != nil {
			return Address{}, nil, err
		}
		for _, address := range addresses {
			if !seen[address] {
				seen[address] = true
				recipients = append(recipients, address)
			}
		}
	}
	if len(recipients) == 0 {
		return Address{}, nil, errors.New("the message needs a recipient in To, Cc or Bcc")
	}
	if most > 0 && len(recipients) > most {
		return Address{}, nil, fmt.Errorf("the message has %d recipients, at most %d are taken", len(recipients), most)
	}
	return sender, recipients, nil
}

// Authors are the addresses of From. To some readers a name in the form of an address is one: what is not as the standard has it is
// refused.
func (h Header) Authors() ([]Address, error) { return h.addresses("From", true) }

// Named are the addresses of all whom the header names as who wrote or sent the message: From, Sender, Resent-From and Resent-Sender,
// read as strictly as those of [Header.Authors].
func (h Header) Named() (all []Address, err error) {
	for _, name := range []string{"From", "Sender", "Resent-From", "Resent-Sender"} {
		addresses, err := h.addresses(name, true)
		if err != nil {
			return nil, err
		}
		all = append(all, addresses...)
	}
	return all, nil
}

// addresses reads all fields of a name. Where it is strict it refuses what was read although it is not as the standard has it.
func (h Header) addresses(name string, isStrict bool) (all []Address, err error) {
	for _, field := range h.All(name) {
		read := ParseMailboxes(field.Value())
		if isStrict && read.IsOdd && len(read.Unread) == 0 {
			return nil, fmt.Errorf("field %s is not as RFC 5322 has it: put names with special characters in quotes", name)
		}
		// A group without members is no error. Others may read an entry that cannot be read here, so nothing is passed over.
		if len(read.Unread) > 0 {
			return nil, fmt.Errorf("field %s: %.100q is %w", name, read.Unread[0], ErrAddress)
		}
		for _, one := range read.List {
			address, err := one.Address.Canonical()
			if err != nil {
				return nil, fmt.Errorf("field %s: %w", name, err)
			}
			all = append(all, address)
		}
	}
	return all, nil
}

// Submitted gives the header of a message that was submitted without SMTP: without our own fields, Bcc and Return-Path, and with what a
// message has to have. host is our name here, names are all of ours.
func (h Header) Submitted(host string, names []string, now time.Time) Header {
	h = h.Firewall(Trusted{Routing: true}).WithoutResults(host).WithoutResults(names...).WithoutReturnPath()
	h = h.Without(func(f Field) bool { return f.Is("Bcc") })
	if h.Value("To") == "" && h.Value("Cc") == "" {
		h = append(h.Without(func(f Field) bool { return f.Is("To") || f.Is("Cc") }), NewField("To", "undisclosed-recipients:;"))
	}
	return h.Completed(host, now)
}

// IsUTF8 reports whether a header or an address needs SMTPUTF8.
func (h Header) IsUTF8(addresses ...Address) bool {
	for _, field := range h {
		if !isASCII(string(field.Raw)) {
			return true
		}
	}
	for _, address := range addresses {
		if !address.IsASCII() {
			return true
		}
	}
	return false
}
