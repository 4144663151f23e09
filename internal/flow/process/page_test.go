package process_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every example of the page is taken: whole orchestrations as they are, shapes with what the first one declares.
func TestExamplesOfThePageCompile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/flow/orchestrations.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 15 {
		t.Fatalf("the page has %d examples", len(blocks))
	}
	whole := blocks[0][1]
	head, _, _ := strings.Cut(whole, "    body:\n")
	begin := "    body:\n      - receive: {message: order, activate: true, initialise: [by_number]}\n" +
		"      - construct: {message: ask, from: order}\n      - receive: {message: answer, follow: [by_number]}\n"
	const ship = "  Ship:\n    application: Orders\n    host: Work\n    parameters: {weight: number}\n    variables: {price: any}\n" +
		"    body: [{set: {price: weight * 2.0}}]\n"
	for i, block := range blocks {
		text := block[1] + ship
		if i > 0 {
			text = head + begin
			for line := range strings.SplitSeq(strings.TrimRight(block[1], "\n"), "\n") {
				text += "      " + line + "\n"
			}
			text += ship
		}
		_, problems := compileIn(t, read(t, text), "Fulfil")
		for _, problem := range problems {
			isOfTheFrame := problem.Message == "the shape is never reached" || strings.Contains(problem.Message, "activates is not the first")
			if !isOfTheFrame {
				t.Errorf("%s\n%s (%s)", block[1], problem, problem.Remedy)
			}
		}
	}
}
