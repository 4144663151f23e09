package script

// state says inside of what a line of a batch ends, because GO separates nothing in there.
type state struct {
	quote    byte // ' " or ] while one is open
	comments int  // depth of open comments
	line     bool // behind -- in this line
	last     byte // the character before, where it can begin a pair
}

// isOpen says that a line begins inside a comment, a string or a quoted name.
func (s *state) isOpen() bool { return s.quote != 0 || s.comments > 0 }

func (s *state) inComment() bool { return s.comments > 0 || s.line }

// read goes on over a piece of a batch. Pieces may end anywhere but inside a pair of characters.
func (s *state) read(piece string) {
	for i := range len(piece) {
		c := piece[i]
		pair := s.last
		s.last = 0
		switch {
		case s.line:
			s.line = c != '\n'
		case s.comments > 0:
			switch {
			case pair == '/' && c == '*':
				s.comments++
			case pair == '*' && c == '/':
				s.comments--
			case c == '/' || c == '*':
				s.last = c
			}
		case s.quote != 0:
			if c == s.quote { // a doubled quote closes and opens again
				s.quote = 0
			}
		case pair == '-' && c == '-':
			s.line = true
		case pair == '/' && c == '*':
			s.comments++
		case c == '\'' || c == '"':
			s.quote = c
		case c == '[':
			s.quote = ']'
		case c == '-' || c == '/':
			s.last = c
		}
	}
}
