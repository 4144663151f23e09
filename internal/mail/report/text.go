package report

import (
	"fmt"
	"strings"
)

// subject is the line that people see first.
func (r Report) subject() string {
	switch r.Action {
	case Failed:
		return "Undelivered mail: a message could not be delivered"
	case Delayed:
		return "Delayed mail: a message is still waiting"
	case Delivered:
		return "Delivered mail: a message has arrived"
	case Relayed:
		return "Relayed mail: a message was passed on"
	default:
		return "Expanded mail: a message went to a group"
	}
}

// openings say in a sentence what the report is about.
var openings = map[Action]string{
	Failed:    "Your message could not be delivered to the recipients below. It will not be tried again.",
	Delayed:   "Your message has not been delivered to the recipients below yet. You need not send it again: delivery is still tried.",
	Delivered: "Your message was delivered to the recipients below.",
	Relayed:   "Your message was passed on to hosts that do not report deliveries. No further report may follow.",
	Expanded:  "Your message went to the groups below, and from there to their members.",
}

// explanations say what a status code means to a sender, by the whole code or by its subject and detail.
var explanations = map[string]string{
	"1.1":  "There is no such mailbox. Check the address for mistakes.",
	"1.2":  "The domain of the address does not exist. Check what stands behind the @.",
	"1.3":  "The address is not written as addresses are.",
	"1.6":  "The mailbox has moved and left no address.",
	"1.10": "The domain takes no mail.",
	"2.1":  "The mailbox is disabled.",
	"2.2":  "The mailbox is full.",
	"2.3":  "The message is larger than the recipient takes.",
	"3.0":  "The message could not be processed; it was put aside for the administrator.",
	"3.4":  "The message is too large.",
	"3.5":  "The mail system is set up in such a way that the message would run in a circle.",
	"4.1":  "The recipient's mail server did not answer.",
	"4.2":  "The connection to the recipient's mail server broke.",
	"4.4":  "It is not known where mail for this domain goes.",
	"4.6":  "The message runs in a circle.",
	"4.7":  "The message waited as long as it may, and could not be delivered.",
	"5.3":  "The message has too many recipients.",
	"6.3":  "The recipient's mail server cannot take a message with these contents.",
	"6.7":  "The recipient's mail server cannot take addresses with other than ASCII letters.",
	"6.9":  "The recipient's mail server cannot take a message with other than ASCII letters in its header.",
	"7.1":  "The recipient, or the recipient's mail server, does not take this message from you.",
	"7.5":  "The connection to the recipient's mail server is not as secure as the message needs.",
}

// text is the text that people read.
func (r Report) text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "This is the mail system of %s.\r\n\r\n%s\r\n", r.ReportingMTA, openings[r.Action])
	for _, recipient := range r.Recipients {
		fmt.Fprintf(&text, "\r\n  %s\r\n", clean(recipient.Final))
		if explanation := explain(recipient.Status); explanation != "" && (r.Action == Failed || r.Action == Delayed) {
			fmt.Fprintf(&text, "    %s\r\n", explanation)
		}
		if r.Action == Delayed && !recipient.RetryUntil.IsZero() {
			fmt.Fprintf(&text, "    It is tried until %s.\r\n", recipient.RetryUntil.Format("2 Jan 2006 15:04 -0700"))
		}
	}
	text.WriteString("\r\nFor administrators:\r\n")
	for _, recipient := range r.Recipients {
		fmt.Fprintf(&text, "\r\n  %s\r\n    status %s", clean(recipient.Final), clean(recipient.Status))
		if recipient.Remote != "" {
			fmt.Fprintf(&text, ", reported by %s", clean(hostName(recipient.Remote)))
		}
		text.WriteString("\r\n")
		if recipient.Text != "" {
			reply := recipient.Text
			if recipient.Code != 0 {
				reply = fmt.Sprintf("%d %s", recipient.Code, recipient.Text)
			}
			fmt.Fprintf(&text, "    %s\r\n", clean(reply))
		}
		if recipient.LogID != "" {
			fmt.Fprintf(&text, "    log %s\r\n", clean(recipient.LogID))
		}
	}
	return text.String()
}

func explain(status string) string {
	_, rest, _ := strings.Cut(status, ".")
	return explanations[rest]
}
