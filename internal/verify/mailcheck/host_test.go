package mailcheck_test

import (
	"fmt"
	"net"
	"net/smtp"
	"slices"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/verify/mailcheck"
)

// serve starts a host that fails as a script says, one word for each time it is asked.
func serve(t *testing.T, host *mailcheck.Host, script ...mailcheck.Fault) (address string) {
	t.Helper()
	var mu sync.Mutex
	host.Fault = func(mailcheck.Step) mailcheck.Fault {
		mu.Lock()
		defer mu.Unlock()
		if len(script) == 0 {
			return mailcheck.None
		}
		fault := script[0]
		script = script[1:]
		return fault
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host.Serve(listener)
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// The log of a host says of each message how its transaction ended.
func TestHostSaysHowEachTransactionEnded(t *testing.T) {
	t.Parallel()
	const good = mailcheck.None
	letter := []byte(mailcheck.Letter("k", "s@a.example", []string{"x@b.example", "y@b.example"}, "..one\r\n.\r\ntwo\r\n"))
	for _, c := range []struct {
		last Fault
		want []mailcheck.Ending
	}{
		{good, []mailcheck.Ending{mailcheck.Acknowledged, mailcheck.Acknowledged}},
		{mailcheck.Defer, nil},
		{mailcheck.Refuse, nil},
		{mailcheck.Leave, nil},
		{mailcheck.Drop, nil},
		{mailcheck.DropTaken, []mailcheck.Ending{mailcheck.Unanswered, mailcheck.Unanswered}},
		{mailcheck.Goodbye, []mailcheck.Ending{mailcheck.Unread, mailcheck.Unread}},
	} {
		host := &mailcheck.Host{Name: "relay.example"}
		address := serve(t, host, good, good, good, good, good, c.last)
		err := smtp.SendMail(address, nil, "s@a.example", []string{"x@b.example", "y@b.example"}, letter)
		if isTaken := c.last == good || c.last == mailcheck.Goodbye; isTaken != (err == nil) && c.last != mailcheck.Goodbye {
			t.Errorf("%s: the client got %v", c.last, err)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
		var endings []mailcheck.Ending
		for _, a := range host.Arrivals() {
			endings = append(endings, a.Ending)
			if a.Key != "k" || a.Hash != mailcheck.Hash("..one\r\n.\r\ntwo\r\n") || a.Ended.IsZero() {
				t.Errorf("%s: arrived is %+v", c.last, a)
			}
		}
		if !slices.Equal(endings, c.want) {
			t.Errorf("%s: the endings are %v, want %v", c.last, endings, c.want)
		}
		if faults, unread := host.Failed(); (faults[c.last] == 1) != (c.last != good) || len(unread) > 0 {
			t.Errorf("%s: counted %v, unread %q", c.last, faults, unread)
		}
	}
}

type Fault = mailcheck.Fault

func TestHostRefusesOneRecipientOfTwo(t *testing.T) {
	t.Parallel()
	host := &mailcheck.Host{Name: "relay.example"}
	client, err := smtp.Dial(serve(t, host, mailcheck.None, mailcheck.None, mailcheck.Refuse))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Mail("s@a.example"); err != nil {
		t.Fatal(err)
	}
	if first, second := client.Rcpt("x@b.example"), client.Rcpt("y@b.example"); first == nil || second != nil {
		t.Errorf("the replies are %v and %v", first, second)
	}
	writer, err := client.Data()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(writer, mailcheck.Letter("k", "s@a.example", nil, "hello\r\n"))
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if all := host.Arrivals(); len(all) != 1 || all[0].Recipient != "y@b.example" {
		t.Errorf("arrived is %+v", all)
	}
}
