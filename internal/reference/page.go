package reference

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/sql"
)

const head = `# SQL reference: %[1]s

<!-- Written by go generate ./internal/reference out of the files in sql/. Change them, not this page. -->

Everything that may be used of the schema ` + "`%[2]s`" + `.
Names that begin with ` + "`_p_`" + ` are private and change without
notice. For what the words mean see [concepts](concepts/broker.md) and the [glossary](reference/glossary.md); for statements of
SQL Server see [migration](guides/migration.md).

`

// Pages writes a reference page for each wing that is for users, by the wing's name, from the files of the schema and a database in
// which it is installed.
//
// Errors: a public object without a place on a page, or without a comment.
func Pages(ctx context.Context, files fs.FS, db parley.DB) (map[string]string, error) {
	objects, err := readSource(files)
	if err != nil {
		return nil, err
	}
	columns, err := readColumns(ctx, db)
	if err != nil {
		return nil, err
	}
	errors, err := readErrors(ctx, db)
	if err != nil {
		return nil, err
	}
	if err := check(objects, of(errors, isRaised), raisedBy(objects)); err != nil {
		return nil, err
	}
	pages := map[string]string{}
	for _, w := range sql.Wings() {
		if w.IsForUsers {
			pages[w.Name] = writePage(w, objects, columns, errors)
		}
	}
	return pages, nil
}

// linkToPage finds links to pages of docs/, which is two folders above the pages that are made.
var linkToPage = regexp.MustCompile(`\]\(([a-z-]+/[a-zA-Z-]+\.md)`)

func writePage(w sql.Wing, objects []object, columns map[string][]column, errors []brokerError) string {
	raised, by := of(errors, isRaised), raisedBy(objects)
	var page strings.Builder
	fmt.Fprintf(&page, head, w.Name, w.Schema)
	ofWing := slices.DeleteFunc(slices.Clone(sections), func(s section) bool { return !w.Has(s.files[0]) })
	for _, s := range ofWing {
		writeIndex(&page, s, objects)
	}
	for _, s := range ofWing {
		fmt.Fprintf(&page, "\n## %s\n", s.title)
		if s.intro != "" {
			fmt.Fprintf(&page, "\n%s\n", s.intro)
		}
		if s.title == "Errors" {
			writeErrors(&page, raised, by)
			writeStatuses(&page, of(errors, isStatus))
		}
		writeObjects(&page, s.of(objects), columns)
	}
	return linkToPage.ReplaceAllString(page.String(), "](../../$1")
}

// check refuses what the page could not show.
func check(objects []object, raised []brokerError, by map[int][]string) error {
	for _, o := range objects {
		if isOwners(o) {
			continue
		}
		if !slices.ContainsFunc(sections, func(s section) bool { return slices.Contains(s.files, o.file) }) {
			return fmt.Errorf("sql/%s has no section in internal/reference/section.go", o.file)
		}
		if o.comment == "" {
			return fmt.Errorf("sql/%s: %s %s has no comment", o.file, o.kind, o.fullName())
		}
	}
	for _, e := range raised {
		if len(by[e.Number]) == 0 {
			return fmt.Errorf("error %d is raised, but no public function says so in its comment", e.Number)
		}
	}
	return nil
}

// isOwners reports whether an object is for the owner of the schema alone.
func isOwners(o object) bool {
	return slices.ContainsFunc(sql.Wings(), func(w sql.Wing) bool { return w.Has(o.file) && !w.IsForUsers })
}

// of gives the objects of a section in the order of its files.
func (s section) of(objects []object) []object {
	var found []object
	for _, file := range s.files {
		for _, o := range objects {
			if o.file == file {
				found = append(found, o)
			}
		}
	}
	return found
}

