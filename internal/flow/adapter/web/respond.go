package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// statusProperty is that of an answer with the status of its response.
const statusProperty = namespace + "Status"

// wholeAnswerBytes is up to which size an answer is read before the response begins: what is found wrong with it is a status then.
const wholeAnswerBytes = 256 << 10

// errCutOff says that a client got a part of an answer.
var errCutOff = errors.New("the answer broke off")

// respond gives a client the answer to its request, or says why there is none.
func (l *location) respond(ctx context.Context, w http.ResponseWriter, reply adapter.Reply) {
	if reply.Message != 0 {
		w.Header().Set("Parley-Message-Id", strconv.FormatInt(reply.Message, 10))
	}
	body := answer{Outcome: reply.Outcome, MessageID: reply.Message, Messages: reply.Messages}
	switch {
	case reply.Answer != nil:
		err := l.give(ctx, w, reply.Answer)
		reply.End(err == nil)
		if err != nil {
			l.Logger.Warn("an answer could not be given", "location", l.Name, "request", reply.Message, "error", err)
		}
		if errors.Is(err, errCutOff) {
			panic(http.ErrAbortHandler) // the client must not take a part for the whole
		}
	case reply.Refused != nil:
		l.Logger.Warn("an answer could not be given", "location", l.Name, "request", reply.Message, "error", reply.Refused)
		body.Error = "the answer cannot be given"
		writeJSON(w, http.StatusBadGateway, body)
	case reply.Outcome == adapter.Suspended && reply.Failure != nil:
		body.Error = reply.Failure.Error()
		writeJSON(w, http.StatusUnprocessableEntity, body)
	case reply.Outcome == adapter.Suspended:
		body.Error = "nothing answers requests like this one"
		writeJSON(w, http.StatusInternalServerError, body)
	case reply.Outcome == adapter.Consumed:
		body.Error = "there is no message in the body"
		writeJSON(w, http.StatusUnprocessableEntity, body)
	case reply.Outcome == adapter.Repeated:
		body.Error = "the request was taken before, and its answer is kept no more"
		writeJSON(w, http.StatusConflict, body)
	default:
		body.Error = "no answer came in time"
		writeJSON(w, http.StatusGatewayTimeout, body)
	}
}

// give writes an answer. An error says that the client has not got all of it.
func (l *location) give(ctx context.Context, w http.ResponseWriter, m *adapter.Message) error {
	opened, err := m.Open(ctx)
	if err != nil {
		refuse(w, http.StatusBadGateway, "the answer cannot be given", 0)
		return err
	}
	defer opened.Close()
	begin, err := io.ReadAll(io.LimitReader(opened, wholeAnswerBytes))
	if err != nil {
		refuse(w, http.StatusBadGateway, "the answer cannot be given", 0)
		return err
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Type", contentTypeOf(m))
	if len(begin) < wholeAnswerBytes {
		header.Set("Content-Length", strconv.Itoa(len(begin)))
	}
	w.WriteHeader(statusOf(m))
	if _, err := io.Copy(w, io.MultiReader(bytes.NewReader(begin), opened)); err != nil {
		return fmt.Errorf("%w: %w", errCutOff, err)
	}
	if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// statusOf gives the status that an answer asks for, 200 where it asks for none.
func statusOf(m *adapter.Message) int {
	status, err := strconv.Atoi(m.Property(statusProperty))
	if err != nil || status < 200 || status > 599 || status == http.StatusNoContent || status == http.StatusNotModified {
		return http.StatusOK
	}
	return status
}

// contentTypeOf gives the media type of an answer.
func contentTypeOf(m *adapter.Message) string {
	if m.ContentType == "" {
		return "application/octet-stream"
	}
	mediaType, parameters, err := mime.ParseMediaType(m.ContentType)
	if err != nil {
		return "application/octet-stream"
	}
	if m.Charset != "" && parameters["charset"] == "" {
		parameters["charset"] = m.Charset
	}
	return mime.FormatMediaType(mediaType, parameters)
}
