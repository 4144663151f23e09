package receive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
)

// directory says the same of each sender, and takes all recipients.
type directory struct {
	bytes      int64
	recipients int
	err        error
}

func (d directory) Recipient(context.Context, receive.RecipientQuery) (*receive.Reply, error) {
	return nil, d.err
}

func (d directory) Sender(context.Context, message.Address) (bytes int64, recipients int, err error) {
	return d.bytes, d.recipients, d.err
}

// configure has a server go on under a configuration.
func (f *fixture) configure(configuration receive.Configuration, connectors ...*receive.Connector) {
	f.t.Helper()
	configuration.Connectors, configuration.AcceptedDomains = connectors, []string{"example.com"}
	if err := f.server.Configure(&configuration); err != nil {
		f.t.Fatal(err)
	}
}

// How large a message may be: the least of what the connector, the organization and the directory say, whichever it is.
func TestStrictestLimitOfTheSizeHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		connector, organization, directory, most int64
		asAnonymous, isBypassing                 bool
	}{
		{connector: 2000, most: 2000},
		{connector: 2000, organization: 3000, directory: 5000, most: 2000},
		{connector: 3000, organization: 2000, directory: 5000, most: 2000},
		{connector: 5000, organization: 3000, directory: 2000, most: 2000},
		{organization: 2000, most: 2000},
		{directory: 2000, most: 2000},
		{connector: 2000, directory: 1000, asAnonymous: true, most: 2000},
		{connector: 500, organization: 600, directory: 700, isBypassing: true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			connector := submission()
			connector.Limits.MessageBytes = c.connector
			connector.Groups = append(connector.Groups, receive.Anonymous)
			if c.isBypassing {
				connector.Grants = map[string]receive.Rights{"ann": receive.BypassSizeLimit}
			}
			f := start(t, func(s *receive.Server) { s.Directory = directory{bytes: c.directory} }, connector)
			f.configure(receive.Configuration{SendBytes: c.organization, ReceiveBytes: c.organization}, connector)
			client := f.greeted()
			sender := "ann@example.com"
			if c.asAnonymous {
				sender = "ann@example.net"
			} else {
				client.say("AUTH PLAIN AGFubgBzZWNyZXQ=", "235")
			}
			if c.most == 0 {
				client.say("MAIL FROM:<"+sender+"> SIZE=100000", "250")
				return
			}
			client.say(fmt.Sprintf("MAIL FROM:<%s> SIZE=%d", sender, c.most+1), "552 5.3.4")
			client.say(fmt.Sprintf("MAIL FROM:<%s> SIZE=%d", sender, c.most), "250")
			client.say("RCPT TO:<bob@example.com>", "250")
			client.say("DATA", "354")
			client.send("From: " + sender + "\r\n\r\n" + strings.Repeat("0123456789\r\n", int(c.most)/12) + ".\r\n")
			client.expect("552 5.3.4")
		})
	}
}

// How many recipients a message may have: the directory says it instead of the organization, to who writes from inside.
func TestDirectorySaysHowManyRecipients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ connector, organization, directory, most int }{
		{organization: 2, most: 2},
		{organization: 2, directory: 3, most: 3},
		{organization: 3, directory: 1, most: 1},
		{connector: 2, directory: 3, most: 2},
		{connector: 2, organization: 5, most: 2},
		{most: 5},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			connector := submission()
			connector.Limits.Recipients = c.connector
			f := start(t, func(s *receive.Server) { s.Directory = directory{recipients: c.directory} }, connector)
			f.configure(receive.Configuration{Recipients: c.organization}, connector)
			client := f.greeted()
			client.say("AUTH PLAIN AGFubgBzZWNyZXQ=", "235")
			client.say("MAIL FROM:<ann@example.com>", "250")
			taken := 0
			for i := range 5 {
				client.send(fmt.Sprintf("RCPT TO:<u%d@example.com>\r\n", i))
				if strings.HasPrefix(client.reply(), "250") {
					taken++
				}
			}
			if taken != c.most {
				t.Errorf("%d recipients were taken, want %d", taken, c.most)
			}
		})
	}
}

func TestDirectoryThatIsAwayIsAskedLater(t *testing.T) {
	t.Parallel()
	f := start(t, func(s *receive.Server) { s.Directory = directory{err: errors.New("no connection")} }, submission())
	client := f.greeted()
	client.say("AUTH PLAIN AGFubgBzZWNyZXQ=", "235")
	client.say("MAIL FROM:<ann@example.com>", "451 4.3.0")
	client.say("MAIL FROM:<>", "250")
	client.say("RCPT TO:<bob@example.com>", "451 4.3.0")
}
