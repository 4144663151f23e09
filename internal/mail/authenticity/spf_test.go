package authenticity_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"go.yaml.in/yaml/v3"

	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
)

// texts is one text of YAML, or a list of them.
type texts []string

func (t *texts) UnmarshalYAML(node *yaml.Node) error {
	var many []string
	if err := node.Decode(&many); err == nil {
		*t = many
		return nil
	}
	var one string
	err := node.Decode(&one)
	*t = texts{one}
	return err
}

type suite struct {
	Description string
	Tests       map[string]struct {
		Helo, Host, MailFrom string
		Result               texts
		Skip                 string
	}
	ZoneData map[string][]yaml.Node `yaml:"zonedata"`
}

// records puts the records of a suite into a zone.
func (s suite) records(t *testing.T) zone {
	t.Helper()
	z := zone{}
	for name, nodes := range s.ZoneData {
		name = strings.ReplaceAll(name, " ", `\ `)
		header := func(kind uint16) dns.RR_Header {
			return dns.RR_Header{Name: dns.Fqdn(name), Rrtype: kind, Class: dns.ClassINET, Ttl: 60}
		}
		hasTXT := slices.ContainsFunc(nodes, func(n yaml.Node) bool { return n.Kind == yaml.MappingNode && n.Content[0].Value == "TXT" })
		for _, node := range nodes {
			if node.Kind != yaml.MappingNode {
				z.fail(name)
				continue
			}
			var values texts
			_ = node.Content[1].Decode(&values)
			switch kind := node.Content[0].Value; kind {
			case "A", "AAAA", "PTR", "CNAME":
				for _, value := range values {
					if kind == "PTR" || kind == "CNAME" {
						value = dns.Fqdn(value)
					}
					z.add(t, dns.Fqdn(name)+" 60 IN "+kind+" "+value)
				}
			case "MX":
				z.add(t, dns.Fqdn(name)+" 60 IN MX "+values[0]+" "+dns.Fqdn(values[1]))
			case "TXT", "SPF":
				if kind == "SPF" && hasTXT || len(values) == 1 && values[0] == "NONE" {
					continue
				}
				z.put(&dns.TXT{Hdr: header(dns.TypeTXT), Txt: pieces(strings.Join(values, ""))})
			default: // TIMEOUT and the like
				z.fail(name)
			}
		}
	}
	return z
}

// pieces cuts a text into the strings of a TXT record.
func pieces(text string) (all []string) {
	for len(text) > 255 {
		all, text = append(all, text[:255]), text[255:]
	}
	return append(all, text)
}

// unlike are the tests of the suite whose outcome depends on the answers that the system's resolver lets through, with the outcome here.
var unlike = map[string]string{
	"macro-mania-in-domain": "fail", // the resolver of Go asks for no address of a name with blanks
}

// The published suite of RFC 7208, asked of a DNS server on this machine.
func TestSuiteOfSPF(t *testing.T) {
	t.Parallel()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "blitiri.com.ar/go/spf").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(strings.TrimSpace(string(folder)), "testdata", "rfc7208-tests.yml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	count := 0
	for decoder := yaml.NewDecoder(file); ; {
		var s suite
		err := decoder.Decode(&s)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		verifier := &authenticity.Verifier{Resolver: s.records(t).resolver(t)}
		for name, test := range s.Tests {
			if test.Skip != "" {
				continue
			}
			count++
			verdict := verifier.Verify(t.Context(), authenticity.Message{
				Peer: netip.MustParseAddr(test.Host), Helo: test.Helo, Sender: test.MailFrom, Identity: "mx", Header: message.Header{}, Body: nothing,
			})
			var found struct{ SPF string }
			if err := json.Unmarshal(verdict.Results, &found); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(test.Result, found.SPF) && unlike[name] != found.SPF {
				t.Errorf("%s: %s: got %s, want %s (%s)", s.Description, name, found.SPF, test.Result, verdict.Field.Value())
			}
		}
	}
	if count < 170 {
		t.Errorf("the suite has %d tests only", count)
	}
}

func nothing() io.Reader { return strings.NewReader("") }
