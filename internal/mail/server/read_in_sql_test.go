package server_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/parts"
	"github.com/parley-broker/parley/internal/mail/parts/corpus"
)

// The schema reads ids that no daemon has read, and the messages go to the same conversations.
func TestTheSchemaReadsIDsAsTheDaemonDoes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	messages, err := corpus.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for name, fields := range map[string]string{
		"id with a comment":          "Message-ID: <1@x.example> (of today)",
		"id in words":                "Message-ID: =?utf-8?q?=3C1=40x=2Eexample=3E?=",
		"words of eight bits":        "References: =?iso-8859-1?q?=FC_=3C1=40x=3E?= =?UTF-8?b?PDJAeD4?= \xfc <3@x>",
		"words that are none":        "In-Reply-To: =?utf-8?q?a <1@x> =?utf-8?x?b?= ?=",
		"quotes and comments in one": `References: =?utf-8?q?=28a?= (b) <1@x> =?utf-8?q?=22?= <2@x>`,
		"backslashes":                `In-Reply-To: \<1@x> "a\" <2@x>" <3@x>`,
	} {
		messages = append(messages, corpus.Message{Name: name, Text: []byte(fields + "\r\n\r\n")})
	}
	seen := 0
	for _, m := range messages {
		read, err := parts.Read(strings.NewReader(string(m.Text)), parts.Usual)
		if err != nil {
			t.Fatal(err)
		}
		for name, ids := range map[string][]string{"references": read.References, "in_reply_to": read.InReplyTo} {
			want := strings.Join(ids[:min(1, len(ids))], "")
			seen += len(want)
			var got string
			if err := h.pool.QueryRow(t.Context(), `select coalesce(parley_mail._p_first_id(jsonb_build_object(
				'headers', parley_mail._p_unfolded_headers($1), 'parsed', '{"state": "NONE"}'::jsonb), $2), '')`, m.Text, name).Scan(&got); err != nil {
				t.Fatalf("%s: %v", m.Name, err)
			}
			if got != want {
				t.Errorf("%s: %s begins with %q, to the schema with %q", m.Name, name, want, got)
			}
		}
		header, _, _ := message.ParseHeader(m.Text)
		var got string
		if err := h.pool.QueryRow(t.Context(), `select coalesce(parley_mail._p_named_id(parley_mail._p_header_of($1, 'Message-ID')), '')`, m.Text).Scan(&got); err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if want := header.MessageID(); got != want {
			t.Errorf("%s: the Message-ID is %q, to the schema %q", m.Name, want, got)
		}
	}
	if seen == 0 {
		t.Error("no message has an id")
	}
}

// A reply by Python, whose ids are encoded words, goes to the conversation of the message that it answers.
func TestAReplyWithEncodedIDsStaysInItsThread(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	long := strings.Repeat("0123456789abcdef", 5) + "@c.example"
	encoded := "=?utf-8?q?=3C" + long[:50] + "?=\r\n =?utf-8?q?" + strings.Replace(long[50:], "@", "=40", 1) + "=3E?="
	key := func(fields string) (key string) {
		header, _, _ := message.ParseHeader([]byte(fields + "\r\n\r\n"))
		read, err := parts.Read(strings.NewReader(fields+"\r\n\r\n"), parts.Usual)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.pool.QueryRow(t.Context(), `select parley_mail._p_conversation_key('THREAD', 'a@b', jsonb_build_object(
			'header_message_id', $1::text, 'references', to_jsonb($2::text[]), 'in_reply_to', to_jsonb($3::text[]), 'parsed', '{"state": "COMPLETE"}'::jsonb))`,
			header.MessageID(), read.References, read.InReplyTo).Scan(&key); err != nil {
			t.Fatal(err)
		}
		return key
	}
	root := key("Message-ID: <" + long + "> (the first)")
	for _, reply := range []string{"In-Reply-To: <" + long + ">", "In-Reply-To: " + encoded, "References: " + encoded + " <2@c.example>\r\nIn-Reply-To: <2@c.example>"} {
		if got := key("Message-ID: <3@c.example>\r\n" + reply); got != root {
			t.Errorf("%q goes to %q, the first message to %q", reply, got, root)
		}
	}
}
