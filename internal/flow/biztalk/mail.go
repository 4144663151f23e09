package biztalk

import "strings"

// smtp translates a port that sends mail: by the mail transport of the database, whatever server the file names.
func (e *endpoint) smtp() {
	e.adapter = "Mail"
	to := e.address
	for _, prefix := range []string{"mailto:", "smtp://", "SMTP://"} {
		to = strings.TrimPrefix(to, prefix)
	}
	to, _, _ = strings.Cut(to, "?")
	if to == "" {
		to = e.properties["to"]
	}
	list := func(written string) []string {
		parts := strings.FieldsFunc(strings.ReplaceAll(written, "%", "%%"), func(r rune) bool { return r == ';' || r == ',' })
		texts := []string{}
		for _, one := range parts {
			if one = strings.TrimSpace(one); one != "" {
				texts = append(texts, e.t.text(e.at, e.kind, e.name, one))
			}
		}
		return texts
	}
	e.address = "mailto:" + strings.Join(list(to), ", ")
	e.settings["from"] = e.t.text(e.at, e.kind, e.name, strings.ReplaceAll(e.properties["from"], "%", "%%"))
	if e.settings["from"] == "" {
		e.settings["from"] = "unknown@example.invalid"
		e.stop(e.at, "the sender", "the file gives none", "give from")
	}
	if cc := list(e.properties["cc"]); len(cc) > 0 {
		e.settings["cc"] = cc
	}
	if subject := e.properties["subject"]; subject != "" {
		e.settings["subject"] = e.t.text(e.at, e.kind, e.name, strings.ReplaceAll(subject, "%", "%%"))
	}
	if mode := e.properties["messagepartsattachments"]; mode == "" || mode == "0" {
		e.settings["content"] = "text"
	}
	if text := e.properties["emailbodytext"]; text != "" {
		e.settings["text"], e.settings["content"] = strings.ReplaceAll(text, "%", "%%"), "attachment"
	}
	if server := e.properties["smtphost"]; server != "" {
		e.t.omit(e.at, e.kind, e.name, "the server "+server, "mail goes by Parley's mail transport",
			"give it a send connector to that server, and the role of the host the right SEND")
	}
	if to == "" {
		e.address = "mailto:unknown@example.invalid"
		e.stop(e.at, "the recipient", "the file gives none", "give the address, mailto:NAME@DOMAIN")
	}
}

// pop3 translates a location that fetches mail: here mail is delivered.
func (e *endpoint) pop3() {
	e.adapter = "Mail"
	mailbox := e.properties["username"]
	e.address = "//mail/" + e.t.text(e.at, e.kind, e.name, strings.TrimPrefix(e.name, "/"))
	e.stop(e.at, "the mailbox "+mailbox+" at "+e.properties["mailserver"], "mail is not fetched, but delivered by Parley's mail transport",
		"have the mail of that address go to a service binding with this service, then enable the location")
}
