package cli

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
)

// The size of a screen as a picture, in pixels.
const (
	cellWidth, lineHeight = 8.4, 20
	pictureMargin         = 14
)

// styleClasses are the styles that the screen uses, by their number in an escape sequence.
var styleClasses = map[string]string{"1": "bold", "2": "faint", "7": "reversed", "31": "alarming"}

var styleSequence = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// screenPicture draws screens of a terminal below each other, as SVG.
func screenPicture(title string, columns int, screens ...string) (string, error) {
	var drawn strings.Builder
	width := float64(columns)*cellWidth + 2*pictureMargin
	top := 0
	for _, screen := range screens {
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		height := len(lines)*lineHeight + pictureMargin
		fmt.Fprintf(&drawn, `  <rect class="page" y="%d" width="%.0f" height="%d" rx="8"/>`+"\n", top, width, height)
		for n, line := range lines {
			if err := drawLine(&drawn, line, top+pictureMargin/2+n*lineHeight); err != nil {
				return "", err
			}
		}
		top += height + pictureMargin
	}
	height := top - pictureMargin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img"`+
		` font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">
  <title>%s</title>
  <style>
    .page { fill: #0d1117; }
    text { fill: #e6edf3; white-space: pre; }
    .bold { font-weight: 700; }
    .faint { fill: #8b949e; }
    .alarming { fill: #ff7b72; }
    .band { fill: #e6edf3; }
    .reversed { fill: #0d1117; }
  </style>
%s</svg>
`, width, height, width, height, escaped(title), drawn.String()), nil
}

// drawLine draws one line of the screen below a height: a text for each piece of one style.
func drawLine(out *strings.Builder, line string, top int) error {
	var classes []string
	column := 0
	draw := func(text string) {
		wide := lipgloss.Width(text)
		x := pictureMargin + float64(column)*cellWidth
		column += wide
		class := strings.Join(classes, " ")
		if strings.Contains(class, "reversed") {
			fmt.Fprintf(out, `  <rect class="band" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", x, top, float64(wide)*cellWidth, lineHeight)
		}
		if strings.TrimSpace(text) == "" {
			return
		}
		fmt.Fprintf(out, `  <text class="%s" x="%.1f" y="%d" textLength="%.1f" xml:space="preserve">%s</text>`+"\n",
			class, x, top+lineHeight*3/4, float64(wide)*cellWidth, escaped(text))
	}
	begin := 0
	for _, at := range styleSequence.FindAllStringSubmatchIndex(line, -1) {
		draw(line[begin:at[0]])
		begin = at[1]
		for number := range strings.SplitSeq(line[at[2]:at[3]], ";") {
			class, known := styleClasses[number]
			switch {
			case number == "" || number == "0":
				classes = nil
			case known:
				classes = append(classes, class)
			default:
				return fmt.Errorf("no picture of style %s in %q", number, line)
			}
		}
	}
	if strings.Contains(line[begin:], "\x1b") {
		return fmt.Errorf("no picture of the control sequence in %q", line)
	}
	draw(line[begin:])
	return nil
}

func escaped(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a buffer takes everything
	return out.String()
}

func TestPictureOfAScreenKeepsItsTextPlacesAndStyles(t *testing.T) {
	t.Parallel()
	bold, reversed := lipgloss.NewStyle().Bold(true), lipgloss.NewStyle().Reverse(true)
	alarming := lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
	for _, c := range []struct{ name, screen, want string }{
		{"plain", "shop  3", `<text class="" x="14.0" y="22" textLength="58.8" xml:space="preserve">shop  3</text>`},
		{"bold", bold.Render("QUEUE"), `<text class="bold" x="14.0" y="22" textLength="42.0" xml:space="preserve">QUEUE</text>`},
		{"red", alarming.Render("OFF"), `<text class="alarming" x="14.0" y="22" textLength="25.2" xml:space="preserve">OFF</text>`},
		{"reversed", reversed.Render("ab"), `<rect class="band" x="14.0" y="7" width="16.8" height="20"/>`},
		{"after a style", "ab" + bold.Render("cd") + "ef", `<text class="" x="47.6" y="22" textLength="16.8" xml:space="preserve">ef</text>`},
		{"second line", "a\nb", `<text class="" x="14.0" y="42" textLength="8.4" xml:space="preserve">b</text>`},
		{"no markup", `<script>&"`, `&lt;script&gt;&amp;&#34;</text>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			picture, err := screenPicture("a screen", 20, c.screen)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(picture, c.want) {
				t.Errorf("no %s in\n%s", c.want, picture)
			}
			if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil {
				t.Errorf("%v in\n%s", err, picture)
			}
		})
	}
	for _, unknown := range []string{"\x1b[5mblinking", "\x1b[2J"} {
		if picture, err := screenPicture("a screen", 20, unknown); err == nil {
			t.Errorf("%q became\n%s", unknown, picture)
		}
	}
}
