package process_test

import (
	"strings"
	"testing"
)

// Shapes with a message without content, and with a set without values, because a word is misspelt.
const (
	withoutContent = "- konstruct: {message: ask, value: {a: '1'}}\n- send: ask"
	withoutSet     = "- scope: {correlations: {own: [MessageType]}, " +
		"do: [{send: {message: order, initialize: [own]}}, {receive: {message: answer, follow: [own]}}]}"
)

// A shape that is misspelt is one fault, at the word: the number of the element in its list says nothing to a reader.
func TestAMisspeltWordIsNamedWhereItStands(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"- parallell: {a: []}\n  name: x": `1/parallell there is no shape "parallell"`,
		"- name: x":                       `1 the element has no shape`,
		"- set: {count: '1'}\n  names: x": `1/names the element has no "names"`,
		withoutContent:                    `1/konstruct there is no shape "konstruct"`,
		withoutSet:                        `1/scope/do/0/send/initialize send has no "initialize"`,
		"- text":                          `1 the element is the text "text"`,
		"- delay: 5 sec":                  `1/delay/for "5 sec" is no interval`,
		"- scope: {timeout: 5s, do: [], catch: [{}]}": `1/scope/timeout "5s" is no interval`,
	} {
		_, problems := compileIn(t, read(t, withBody(begins+body)), "P")
		found := []string{}
		for _, p := range problems {
			found = append(found, strings.TrimPrefix(strings.Join(p.Path, "/"), "orchestration/P/body/")+" "+p.Message)
			if p.Remedy == "" {
				t.Errorf("%s has no remedy", p.Message)
			}
		}
		if len(found) != 1 || found[0] != want {
			t.Errorf("%s gives %q", body, found)
		}
	}
}
