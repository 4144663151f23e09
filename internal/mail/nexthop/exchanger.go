package nexthop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
	"golang.org/x/net/idna"
)

// Host is a host that takes mail.
type Host struct {
	// Name is its name in ASCII, without the dot of the root; "" when only an address is known.
	Name string
	// Preference is that of its MX record: lower ones are tried first.
	Preference uint16
	// Secure is whether the MX record that names it was in a signed zone.
	Secure bool
}

// Exchangers are the hosts that take mail for a domain, in the order in which to try them: by preference, those that are equal in random
// order. Hosts that are not better than this one are left out (RFC 5321 section 5.1), where self says which names are this one's.
//
// It fails with an [*Error]: 5.1.10 when the domain takes no mail, 5.1.2 when it does not exist, 5.4.6 when this host is its best
// exchanger, 4.4.3 when nobody could be asked.
func (r *Resolver) Exchangers(ctx context.Context, domain string, self func(name string) bool) ([]Host, error) {
	if literal, is := literalOf(domain); is {
		return []Host{{Name: literal.String()}}, nil
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(domain, "."))
	if err != nil || ascii == "" {
		return nil, &Error{Permanent: true, Enhanced: "5.1.2", Text: fmt.Sprintf("%q is no name of a domain", domain), cause: err}
	}
	known, err := r.lookup(ctx, ascii, dns.TypeMX)
	if err != nil {
		return nil, err
	}
	if len(known.records) == 0 {
		if !known.exists {
			return nil, &Error{Permanent: true, Enhanced: "5.1.2", Text: fmt.Sprintf("the domain %s does not exist", ascii)}
		}
		// A domain without MX records is its own exchanger.
		if self(ascii) {
			return nil, loops(ascii)
		}
		return []Host{{Name: ascii, Secure: known.secure}}, nil
	}

	hosts := make([]Host, 0, len(known.records))
	for _, record := range known.records {
		exchanger := record.(*dns.MX)
		if exchanger.Mx == "." {
			if len(known.records) == 1 {
				return nil, &Error{Permanent: true, Enhanced: "5.1.10", Text: fmt.Sprintf("the domain %s takes no mail", ascii)}
			}
			continue
		}
		hosts = append(hosts, Host{
			Name: strings.ToLower(display(exchanger.Mx)), Preference: exchanger.Preference, Secure: known.secure,
		})
	}
	rand.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	slices.SortStableFunc(hosts, func(a, b Host) int { return int(a.Preference) - int(b.Preference) })
	if own := slices.IndexFunc(hosts, func(h Host) bool { return self(h.Name) }); own >= 0 {
		best := hosts[own].Preference
		hosts = slices.DeleteFunc(hosts, func(h Host) bool { return h.Preference >= best })
		if len(hosts) == 0 {
			return nil, loops(ascii)
		}
	}
	if len(hosts) == 0 {
		return nil, &Error{Permanent: true, Enhanced: "5.1.10", Text: fmt.Sprintf("the domain %s takes no mail", ascii)}
	}
	return hosts, nil
}

// literalOf reads an address in brackets, which stands for itself (RFC 5321 section 4.1.3).
func literalOf(domain string) (netip.Addr, bool) {
	inner, is := strings.CutPrefix(domain, "[")
	inner, ends := strings.CutSuffix(inner, "]")
	if !is || !ends {
		return netip.Addr{}, false
	}
	const tag = "IPv6:"
	six := len(inner) > len(tag) && strings.EqualFold(inner[:len(tag)], tag)
	if six {
		inner = inner[len(tag):]
	}
	address, err := netip.ParseAddr(inner)
	return address, err == nil && address.Is6() == six && address.Zone() == ""
}

func loops(domain string) error {
	return &Error{Permanent: true, Enhanced: "5.4.6", Text: fmt.Sprintf("mail for %s would come back to this host", domain)}
}

// Addresses are the addresses of a host, those of version 6 and 4 in turn, and whether they were in a signed zone. It fails with an
// [*Error]: 5.4.4 when the host has none, 4.4.3 when somebody must be asked again to know.
func (r *Resolver) Addresses(ctx context.Context, host string) (addresses []netip.Addr, secure bool, err error) {
	if literal, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{literal}, false, nil
	}
	six, sixErr := r.lookup(ctx, host, dns.TypeAAAA)
	four, fourErr := r.lookup(ctx, host, dns.TypeA)
	var sixes, fours []netip.Addr
	for _, record := range six.records {
		if address, ok := netip.AddrFromSlice(record.(*dns.AAAA).AAAA); ok {
			sixes = append(sixes, address)
		}
	}
	for _, record := range four.records {
		if address, ok := netip.AddrFromSlice(record.(*dns.A).A.To4()); ok {
			fours = append(fours, address)
		}
	}
	rand.Shuffle(len(sixes), func(i, j int) { sixes[i], sixes[j] = sixes[j], sixes[i] })
	rand.Shuffle(len(fours), func(i, j int) { fours[i], fours[j] = fours[j], fours[i] })
	for i := range max(len(sixes), len(fours)) {
		if i < len(sixes) {
			addresses = append(addresses, sixes[i])
		}
		if i < len(fours) {
			addresses = append(addresses, fours[i])
		}
	}
	switch {
	case len(addresses) > 0:
	case sixErr != nil:
		return nil, false, sixErr
	case fourErr != nil:
		return nil, false, fourErr
	default:
		return nil, false, &Error{Permanent: true, Enhanced: "5.4.4", Text: fmt.Sprintf("the host %s has no address", host)}
	}
	return addresses, sixErr == nil && fourErr == nil && six.secure && four.secure, nil
}

// Text are the TXT records of a name, each with its strings joined, byte for byte as they are in the zone.
func (r *Resolver) Text(ctx context.Context, name string) ([]string, error) {
	known, err := r.lookup(ctx, name, dns.TypeTXT)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(known.records))
	for i, record := range known.records {
		texts[i] = unescaped(strings.Join(record.(*dns.TXT).Txt, ""))
	}
	return texts, nil
}

// unescaped takes out the escapes that the library writes into text: \" and \\ for themselves, \DDD for a byte by its decimal number.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			plain = append(plain, text[i])
			continue
		}
		i++
		if i+3 <= len(text) {
			if number, err := strconv.ParseUint(text[i:i+3], 10, 8); err == nil {
				plain = append(plain, byte(number))
				i += 2
				continue
			}
		}
		plain = append(plain, text[i])
	}
	return string(plain)
}

// TLSA are the records that say which certificate a host shows at a port. There are none unless they were in a signed zone.
func (r *Resolver) TLSA(ctx context.Context, host string, port int) ([]*dns.TLSA, error) {
	known, err := r.lookup(ctx, fmt.Sprintf("_%d._tcp.%s", port, host), dns.TypeTLSA)
	if err != nil || !known.secure {
		return nil, err
	}
	records := make([]*dns.TLSA, len(known.records))
	for i, record := range known.records {
		records[i] = record.(*dns.TLSA)
	}
	return records, nil
}
