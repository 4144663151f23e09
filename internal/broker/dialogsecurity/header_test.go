package dialogsecurity

import (
	"bytes"
	"testing"
)

// The parser takes any input apart without a hole, or refuses it.
func FuzzHeader(f *testing.F) {
	for kind, size := range map[byte]int{kindAnonymous: anonymousSize, kindFull: fullSize, kindKnown: knownSize, 0: 10, 9: 300} {
		for _, rest := range []int{0, saltSize, saltSize + gcmTagSize, saltSize + digestSize + gcmTagSize, saltSize + 1} {
			data := bytes.Repeat([]byte{kind}, size+rest)
			data[0] = headerVersion
			f.Add(data)
		}
	}
	f.Add([]byte{})
	f.Add([]byte{headerVersion})
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := parseHeader(data)
		if err != nil {
			return
		}
		if got := bytes.Join([][]byte{h.agreement, h.salt, h.tag}, nil); !bytes.Equal(got, data) {
			t.Errorf("%x was taken for %x", data, got)
		}
		parts := bytes.Join([][]byte{{headerVersion, h.kind}, h.receiver, h.signer, h.sealedSecret, h.signature, h.keyID}, nil)
		if !bytes.Equal(parts, h.agreement) {
			t.Errorf("the parts %x are not the agreement %x", parts, h.agreement)
		}
		if len(h.salt) != saltSize {
			t.Errorf("the salt has %d bytes", len(h.salt))
		}
	})
}

// A certificate that can be read is the one that was written.
func FuzzCertificate(f *testing.F) {
	someone := newIdentity(f, "someone")
	f.Add(someone.Bytes)
	f.Add(someone.Bytes[:certificateHead])
	f.Add([]byte(certificateMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCertificate(data)
		if err != nil {
			return
		}
		again, err := Import(Exported{Certificate: c}.Text())
		if err != nil || !bytes.Equal(again.Bytes, data) || again.Fingerprint != c.Fingerprint || again.Subject != c.Subject {
			t.Errorf("%x became %x: %v", data, again.Bytes, err)
		}
	})
}
