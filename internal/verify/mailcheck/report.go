package mailcheck

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"
)

// Report is a delivery status notification that has arrived.
type Report struct {
	// Key is that of the letter which it is about.
	Key string
	// Failed are the recipients that it says were given up.
	Failed []string
}

// readReport reads a message as a report; nil when it is none.
func readReport(message *mail.Message) (*Report, error) {
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/report" || !strings.EqualFold(parameters["report-type"], "delivery-status") {
		return nil, nil //nolint:nilerr // What has no such type is no report.
	}
	report, parts := &Report{}, multipart.NewReader(message.Body, parameters["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return report, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the parts of a report: %w", err)
		}
		switch kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); kind {
		case "message/delivery-status", "message/global-delivery-status":
			report.readStatus(part)
		case "message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers":
			header, _ := textproto.NewReader(bufio.NewReader(part)).ReadMIMEHeader()
			report.Key = header.Get(keyField)
		}
	}
}

// readStatus reads the fields about the message and those about each recipient.
func (r *Report) readStatus(part io.Reader) {
	fields := textproto.NewReader(bufio.NewReader(part))
	for {
		header, err := fields.ReadMIMEHeader()
		if _, recipient, found := strings.Cut(header.Get("Final-Recipient"), ";"); found && strings.EqualFold(header.Get("Action"), "failed") {
			r.Failed = append(r.Failed, strings.TrimSpace(recipient))
		}
		if err != nil {
			return
		}
	}
}
