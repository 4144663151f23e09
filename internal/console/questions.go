package console

import (
	"crypto/rand"
	"net/http"
	"time"
)

// How long a question waits for its answer, and how many of a session wait at once.
const (
	answerMost    = 15 * time.Minute
	questionsMost = 50
)

// onceField is the field of a form that answers a question.
const onceField = "once"

// openQuestions are those that a session was asked and has not answered, by the token in the form. A token answers once: a form that
// comes again, by a browser that goes back or by somebody who has recorded it, does nothing a second time.
type openQuestions map[string]openQuestion

type openQuestion struct {
	about string // the path of the list and the action
	asked time.Time
}

// errAnswered refuses a form that comes again.
var errAnswered = refused{
	http.StatusConflict, "This form was sent before, or is older than 15 minutes: nothing was done now. Go back and see what is so.",
}

// ask gives the token for a question.
func (s *session) ask(about string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, oldest := time.Now(), ""
	for token, one := range s.questions {
		if now.Sub(one.asked) > answerMost {
			delete(s.questions, token)
		} else if oldest == "" || one.asked.Before(s.questions[oldest].asked) {
			oldest = token
		}
	}
	if len(s.questions) >= questionsMost {
		delete(s.questions, oldest)
	}
	if s.questions == nil {
		s.questions = openQuestions{}
	}
	token := rand.Text()
	s.questions[token] = openQuestion{about: about, asked: now}
	return token
}

// answer takes the token of a question, and reports whether it was asked and waits for its answer.
func (s *session) answer(token, about string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.questions[token]
	delete(s.questions, token)
	return ok && one.about == about && time.Since(one.asked) <= answerMost
}
