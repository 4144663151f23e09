package process

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Measures of the picture, in its own units.
const (
	boxWidth   = 210
	boxHeight  = 40
	gap        = 16 // between shapes, and around those within another one
	titleSpace = 22
	lineLetter = 30 // letters that fit into a box
)

// drawing is a part of the picture: how large it is, and where its parts lie.
type drawing struct {
	shape         *shape
	width, height int
	columns       []*drawing // branches beside each other
	rows          []*drawing // shapes below each other
}

// SVG draws the orchestration: passed are the shapes that an instance went through, at those where it stands. It asks for nothing from
// elsewhere, and follows the light or dark of the page.
func (p *Program) SVG(passed []Passed, at []string) []byte {
	d := measured(p.root)
	picture := &picture{passed: map[string]int{}, ways: map[string]map[string]bool{}, at: map[string]bool{}}
	for _, one := range passed {
		picture.passed[one.Path]++
		if picture.ways[one.Path] == nil {
			picture.ways[one.Path] = map[string]bool{}
		}
		picture.ways[one.Path][one.Way] = true
	}
	for _, place := range at {
		picture.at[place] = true
	}
	width, height := d.width+2*gap, d.height+2*gap
	const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`
	fmt.Fprintf(&picture.out, head, width, height, width, height, html.EscapeString("orchestration "+p.name))
	picture.out.WriteString(pictureStyle)
	picture.draw(d, gap, gap)
	picture.out.WriteString("</svg>\n")
	return picture.out.Bytes()
}

// Page is a page of HTML with the picture and a line for each fact below it, name and text.
func (p *Program) Page(passed []Passed, at []string, facts [][2]string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%[1]s</title>\n%[2]s</head><body>\n"+
		"<h1>%[1]s</h1>\n",
		html.EscapeString(p.name), pageStyle)
	if p.description != "" {
		fmt.Fprintf(&out, "<p>%s</p>\n", html.EscapeString(p.description))
	}
	if len(facts) > 0 {
		out.WriteString("<table>\n")
		for _, fact := range facts {
			fmt.Fprintf(&out, "<tr><th>%s</th><td>%s</td></tr>\n", html.EscapeString(fact[0]), html.EscapeString(fact[1]))
		}
		out.WriteString("</table>\n")
	}
	out.Write(p.SVG(passed, at))
	out.WriteString("</body></html>\n")
	return out.Bytes()
}

const pageStyle = `<meta name="viewport" content="width=device-width">
<style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; background: light-dark(#fff, #15181c); color: light-dark(#1c2126, #e4e7eb) }
th { text-align: left; padding-right: 2rem; font-weight: 600; vertical-align: top } svg { max-width: 100%; height: auto }
</style>
`

const pictureStyle = `<style>
.box { fill: #f4f6f8; stroke: #8b97a3 } .group { fill: none; stroke: #b4bdc6; stroke-dasharray: 4 3 } .way { stroke: #8b97a3; fill: none }
text { font: 12px system-ui, sans-serif; fill: #1c2126 } .kind { font-weight: 600 } .detail, .label { fill: #5a6672 }
.passed > .box { fill: #dcefe1; stroke: #2f8f4e } .passed > .group { stroke: #2f8f4e } .count { fill: #2f8f4e; font-weight: 600 }
.at > .box { fill: #ffe9b8; stroke: #b87400; stroke-width: 2.5 } .at > .group { stroke: #b87400; stroke-width: 2.5 }
@media (prefers-color-scheme: dark) {
.box { fill: #23282e; stroke: #66717c } .group { stroke: #4a545e } .way { stroke: #66717c }
text { fill: #e4e7eb } .detail, .label { fill: #a3aeb9 }
.passed > .box { fill: #1d3a27; stroke: #4cbf72 } .passed > .group { stroke: #4cbf72 } .count { fill: #4cbf72 }
.at > .box { fill: #4d3a10; stroke: #f0b43c } .at > .group { stroke: #f0b43c }
}
</style>
`

// measured gives a shape its size.
func measured(s *shape) *drawing {
	d := &drawing{shape: s}
	if _, is := s.act.(*sequence); is {
		for _, child := range s.children {
			row := measured(child)
			d.rows = append(d.rows, row)
			d.width, d.height = max(d.width, row.width), d.height+row.height+gap
		}
		d.width, d.height = max(d.width, boxWidth/2), max(d.height-gap, gap)
		if s.label != "" {
			d.height += titleSpace
			d.width = max(d.width, 7*min(utf8.RuneCountInString(s.label), 2*lineLetter))
		}
		return d
	}
	if len(s.children) == 0 {
		d.width, d.height = boxWidth, boxHeight
		return d
	}
	for _, child := range s.children {
		column := measured(child)
		d.columns = append(d.columns, column)
		d.width, d.height = d.width+column.width+gap, max(d.height, column.height)
	}
	d.width, d.height = max(d.width+gap, boxWidth), d.height+titleSpace+2*gap
	return d
}

type picture struct {
	out    bytes.Buffer
	passed map[string]int
	ways   map[string]map[string]bool
	at     map[string]bool
}

func (p *picture) draw(d *drawing, x, y int) {
	s := d.shape
	if _, is := s.act.(*sequence); is {
		p.drawRows(d, x, y)
		return
	}
	class := "shape"
	if p.passed[s.place] > 0 {
		class += " passed"
	}
	if p.at[s.place] {
		class += " at"
	}
	fmt.Fprintf(&p.out, "<g class=%q id=%q><title>%s</title>", class, html.EscapeString(s.place), html.EscapeString(p.told(s)))
	box, kind, detail := "box", s.kind, s.detail
	if s.label != "" {
		kind = s.label
		if detail == "" {
			detail = s.kind
		} else {
			detail = s.kind + " " + detail
		}
	}
	if len(d.columns) > 0 {
		box = "group"
		if detail != "" {
			kind, detail = kind+": "+detail, ""
		}
	}
	fmt.Fprintf(&p.out, `<rect class=%q x="%d" y="%d" width="%d" height="%d" rx="6"/>`, box, x, y, d.width, d.height)
	p.text("kind", x+10, y+16, kind, max(lineLetter, d.width/8))
	p.text("detail", x+10, y+32, detail, lineLetter)
	if n := p.passed[s.place]; n > 1 {
		p.text("count", x+d.width-38, y+16, "×"+strconv.Itoa(n), lineLetter)
	}
	left := x + gap
	for _, column := range d.columns {
		p.draw(column, left, y+titleSpace+gap)
		left += column.width + gap
	}
	p.out.WriteString("</g>\n")
}

// told says of a shape what a reader sees who points at it.
func (p *picture) told(s *shape) string {
	lines := []string{strings.TrimSpace(s.kind + " " + s.label), s.place}
	if s.detail != "" {
		lines = append(lines, s.detail)
	}
	if n := p.passed[s.place]; n > 0 {
		lines = append(lines, "passed "+strconv.Itoa(n)+" times")
		for way := range p.ways[s.place] {
			if way != "" {
				lines = append(lines, "to: "+way)
				break
			}
		}
	}
	if p.at[s.place] {
		lines = append(lines, "the instance stands here")
	}
	return strings.Join(lines, "\n")
}

func (p *picture) drawRows(d *drawing, x, y int) {
	if d.shape.label != "" {
		p.text("label", x, y+12, d.shape.label, max(2*lineLetter, d.width/7))
		y += titleSpace
	}
	for i, row := range d.rows {
		left := x + (d.width-row.width)/2
		if i > 0 {
			middle := x + d.width/2
			fmt.Fprintf(&p.out, `<path class="way" d="M%d %dv%dm-4 -5l4 5l4 -5"/>`, middle, y-gap, gap)
		}
		p.draw(row, left, y)
		y += row.height + gap
	}
}

func (p *picture) text(class string, x, y int, text string, most int) {
	if text == "" {
		return
	}
	if letters := []rune(strings.Join(strings.Fields(text), " ")); len(letters) > most {
		text = string(letters[:most-1]) + "…"
	}
	fmt.Fprintf(&p.out, `<text class=%q x="%d" y="%d">%s</text>`, class, x, y, html.EscapeString(text))
}
