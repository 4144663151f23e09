package receive

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Range is a range of addresses of peers, from the first to the last.
type Range struct{ First, Last netip.Addr }

// ParseRange reads a network such as 10.0.0.0/8, a range such as 10.0.0.1-10.0.0.9, or an address.
func ParseRange(text string) (Range, error) {
	if first, last, isRange := strings.Cut(text, "-"); isRange {
		low, err := netip.ParseAddr(first)
		if err != nil {
			return Range{}, fmt.Errorf("read the range %q: %w", text, err)
		}
		high, err := netip.ParseAddr(last)
		if err != nil {
			return Range{}, fmt.Errorf("read the range %q: %w", text, err)
		}
		if low.Is4() != high.Is4() || high.Less(low) {
			return Range{}, fmt.Errorf("read the range %q: it ends before it begins", text)
		}
		return Range{low, high}, nil
	}
	if !strings.Contains(text, "/") {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return Range{}, fmt.Errorf("read the address %q: %w", text, err)
		}
		return Range{address, address}, nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return Range{}, fmt.Errorf("read the network %q: %w", text, err)
	}
	return network(prefix), nil
}

// network gives the range of all addresses of a network.
func network(prefix netip.Prefix) Range {
	first := prefix.Masked().Addr()
	last := first.AsSlice()
	for bit := prefix.Bits(); bit < first.BitLen(); bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	high, _ := netip.AddrFromSlice(last) // as long as the first
	return Range{first, high}
}

// Contains reports whether an address is in the range.
func (r Range) Contains(ip netip.Addr) bool {
	return ip.Is4() == r.First.Is4() && !ip.Less(r.First) && !r.Last.Less(ip)
}

// isWithin reports whether all addresses of the range are in another.
func (r Range) isWithin(other Range) bool { return other.Contains(r.First) && other.Contains(r.Last) }

func contains(ranges []Range, ip netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.Contains(ip) })
}
