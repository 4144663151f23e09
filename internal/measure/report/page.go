// Package report writes result pages: one HTML file with its charts in it, which asks nothing of any network and runs
// no script, so that it can be mailed, archived and opened from a disk.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"regexp"
)

// Page is a result page. All texts are plain; what they hold of HTML is shown as it is.
type Page struct {
	Title, Lead string
	Verdict     Verdict
	Tiles       []Tile
	Sections    []Section
	// Foot stands small at the end.
	Foot string
}

// Verdict is the first thing that a reader wants to know.
type Verdict struct {
	Good bool
	Text string
	// Details are the grounds of a bad one.
	Details []string
}

// Tile is a figure that stands large, with its unit small beside it where it has one. A bad one stands out.
type Tile struct {
	Value, Unit, Label string
	Bad                bool
}

// Section is a part of a page; what is not set is not there.
type Section struct {
	Title   string
	Text    []string
	Lines   *LineChart
	Bars    *BarChart
	Columns *ColumnChart
	Flow    *FlowPicture
	Table   *Table
	// Code is set as it is, such as a command to copy.
	Code string
	// After stands below everything else.
	After []string
}

// Table is a table whose first column names its rows. The other columns are numbers, unless Words is set.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]string
	Words   bool
}

//go:embed *.tmpl
var templates embed.FS

var page = template.Must(template.New("").Funcs(template.FuncMap{
	"layoutLines": layoutLines, "layoutBars": layoutBars, "layoutColumns": layoutColumns,
	"layoutFlow": layoutFlow, "formats": formats, "tied": tied,
	"laid":   func(f format, chart *BarChart) laid { return laid{f, chart} },
	"opened": func(f format, chart any, width, height float64) opened { return opened{f, chart, width, height} },
}).ParseFS(templates, "*.tmpl"))

// laid holds the values for the template of one drawing of bars.
type laid struct {
	Format format
	Chart  *BarChart
}

// opened holds the values for the template of the beginning of a drawing.
type opened struct {
	Format        format
	Chart         any
	Width, Height float64
}

var measure = regexp.MustCompile(`(\d) (s|ms|B|KB|MB|GB|GiB|GHz|cores?|percent|messages/s)\b`)

// tied keeps a number and its unit on one line.
func tied(text string) string { return measure.ReplaceAllString(text, "$1\u00a0$2") }

// Write writes the page as HTML.
func (p Page) Write(out io.Writer) error {
	if err := page.ExecuteTemplate(out, "page.html.tmpl", p); err != nil {
		return fmt.Errorf("write the result page: %w", err)
	}
	return nil
}