func writeIndex(page *strings.Builder, s section, objects []object) {
	var links []string
	for _, o := range s.of(objects) {
		link := fmt.Sprintf("[%s](#%s)", o.name, anchor(o))
		if !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	fmt.Fprintf(page, "- [%s](#%s): %s\n", s.title, strings.ReplaceAll(strings.ToLower(s.title), " ", "-"), strings.Join(links, ", "))
}

// anchor is the anchor of the heading of an object.
func anchor(o object) string { return o.schema + o.name }

func writeObjects(page *strings.Builder, objects []object, columns map[string][]column) {
	previous := ""
	for _, o := range objects {
		if o.fullName() != previous {
			fmt.Fprintf(page, "\n### %s\n", o.fullName())
		}
		previous = o.fullName()
		if o.kind == "function" {
			fmt.Fprintf(page, "\n```sql\n%s\n```\n", o.signature)
		}
		writeComment(page, o.comment)
		if o.kind != "function" {
			writeColumns(page, columns[o.fullName()])
		}
	}
}

// sources are for those who read the code.
var sources = regexp.MustCompile(` *\(spec [0-9., ]+\)`)

// writeComment makes paragraphs of the parts of a comment.
func writeComment(page *strings.Builder, comment string) {
	comment = sources.ReplaceAllString(comment, "")
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(line)
		label, rest, isLabelled := strings.Cut(line, ":")
		switch {
		case line == "" || isLabelled && label == "Source":
		case isLabelled && slices.Contains([]string{"Arguments", "Columns", "Errors", "Permissions"}, label):
			fmt.Fprintf(page, "\n**%s:**%s\n", label, rest)
		case line == strings.TrimSpace(strings.SplitN(comment, "\n", 2)[0]):
			fmt.Fprintf(page, "\n%s\n", line)
		default:
			fmt.Fprintln(page, line)
		}
	}
}

func writeColumns(page *strings.Builder, columns []column) {
	page.WriteString("\n| Column | Type | Meaning |\n| --- | --- | --- |\n")
	for _, c := range columns {
		fmt.Fprintf(page, "| `%s` | `%s` | %s |\n", c.name, c.kind, cell(c.comment))
	}
}

// manyFunctions is from where on it is no help to list who raises an error.
const manyFunctions = 12

// writeErrors writes a row for each situation. Texts that are the same for all of a number stand in its first row.
func writeErrors(page *strings.Builder, raised []brokerError, by map[int][]string) {
	page.WriteString("\n| Number | SQLSTATE | Message | Cause | Remedy | Raised by |\n| ---: | --- | --- | --- | --- | --- |\n")
	previous := 0
	for _, e := range raised {
		number, code, functions := "", "", ""
		if e.Number != previous {
			number, code, functions = strconv.Itoa(e.Number), "`"+e.Sqlstate+"`", "many functions"
			if names := by[e.Number]; len(names) < manyFunctions {
				functions = "`" + strings.Join(names, "`, `") + "`"
			}
		}
		previous = e.Number
		cause := ""
		if e.Cause != nil {
			cause = *e.Cause
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s |\n", number, code, template(e.Message), template(cause),
			template(e.Remedy), functions)
	}
}

// writeStatuses writes a row for each reason for which messages wait.
func writeStatuses(page *strings.Builder, statuses []brokerError) {
	page.WriteString("\nWhy messages wait, as `transmission_status` says it:\n\n| Number | Status | Remedy |\n| ---: | --- | --- |\n")
	for _, e := range statuses {
		fmt.Fprintf(page, "| %d | %s | %s |\n", e.Number, template(e.Message), template(e.Remedy))
	}
}

// The list of Error messages stands between these lines of the page on concepts.
const (
	messagesBegin = "<!-- Error messages: written by go generate ./internal/reference. -->\n"
	messagesEnd   = "\n<!-- End of Error messages. -->"
)

// WriteMessages gives the page on concepts with the list of Error messages that the broker sends, out of a database with the schema.
//
// Errors: a page without the lines between which the list stands.
func WriteMessages(ctx context.Context, page string, db parley.DB) (string, error) {
	before, rest, hasBegin := strings.Cut(page, messagesBegin)
	_, after, hasEnd := strings.Cut(rest, messagesEnd)
	if !hasBegin || !hasEnd {
		return "", fmt.Errorf("the page has no place for the list of Error messages")
	}
	errors, err := readErrors(ctx, db)
	if err != nil {
		return "", err
	}
	var list strings.Builder
	list.WriteString("\n| Code | Description | Remedy |\n| ---: | --- | --- |\n")
	for _, e := range of(errors, isMessage) {
		fmt.Fprintf(&list, "| -%d | %s | %s |\n", e.Number, template(e.Message), template(e.Remedy))
	}
	return before + messagesBegin + list.String() + messagesEnd + after, nil
}

// place is where format() puts a value in.
var place = regexp.MustCompile(`%[0-9]+\$[sIL]`)

// template writes a text of an error for a cell.
func template(text string) string {
	return cell(strings.ReplaceAll(place.ReplaceAllString(text, "…"), "%%", "%"))
}

// cell keeps a text inside its cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", "\\|")
}
