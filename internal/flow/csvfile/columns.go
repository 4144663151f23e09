package csvfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// checkColumns holds the header line against the columns that are expected, so that a wrong delimiter, or the file of somebody else, is
// found before its first line.
func (r *reader) checkColumns() error {
	place := fault.Place{Line: 1, Column: 1}
	for _, column := range r.Columns {
		if !slices.Contains(r.summary.Columns, column) {
			return &fault.Fault{
				Message: fmt.Sprintf("the header line does not name the column %q", column), Place: place,
				Expected: "the columns " + quoted(r.Columns),
				Remedy:   r.delimiterOr("send the file with these columns, or mend the setting columns"),
			}
		}
	}
	isKnown := func(column string) bool {
		return slices.Contains(r.Known, column) || !r.AsJSON && slices.Contains(r.Known, ElementName(column))
	}
	if len(r.Known) == 0 || slices.ContainsFunc(r.summary.Columns, isKnown) {
		return nil
	}
	return &fault.Fault{
		Message: "the schema of the message type has none of the columns " + quoted(r.summary.Columns), Place: place,
		Expected: "columns such as " + quoted(r.Known),
		Remedy:   r.delimiterOr("send the file with its header line, or name the right message type"),
	}
}

// isOfOtherDelimiter reports whether the header line and a row are one value each with another usual delimiter in it.
func (r *reader) isOfOtherDelimiter(row []string) bool {
	if slices.Equal(r.Columns, r.summary.Columns) {
		return false
	}
	other, _ := likelyDelimiter(r.summary.Columns)
	return other != "" && len(row) == 1 && strings.Contains(row[0], other)
}

func (r *reader) wrongDelimiter() error {
	return &fault.Fault{
		Message:  fmt.Sprintf("the header line and the line behind it are one value each: %q", r.summary.Columns[0]),
		Expected: fmt.Sprintf("%q between values", r.Delimiter), Place: fault.Place{Line: 1, Column: 1},
		Remedy: r.delimiterOr("") + "; where it is the name of one column, name it in the setting columns",
	}
}

// delimiterOr is the remedy of a header line that is one name with another delimiter in it, or another remedy.
func (r *reader) delimiterOr(remedy string) string {
	if _, other := likelyDelimiter(r.summary.Columns); other != "" {
		return "set the delimiter: the header line is one name with " + other + " in it"
	}
	return remedy
}

// likelyDelimiter gives the delimiter of a header line that has another one than was set, and its name; "" where nothing shows that.
func likelyDelimiter(columns []string) (character, name string) {
	if len(columns) != 1 {
		return "", ""
	}
	for _, other := range []struct{ character, name string }{{";", `";"`}, {"\t", `a tab ("\t")`}, {"|", `"|"`}, {",", `","`}} {
		if strings.Contains(columns[0], other.character) {
			return other.character, other.name
		}
	}
	return "", ""
}

// namesMost bounds the names that an error lists.
const namesMost = 10

func quoted(names []string) string {
	text := make([]string, 0, namesMost)
	for _, name := range names[:min(len(names), namesMost)] {
		text = append(text, fmt.Sprintf("%q", name))
	}
	if len(names) > namesMost {
		text = append(text, "...")
	}
	return strings.Join(text, ", ")
}
