package value

import "testing"

// A document keeps what SQL Server keeps of it and shows again.
func TestXMLIsWrittenAsSQLServerWritesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"<?xml version=\"1.0\"?>\n<a></a>\n", "<a/>"},
		{`<a  b='1 "2"'	c = "x>" ></a >`, `<a b="1 &quot;2&quot;" c="x&gt;"/>`},
		{"<a> <b> </b>\n<c>x</c> </a>", "<a><b/><c>x</c></a>"},
		{"<a><![CDATA[x<y]]> <b/>&#65;&amp;&gt;'\"</a>", "<a>x&lt;y <b/>A&amp;&gt;'\"</a>"},
		{"<p:a xmlns:p='u' p:b=''/>", `<p:a xmlns:p="u" p:b=""/>`},
		{"<a><!-- < --><?do it?></a>", "<a><!-- < --><?do it?></a>"},
		{"one<a/>two", "one<a/>two"},
		{"", ""},
	} {
		got, err := Defaults().Cast(TextOf(Sized(NVarChar, Max), c.text), Of(XML))
		if err != nil || got.Raw() != c.want {
			t.Errorf("%s is %s, %v, want %s", c.text, got.Raw(), err, c.want)
		}
	}
	spaced, err := wellFormed("<a> <b></b> </a>", true)
	if err != nil || spaced != "<a> <b/> </a>" {
		t.Errorf("with its space it is %s, %v", spaced, err)
	}
}
