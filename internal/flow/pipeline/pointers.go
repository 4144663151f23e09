package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/typing"
)

// pointers find values of JSON by their JSON Pointers, while a message streams by.
type pointers struct {
	children   map[string]*pointers
	properties []int // whose value is here
}

// parsePointer reads a JSON Pointer. Paths of other forms are refused with the pointer that they stand for.
func parsePointer(written string) ([]string, *fault.Fault) {
	if strings.HasPrefix(written, "/") && !strings.Contains(written, "local-name()") {
		steps := strings.Split(written[1:], "/")
		for i, step := range steps {
			steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		}
		return steps, nil
	}
	f := &fault.Fault{
		Message: fmt.Sprintf("the path %s is no JSON Pointer, which paths of messages in JSON are", written),
		Remedy:  "write the names of the members on the way, each behind a slash, such as /order/id",
	}
	if plain := strings.TrimPrefix(strings.TrimPrefix(written, "$"), "."); plain != "" && !strings.ContainsAny(plain, "*?()'\"@/") {
		plain = strings.NewReplacer("[", "/", "]", "", ".", "/").Replace(plain)
		f.Remedy = "write instead /" + plain
	}
	return nil, f
}

func (p *pointers) add(steps []string, property int) {
	for _, step := range steps {
		if p.children == nil {
			p.children = map[string]*pointers{}
		}
		next, has := p.children[step]
		if !has {
			next = &pointers{}
			p.children[step] = next
		}
		p = next
	}
	p.properties = append(p.properties, property)
}

func (c *compiledType) jsonPromotions(m *messageType) {
	for _, p := range m.paths() {
		steps, f := parsePointer(p.path)
		if f != nil {
			c.problem(f, p.setting, p.name)
			continue
		}
		if c.json == nil {
			c.json = &pointers{}
		}
		c.json.add(steps, len(c.destinations))
		c.destinations = append(c.destinations, destination{p.name, p.setting == "promotions", nil})
	}
}

// read gives the scalars of a document to which pointers lead; nil: none do.
func (p *pointers) read(r io.Reader) ([]typing.Value, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	found := &pointed{decoder: d}
	if err := found.value(p); err != nil {
		return nil, err
	}
	return found.values, nil
}

type pointed struct {
	decoder *json.Decoder
	values  []typing.Value
}

// value reads a value that p leads to; nil: nothing does.
func (f *pointed) value(p *pointers) error {
	token, err := f.decoder.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return f.members(p, token == '{')
	case nil:
		return nil
	default:
		if p != nil {
			text := fmt.Sprint(token)
			for _, property := range p.properties {
				f.values = append(f.values, typing.Value{Property: property, Text: text, Bytes: int64(len(text)), Times: 1})
			}
		}
		return nil
	}
}

func (f *pointed) members(p *pointers, isObject bool) error {
	for i := 0; f.decoder.More(); i++ {
		var next *pointers
		if isObject {
			name, err := f.decoder.Token()
			if err != nil {
				return err
			}
			if p != nil {
				next = p.children[fmt.Sprint(name)]
			}
		} else if p != nil && p.children != nil {
			next = p.children[strconv.Itoa(i)]
		}
		if next == nil {
			if err := f.skip(); err != nil {
				return err
			}
			continue
		}
		if err := f.value(next); err != nil {
			return err
		}
	}
	_, err := f.decoder.Token()
	return err
}

// skip passes over a value.
func (f *pointed) skip() error {
	depth := 0
	for {
		token, err := f.decoder.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
