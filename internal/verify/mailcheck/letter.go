package mailcheck

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/mail"
	"strings"
)

// keyField is the header field with the key of a letter.
const keyField = "X-Letter"

// Body makes the text of a letter of about so many bytes: lines of printable characters, of which some are empty or begin with a dot.
func Body(random *rand.Rand, size int) string {
	var text strings.Builder
	for text.Len() < size {
		switch random.IntN(12) {
		case 0:
			text.WriteString("\r\n")
			continue
		case 1:
			text.WriteByte('.')
		case 2:
			text.WriteString("..")
		case 3:
			text.WriteString(".\r\n")
			continue
		case 4:
			text.WriteString("From the shop: ")
		}
		for range 1 + random.IntN(120) {
			text.WriteByte(byte('!' + random.IntN('~'-'!'+1)))
		}
		text.WriteString("\r\n")
	}
	return text.String()
}

// Letter writes a whole message.
func Letter(key, sender string, recipients []string, body string) string {
	return fmt.Sprintf("From: <%s>\r\nTo: <%s>\r\nSubject: letter %s\r\nMessage-ID: <%s@workload.example>\r\n%s: %s\r\n\r\n%s",
		sender, strings.Join(recipients, ">,\r\n <"), key, key, keyField, key, body)
}

// Hash is that of the body of a message as [Letter] wrote it.
func Hash(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:12])
}

// HashText is that of a text that was rendered on its way, so that its line ends and its encoding may be others.
func HashText(text string) string {
	return Hash(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"))
}

// Read reads a message that has arrived: which letter it is and the hash of its body, or what it reports.
func Read(message []byte) (key, hash string, report *Report, err error) {
	parsed, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return "", "", nil, fmt.Errorf("read a message: %w", err)
	}
	if report, err = readReport(parsed); report != nil || err != nil {
		return "", "", report, err
	}
	key = parsed.Header.Get(keyField)
	encoding := strings.ToLower(parsed.Header.Get("Content-Transfer-Encoding"))
	body := parsed.Body
	switch encoding {
	case "":
		_, text, _ := bytes.Cut(message, []byte("\r\n\r\n"))
		return key, Hash(string(text)), nil, nil
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return key, "", nil, fmt.Errorf("decode the body of %s: %w", key, err)
	}
	return key, HashText(string(text)), nil, nil
}
