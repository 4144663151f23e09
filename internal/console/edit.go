package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/operate"
)

// editMost is how many bytes of a body a form has.
const editMost = 256 << 10

// edit is the form in which somebody edits a message.
type edit struct {
	Path, Once string
	// Body is nil where it is no text, or too long for a form.
	Body *string
	// Bytes is how long the body is.
	Bytes         int64
	Properties    []flowProperty
	HasProperties bool
	// Digest is of the body as the form has it, and HasReturns says how its lines end, because a browser ends them in its own way.
	Digest     string
	HasReturns bool
}

// newEdit makes the form for a body.
func newEdit(s *session, path string, content body) *edit {
	made := &edit{Path: path, Once: s.ask(path + " edit"), Bytes: content.Bytes}
	if content.IsCut || content.IsBinary {
		return made
	}
	text := content.Text
	returns := strings.Count(text, "\r")
	made.HasReturns = returns > 0
	if pairs := strings.Count(text, "\r\n"); made.HasReturns && (pairs != returns || pairs != strings.Count(text, "\n")) {
		return made // its lines end in several ways, which a form would make one
	}
	made.Body, made.Digest = &text, digestOf(text)
	return made
}

// edited is the new content of a message and the reason for it; body is nil where it stays.
type edited struct {
	body   []byte
	reason string
}

// readEdit reads the form of an edit, which answers once.
func readEdit(request *http.Request, s *session, path string) (edited, error) {
	reason := strings.TrimSpace(request.PostFormValue("reason"))
	if reason == "" || len([]rune(reason)) > 1000 {
		return edited{}, refused{
			http.StatusUnprocessableEntity, "Give the reason, in 1,000 characters at most. Your text is there when you go back.",
		}
	}
	if !s.answer(request.PostFormValue(onceField), path+" edit") {
		return edited{}, errAnswered
	}
	made := edited{reason: reason}
	if !request.PostForm.Has("body") {
		return made, nil
	}
	text := strings.ReplaceAll(request.PostFormValue("body"), "\r\n", "\n")
	if request.PostFormValue("returns") != "" {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if digestOf(text) != request.PostFormValue("digest") {
		made.body = []byte(text)
	}
	return made, nil
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// recordEdit writes who edited what, and why, in the transaction of the edit.
func recordEdit(ctx context.Context, tx pgx.Tx, what, object, reason string) error {
	detail, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		return err
	}
	return operate.RecordOperatorAction(ctx, tx, what, []string{object}, detail)
}
