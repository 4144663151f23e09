// Package submission takes messages over HTTP: as JSON, or as they are.
package submission

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// Accepter stores messages. One whose idempotency key it has seen is not stored again: its first number is returned, or ErrConflict where
// its content is another.
type Accepter interface {
	Accept(envelope message.Envelope, body *spool.Body) (id int64, err error)
}

// Errors that an Accepter may return.
var (
	ErrConflict = errors.New("the idempotency key was used for another message")
)

// Handler takes messages by POST. Its fields are set before it is used.
type Handler struct {
	Accepter Accepter
	Spool    *spool.Spool
	Log      *slog.Logger
	FQDN     string
	Names    []string // all of ours, which nobody else may use in Authentication-Results
	// Verify reports whether a user has this password, and whether he may submit. It is asked for each request.
	Verify func(ctx context.Context, user, password string, peer netip.Addr) (isVerified bool, err error)
	// MaySend reports whether a user may use a sender; nothing means any.
	MaySend func(user string, sender message.Address) bool
	// MaySubmit reports whether the rate of a user allows another message; nothing means always.
	MaySubmit    func(user string) bool
	MessageBytes int64 // of a request: 36 MB
	// IsRejected reports whether pressure has messages refused (section 14.3); nothing means never.
	IsRejected func() bool
	Recipients int // 200
	// Budget bounds the requests that are read at the same time; nothing means one of the handler's own.
	Budget *Budget
	own    Budget
	// Grace is how long a body may take beside the time that it needs at 16 KB a second: 30 s.
	Grace time.Duration
}

// ServeHTTP answers 202 with the number of the message once it is durable.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.fail(w, http.StatusMethodNotAllowed, "submit a message by POST")
		return
	}
	user, status := h.authenticate(r)
	if status != http.StatusOK {
		w.Header().Set("WWW-Authenticate", `Basic realm="mail", charset="UTF-8"`)
		h.fail(w, status, "authenticate as a user who may submit mail")
		return
	}
	if h.IsRejected != nil && h.IsRejected() {
		w.Header().Set("Retry-After", "30")
		h.fail(w, http.StatusServiceUnavailable, "resources are short, try again later")
		return
	}
	if h.MaySubmit != nil && !h.MaySubmit(user) {
		w.Header().Set("Retry-After", "60")
		h.fail(w, http.StatusTooManyRequests, "too many messages in this minute, try again later")
		return
	}
	most := h.MessageBytes
	if most == 0 {
		most = 36 << 20
	}
	free, status := h.makeRoom(user, r.ContentLength, most)
	if status != http.StatusOK {
		w.Header().Set("Retry-After", "5")
		h.fail(w, status, fmt.Sprintf("too many messages are coming at the same time, or one of more than %d bytes", most))
		return
	}
	defer free()
	body := h.Spool.Open()
	defer func() { _ = body.Close() }()
	response := http.NewResponseController(w)
	paced := &pacedBody{
		Reader: http.MaxBytesReader(w, r.Body, most), response: response, begun: time.Now(), grace: cmp.Or(h.Grace, bodyGrace),
	}
	envelope, err := h.read(paced, r.Header, user, body)
	_ = response.SetWriteDeadline(time.Now().Add(answerTime))
	if err != nil {
		status := statusOf(err)
		if status == http.StatusRequestTimeout {
			w.Header().Set("Connection", "close")
		}
		h.fail(w, status, err.Error())
		return
	}
	envelope.Peer = peerOf(r)
	id, err := h.Accepter.Accept(envelope, body)
	switch {
	case errors.Is(err, ErrConflict):
		h.fail(w, http.StatusConflict, ErrConflict.Error())
	case err != nil:
		h.Log.Error("a message could not be stored", "error", err, "user", user)
		w.Header().Set("Retry-After", "5")
		h.fail(w, http.StatusServiceUnavailable, "the message could not be stored, try again later")
	default:
		h.answer(w, http.StatusAccepted, map[string]any{"message_id": id})
	}
}

// statusOf gives the status that says what is wrong with a request.
func statusOf(err error) int {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	case errors.Is(err, errForm):
		return http.StatusUnsupportedMediaType
	case errors.Is(err, errSender):
		return http.StatusForbidden
	}
	return http.StatusBadRequest
}

// makeRoom makes room for a body; the status says why there is none. A size below 0 is not said.
func (h *Handler) makeRoom(user string, size, most int64) (free func(), status int) {
	if size > most {
		return nil, http.StatusRequestEntityTooLarge
	}
	if size < 0 {
		size = most
	}
	budget := h.Budget
	if budget == nil {
		budget = &h.own
	}
	free, isTaken := budget.take(user, size)
	if !isTaken {
		return nil, http.StatusServiceUnavailable
	}
	return free, http.StatusOK
}

func (h *Handler) authenticate(r *http.Request) (user string, status int) {
	user, password, isGiven := r.BasicAuth()
	if !isGiven || user == "" {
		return "", http.StatusUnauthorized
	}
	isVerified, err := h.Verify(r.Context(), user, password, peerOf(r))
	switch {
	case err != nil:
		h.Log.Error("a user could not be verified", "error", err)
		return "", http.StatusServiceUnavailable
	case !isVerified:
		return "", http.StatusUnauthorized
	}
	return user, http.StatusOK
}

func peerOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	peer, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Unmap().WithZone("")
}

var (
	errNUL    = errors.New("the message has a NUL character")
	errForm   = errors.New("send application/json or message/rfc822")
	errSender = errors.New("this user may not send under this address")
)

// answerTime is how long storing a message and reading the answer may take.
const answerTime = 5 * time.Minute

// headerMax is how large the header of a message may be.
const headerMax = 256 << 10

// read reads a request into a body, and gives its envelope.
func (h *Handler) read(r io.Reader, fields http.Header, user string, body *spool.Body) (envelope message.Envelope, err error) {
	kind, _, err := mime.ParseMediaType(fields.Get("Content-Type"))
	if err != nil {
		return message.Envelope{}, errForm
	}
	now := time.Now()
	var header message.Header
	var content, text []byte // content is hashed for the idempotency key, text is what stands behind the header
	hasVERP := false
	switch kind {
	case "application/json":
		header, text, content, hasVERP, err = readJSON(r)
	case "message/rfc822":
		header, text, content, err = readRaw(r)
	default:
		return message.Envelope{}, errForm
	}
	if err != nil {
		return message.Envelope{}, err
	}
	if _, err := body.Write(text); err != nil {
		return message.Envelope{}, err
	}
	most := h.Recipients
	if most == 0 {
		most = 200
	}
	sender, recipients, err := header.Addressees(most)
	if err != nil {
		return message.Envelope{}, err
	}
	named, err := header.Named()
	if err != nil {
		return message.Envelope{}, err
	}
	for _, one := range append(named, sender) {
		if h.MaySend != nil && !h.MaySend(user, one) {
			return message.Envelope{}, errSender
		}
	}
	envelope = message.Envelope{
		NetworkMessageID: message.NewNetworkMessageID(now), Sender: sender.String(), ReceivedAt: now,
		Source: message.SourceHTTP, Connector: "http",
		AuthenticatedAs: user, Directionality: message.Originating,
	}
	if hasVERP {
		if err := envelope.AskReturnPaths(sender); err != nil {
			return message.Envelope{}, err
		}
	}
	for _, recipient := range recipients {
		envelope.Recipients = append(envelope.Recipients, message.Recipient{Address: recipient.String()})
	}
	if err := setIdempotencyKey(&envelope, fields.Get("Idempotency-Key"), content); err != nil {
		return message.Envelope{}, err
	}
	header = header.Submitted(h.FQDN, h.Names, now)
	envelope.BodyType, err = bodyType(header.Bytes(), text)
	if err != nil {
		return message.Envelope{}, err
	}
	envelope.IsUTF8 = header.IsUTF8(append(recipients, sender)...)
	envelope.HeaderMessageID, envelope.Subject = header.MessageID(), header.Value("Subject")
	envelope.Priority = message.PriorityOf(header)
	trace := message.Trace{By: h.FQDN, With: "HTTP", ID: envelope.NetworkMessageID, At: now}
	body.SetHead(append(message.Header{trace.Field()}, header...).Bytes())
	return envelope, nil
}

// setIdempotencyKey sets the key of a request, where it has one, and the hash of the content, by which another message under this key is
// known.
func setIdempotencyKey(envelope *message.Envelope, key string, content []byte) error {
	if key == "" {
		return nil
	}
	if len(key) > 255 {
		return errors.New("an Idempotency-Key has at most 255 characters")
	}
	envelope.IdempotencyKey = key
	hash := sha256.Sum256(content)
	envelope.ContentHash = hex.EncodeToString(hash[:])
	return nil
}

// bodyType gives the type of a message that consists of these blocks: 8BITMIME, or "" where all bytes are below 128. It fails where a line
// is longer than [message.MaximumLine].
func bodyType(blocks ...[]byte) (name message.BodyType, err error) {
	for _, block := range blocks {
		lines := message.LinesOf(block)
		if lines.AreTooLong() {
			return "", fmt.Errorf("a line of the message has %d bytes, and may have %d", lines.Longest, message.MaximumLine)
		}
		if lines.IsEightBit {
			name = "8BITMIME"
		}
	}
	return name, nil
}

// readRaw reads a message as it is. Its line ends become CRLF.
func readRaw(r io.Reader) (header message.Header, body, content []byte, err error) {
	whole, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read the message: %w", err)
	}
	if bytes.IndexByte(whole, 0) >= 0 {
		return nil, nil, nil, errNUL
	}
	var text bytes.Buffer
	text.Grow(len(whole) + len(whole)/32)
	ends := message.LineEnds{Write: func(p []byte) { text.Write(p) }}
	ends.Add(whole)
	if !bytes.HasSuffix(text.Bytes(), []byte("\r\n")) {
		text.WriteString("\r\n")
	}
	header, length, _ := message.ParseHeader(text.Bytes())
	if length > headerMax {
		return nil, nil, nil, fmt.Errorf("the header has more than %d bytes", headerMax)
	}
	return header, text.Bytes()[length:], whole, nil
}

func (h *Handler) fail(w http.ResponseWriter, status int, text string) {
	h.answer(w, status, map[string]any{"error": strings.ToValidUTF8(text, "")})
}

func (h *Handler) answer(w http.ResponseWriter, status int, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.Log.Debug("an answer was not read", "error", err)
	}
}
