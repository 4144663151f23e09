package messages

import (
	"fmt"
	"io"
)

// standardInput is the argument that stands for the body that comes from standard input.
const standardInput = "-"

// bodyOf gives the body that an argument stands for, byte by byte.
func bodyOf(argument string, stdin io.Reader) ([]byte, error) {
	if argument != standardInput {
		return []byte(argument), nil
	}
	return readBody(stdin)
}

func readBody(source io.Reader) ([]byte, error) {
	body, err := io.ReadAll(source)
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	return body, nil
}
