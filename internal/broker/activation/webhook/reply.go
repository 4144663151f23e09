package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"
)

const (
	// answerBytesMax bounds what is read of an answer.
	answerBytesMax = 1 << 20
	// descriptionRunesMax is how long the description of an error may be that ends a conversation.
	descriptionRunesMax = 3000
)

// answer holds the wishes of an accepted request: replies on the conversation, and its end.
type answer struct {
	Reply   *reply  `json:"reply"`
	Replies []reply `json:"replies"`
	End     bool    `json:"end"`
	// EndWithError ends the conversation with an error that the far side gets.
	EndWithError *struct {
		Code        int32  `json:"code"`
		Description string `json:"description"`
	} `json:"end_with_error"`
	// Conversations is that for each conversation, where a request has several.
	Conversations []conversationAnswer `json:"conversations"`
}

// conversationAnswer holds the wishes of an answer for one of several conversations.
type conversationAnswer struct {
	ConversationHandle string `json:"conversation_handle"`
	answer
}

// asks reports whether the answer asks for anything outside of Conversations.
func (a answer) asks() bool { return len(a.Replies) > 0 || a.End || a.EndWithError != nil }

// reply is a message to send back.
type reply struct {
	MessageType string `json:"message_type"`
	// Body is a string, which is sent as text, or any other JSON, which is sent as it is written; BodyBase64 is for bytes.
	Body       json.RawMessage `json:"body"`
	BodyBase64 []byte          `json:"body_base64"`
}

// parseAnswer reads the body of an answer. One that is not JSON, or empty, asks for nothing; so does JSON without the fields of ours. JSON
// that cannot be understood is an error: a reply that is lost in silence would be worse than a message delivered twice.
func parseAnswer(contentType string, body []byte) (answer, error) {
	var a answer
	if len(body) > answerBytesMax {
		return a, fmt.Errorf("the answer is longer than %d bytes", answerBytesMax)
	}
	body = bytes.TrimSpace(body)
	if !isJSON(contentType) || len(body) == 0 || body[0] != '{' {
		return a, nil
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	if err := a.check(); err != nil {
		return answer{}, err
	}
	for i := range a.Conversations {
		if err := a.Conversations[i].check(); err != nil {
			return answer{}, err
		}
	}
	return a, nil
}

// check puts the replies into one list.
func (a *answer) check() error {
	if a.Reply != nil {
		a.Replies = append([]reply{*a.Reply}, a.Replies...)
		a.Reply = nil
	}
	for _, r := range a.Replies {
		switch {
		case r.MessageType == "":
			return errors.New("read the answer: a reply has no message_type")
		case strings.ContainsRune(r.MessageType, 0):
			return errors.New("read the answer: a message_type has a zero byte")
		case len(r.Body) > 0 && !bytes.Equal(r.Body, []byte("null")) && r.BodyBase64 != nil:
			return errors.New("read the answer: a reply has two bodies")
		}
		if _, err := r.bytes(); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
	}
	if a.EndWithError != nil && (a.End || a.EndWithError.Code <= 0) {
		return errors.New("read the answer: end_with_error has a code above zero, and stands alone")
	}
	if a.EndWithError != nil && (strings.ContainsRune(a.EndWithError.Description, 0) ||
		utf8.RuneCountInString(a.EndWithError.Description) > descriptionRunesMax) {
		return fmt.Errorf("read the answer: the description of end_with_error has up to %d characters, and no zero byte", descriptionRunesMax)
	}
	return nil
}

func isJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == "application/json"
}

// bytes gives the body to send.
func (r reply) bytes() ([]byte, error) {
	switch {
	case r.BodyBase64 != nil:
		return r.BodyBase64, nil
	case len(r.Body) == 0 || bytes.Equal(r.Body, []byte("null")):
		return nil, nil
	case r.Body[0] != '"':
		return r.Body, nil
	}
	var text string
	err := json.Unmarshal(r.Body, &text)
	return []byte(text), err
}

// readAnswer reads the body of an answer, a byte more than is allowed at most.
func readAnswer(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, answerBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return body, nil
}
