package base_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The parts of an error that a program prints besides its text: PostgreSQL adds a line for each function on the way, and the text of each
// statement inside of a function, which has as many lines as it was written in.
const contextLinesMax = 8

func TestErrorsHaveAShortContext(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(sqltest.Scene)
	ordinary := b.As(b.Role("ordinary"))
	for _, r := range refusals() {
		if strings.Contains(r.statement, "do $$") || strings.Contains(r.statement, "parley._p_") {
			// Its own statements are in the context too.
			continue
		}
		t.Run(r.because, func(t *testing.T) {
			s := sqltest.Session{T: t, DB: b.DB}
			if r.ordinary {
				s.DB = ordinary.DB
			}
			context := s.Refuses(r.number, r.statement).Where
			lines := strings.Split(context, "\n")
			if len(lines) > contextLinesMax {
				t.Errorf("%d lines:\n%s", len(lines), context)
			}
			for _, line := range lines {
				isFrame := strings.HasPrefix(line, "PL/pgSQL function ") || strings.HasPrefix(line, "SQL function ")
				if !isFrame {
					t.Errorf("%s\nis in\n%s", line, context)
				}
			}
		})
	}
}
