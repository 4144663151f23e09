package parts

import (
	"cmp"
	"slices"
)

// Leaves gives the parts that are no multipart, in their order in the message.
func (m *Message) Leaves() []Part {
	leaves := slices.Clone(m.Attachments)
	for _, text := range []*Part{m.Parsed.Text, m.Parsed.HTML} {
		if text != nil {
			leaves = append(leaves, *text)
		}
	}
	slices.SortFunc(leaves, func(a, b Part) int { return cmp.Compare(a.Offset, b.Offset) })
	return leaves
}

// Content gives the bytes of a part, without their encoding. The message is the one in which the part was found, whole.
func (p Part) Content(message []byte) []byte {
	begin := min(p.Offset, int64(len(message)))
	end := min(begin+p.Bytes, int64(len(message)))
	content := make([]byte, 0, p.Size)
	d := decoderOf(p.Encoding, func(piece []byte) { content = append(content, piece...) })
	d.write(message[begin:end])
	d.end()
	return content
}
