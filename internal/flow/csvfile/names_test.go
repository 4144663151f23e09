package csvfile_test

import (
	"bytes"
	"encoding/xml"
	"strings"

	"github.com/parley-broker/parley/internal/flow/csvfile"
)

// rowsXML writes rows as the reader does.
func rowsXML(columns []string, rows [][]string) string {
	var b bytes.Buffer
	b.WriteString("<Rows>")
	for _, row := range rows {
		b.WriteString("<Row>")
		for i, value := range row {
			name := csvfile.ElementName(columns[i])
			if value == "" {
				b.WriteString("<" + name + "/>")
				continue
			}
			b.WriteString("<" + name + ">")
			_ = xml.EscapeText(&b, []byte(value)) // a bytes.Buffer takes everything
			b.WriteString("</" + name + ">")
		}
		b.WriteString("</Row>")
	}
	return strings.TrimSpace(b.String()) + "</Rows>"
}
