package receive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// identityFields are those that a message keeps on its way, whoever passes it on, and by which a second copy of it is known. Resent-* are
// among them: what somebody sends on once more is to arrive once more.
var identityFields = []string{
	"Message-Id", "Date", "From", "Sender", "To", "Cc", "Subject", "Reply-To", "List-Id", "Content-Type", "Content-Transfer-Encoding",
	"Resent-Message-Id", "Resent-Date", "Resent-From", "Resent-To",
}

// identify gives the message the identity that another copy of it has, where mailboxes are to get it once (spec section 12.1): of its body,
// which is the whole of it, and of the fields that say what it is. Without a Message-Id it has none.
func (t *transaction) identify() {
	if !t.connection.configuration.IdentifiesMessages || t.header.Value("Message-Id") == "" {
		return
	}
	sum := sha256.New()
	for _, name := range identityFields {
		for _, field := range t.header.All(name) {
			fmt.Fprintf(sum, "%s:%s\x00", name, strings.Join(strings.Fields(field.Value()), " "))
		}
	}
	sum.Write([]byte{0})
	if _, err := io.Copy(sum, t.body.Tail()); err != nil {
		return // whoever stores it will say so
	}
	text := hex.EncodeToString(sum.Sum(nil)[:16])
	t.envelope.Identity = strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}
